// Opens links to content in Chromium: browser.mjs, with {"chromium", "downloads": [url], "inline",
// "upload", "file", "screenshots"} on stdin. Prints what was saved, shown and requested.

import fs from "node:fs";
import { text } from "node:stream/consumers";
import { chromium } from "playwright-core";

const given = JSON.parse(await text(process.stdin));
const browser = await chromium.launch({
  executablePath: given.chromium,
  args: ["--no-sandbox"],
});
const result = { saved: [], beacons: [], console: [] };

async function open(options) {
  const context = await browser.newContext(options);
  // What scripts of stored content would request.
  await context.route(/beacon/, (route) => {
    result.beacons.push(route.request().url());
    return route.abort();
  });
  const page = await context.newPage();
  page.on("console", (message) => result.console.push(message.text()));
  return page;
}

async function saved(download) {
  const content = fs.readFileSync(await download.path(), "utf8");
  return { name: download.suggestedFilename(), content };
}

try {
  const page = await open();
  for (const url of given.downloads) {
    // Opened as a person would, and in a frame of another page.
    for (const visit of [
      () => page.goto(url).catch(() => {}),
      () => page.setContent(`<iframe src="${url}"></iframe>`),
    ]) {
      const waiting = page.waitForEvent("download");
      await visit();
      result.saved.push(await saved(await waiting));
    }
    await page.setContent(`<object data="${url}"></object><img src="${url}"><script src="${url}"></script>`);
    await page.waitForLoadState("networkidle");
  }
  await page.goto(given.inline);
  result.inline = await page.evaluate(() => document.body.innerText);
  for (const scheme of ["light", "dark"]) {
    const upload = await open({ colorScheme: scheme, viewport: { width: 420, height: 640 } });
    await upload.goto(given.upload);
    const shot = async (name) => {
      if (given.screenshots) await upload.screenshot({ path: `${given.screenshots}/${name}-${scheme}.png` });
    };
    await shot("upload");
    if (scheme === "light") continue;
    // With the keyboard alone.
    await upload.setInputFiles("input[type=file]", given.file);
    await upload.keyboard.press("Tab");
    await upload.keyboard.press("Tab");
    await upload.keyboard.press("Enter");
    const status = upload.getByRole("status");
    await status.filter({ hasText: /Stored|lost|responded|was stored/ }).waitFor();
    result.status = await status.innerText();
    await shot("stored");
  }
  console.log(JSON.stringify(result));
} finally {
  await browser.close();
}
