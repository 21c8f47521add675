// Builds each page into one file without references to others: build.mjs [folder].

import { mkdir, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";

import { build } from "esbuild";

const here = path.dirname(fileURLToPath(import.meta.url));
const target = path.resolve(process.argv[2] ?? path.join(here, "../src/apps/built"));

/** The script and the style sheet of an entry. */
async function bundle(entry) {
  const result = await build({
    absWorkingDir: here,
    entryPoints: [entry],
    outdir: "built",
    bundle: true,
    write: false,
    minify: true,
    format: "iife",
    target: ["chrome120", "firefox120", "safari17"],
    charset: "utf8",
    legalComments: "none",
    jsx: "automatic",
    jsxImportSource: "preact",
    define: { "process.env.NODE_ENV": '"production"' },
  });
  const text = (ending) => result.outputFiles.find((file) => file.path.endsWith(ending))?.text ?? "";
  return { js: text(".js"), css: text(".css") };
}

/** Parts of a script that would end its element, or begin a comment in it. */
const inScript = (js) => js.replace(/<\/(script)/gi, "<\\/$1").replace(/<!--/g, "<\\!--");

async function page(name, template, entry) {
  const { js, css } = await bundle(entry);
  const html = (await readFile(path.join(here, template), "utf8"))
    .replace("/*css*/", () => css.trim())
    .replace("/*js*/", () => inScript(js).trim());
  await writeFile(path.join(target, name), html);
  console.log(`${name}: ${Buffer.byteLength(html)} bytes`);
}

await mkdir(target, { recursive: true });
await page("view.html", "view/view.html", "view/main.tsx");
