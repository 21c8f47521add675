// Builds the pages: build.mjs [folder]. The viewer is one file without references to others; the console's page names its
// script and style sheet, because its policy allows none within the page.

import { mkdir, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { gunzipSync, gzipSync } from "node:zlib";

import { build } from "esbuild";

const here = path.dirname(fileURLToPath(import.meta.url));
const root = path.resolve(process.argv[2] ?? path.join(here, "../crates/server/src"));
const target = path.join(root, "apps/built");
const consoleTarget = path.join(root, "http/console/built");

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
    logLevel: "error",
    define: { "process.env.NODE_ENV": '"production"' },
  });
  const text = (ending) => result.outputFiles.find((file) => file.path.endsWith(ending))?.text ?? "";
  // Messages of packages name their pages; these pages name no address outside of their host.
  const js = text(".js").replace(/https:\/\/github\.com\/(?:highlightjs|markedjs)\/[\w./]*/g, "its authors");
  return { js, css: text(".css") };
}

/** Parts of a script that would end its element, or begin a comment in it. */
const inScript = (js) => js.replace(/<\/(script)/gi, "<\\/$1").replace(/<!--/g, "<\\!--");

/** A script as gzip in base64; the committed bytes, if they are the same script. */
async function packed(entry) {
  const { js } = await bundle(entry);
  const page = await readFile(path.join(here, "../crates/server/src/apps/built/pdf.html"), "utf8").catch(() => "");
  const known = /<script id="pdf-code" type="text\/plain">([^<]+)<\/script>/.exec(page)?.[1];
  // Each version of zlib writes other bytes.
  if (known && gunzipSync(Buffer.from(known, "base64")).toString() === js) return known;
  return gzipSync(js, { level: 9 }).toString("base64");
}

async function page(name, template, entry, code = "") {
  const { js, css } = await bundle(entry);
  const html = (await readFile(path.join(here, template), "utf8"))
    .replace("/*css*/", () => css.trim())
    .replace("<!--code-->\n", () => code && `<script id="pdf-code" type="text/plain">${code}</script>\n`)
    .replace("/*js*/", () => inScript(js).trim());
  await writeFile(path.join(target, name), html);
  console.log(`${name}: ${Buffer.byteLength(html)} bytes`);
}

async function consolePage() {
  const { js, css } = await bundle("console/main.tsx");
  const files = { "app.js": js, "app.css": css, "index.html": await readFile(path.join(here, "console/index.html"), "utf8") };
  for (const [name, text] of Object.entries(files)) {
    await writeFile(path.join(consoleTarget, name), text);
    console.log(`console ${name}: ${Buffer.byteLength(text)} bytes`);
  }
}

await mkdir(target, { recursive: true });
await mkdir(consoleTarget, { recursive: true });
await page("view.html", "view/view.html", "view/main.tsx");
// The same page with what draws PDF, which the other one reads when it needs it.
await page("pdf.html", "view/view.html", "view/main.tsx", await packed("pdf/code.ts"));
await consolePage();
