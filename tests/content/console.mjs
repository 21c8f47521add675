// Walks through the console in Chromium: console.mjs, with {"chromium", "url", "token", "file", "screenshots"?, "prefix",
// "last", "table", "hostile"} on stdin. Writes `store` to stderr when another client is to store "Appears by itself", and
// what was seen to stdout.

import fs from "node:fs";
import { text } from "node:stream/consumers";

import { Stage } from "./console_stage.mjs";

const given = JSON.parse(await text(process.stdin));
const stage = await Stage.start(given);
const { seen } = stage;
const look = (page, name) => stage.look(page, name);

async function walk(page) {
  await page.goto(given.url);
  await page.getByRole("heading", { name: "Log in" }).waitFor();
  await look(page, "login");
  await page.getByLabel("Access token").fill("bad");
  await page.keyboard.press("Enter");
  seen.refused = await page.getByRole("alert").innerText();
  await look(page, "login-refused");
  await stage.logIn(page);
  await page.getByRole("table").waitFor();
  await look(page, "list");
  seen.rows = await page.getByRole("row").count();
  seen.first = await page.getByRole("row").nth(1).locator("a").innerText();
  seen.usage = await page.locator(".usage").innerText();
  await page.getByRole("button", { name: "Next" }).click();
  await page.getByText("Page 2").waitFor();
  await page.getByRole("row").nth(1).filter({ hasNotText: seen.first }).waitFor();
  seen.second = await page.getByRole("row").nth(1).locator("a").innerText();
  await page.getByRole("button", { name: "Previous" }).click();
  await page.getByText("Page 1").waitFor();

  // Sorted by the server, over all pages.
  const bySize = page.getByRole("columnheader", { name: "Sort by size" });
  await bySize.getByRole("button").click();
  await page.getByRole("row").nth(1).filter({ hasText: "6 bytes" }).waitFor();
  seen.ascending = await bySize.getAttribute("aria-sort");
  await bySize.getByRole("button").click();
  await page.getByRole("row").nth(1).filter({ hasText: "Access log" }).waitFor();
  seen.descending = await bySize.getAttribute("aria-sort");
  await look(page, "list-sorted");
  // A third click sorts by URI again.
  await bySize.getByRole("button").click();
  await page.getByRole("row").nth(1).filter({ hasText: seen.first }).waitFor();

  const search = page.getByRole("searchbox");
  await search.fill(given.prefix);
  await page.getByRole("link", { name: given.last }).waitFor();
  seen.prefixed = await page.getByRole("row").count();
  await search.fill("nothing:there");
  await page.getByText("No resource has a URI").waitFor();
  await look(page, "list-none");
  await search.fill("perihelion");
  await page.getByRole("link", { name: "Orbits" }).waitFor();
  seen.left = await page.getByText("Not searched:").innerText();
  await look(page, "search");
  await search.fill("");
  await page.getByRole("table").waitFor();

  // What another client stores appears by itself.
  const began = Date.now();
  const stored = page.getByRole("link", { name: "Appears by itself", exact: true });
  console.error("store");
  await stored.waitFor();
  seen.appeared = Date.now() - began;

  await page.getByRole("button", { name: "Share Appears by itself", exact: true }).click();
  await look(page, "share");
  await page.getByRole("dialog").getByRole("button", { name: "Share" }).click();
  seen.link = await page.getByLabel("Link for models and tools").inputValue();
  await look(page, "shared");
  await page.getByRole("button", { name: "Done" }).click();
  await page.getByRole("button", { name: "Delete Appears by itself", exact: true }).click();
  await look(page, "delete");
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Delete Appears by itself", exact: true }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
  await stored.waitFor({ state: "detached" });

  await page.locator("input[type=file]").setInputFiles(given.file);
  await page.getByText(/^Stored /).waitFor();
  await look(page, "uploaded");

  await search.fill(given.table);
  await page.getByRole("link", { name: "Sales" }).click();
  await page.getByRole("tablist").waitFor();
  await page.getByText("north").first().waitFor();
  await look(page, "resource");
  seen.revisions = await page.getByLabel("Revision").locator("option").allInnerTexts();
  await page.getByRole("tab", { name: "Changes" }).click();
  await page.getByRole("tab", { name: "Changes", selected: true }).waitFor();
  await page.getByText("west").first().waitFor();
  await look(page, "changes");
  const download = page.waitForEvent("download");
  await page.getByRole("button", { name: "Download" }).click();
  seen.saved = fs.readFileSync(await (await download).path(), "utf8");
  // Resources live for a day by default.
  seen.expires = await page.getByText(/^expires in /).innerText();
  await page.getByRole("button", { name: "Expiry" }).click();
  await page.getByLabel("Keep it from now for").selectOption({ label: "seven days" });
  await look(page, "expiry");
  await page.getByRole("dialog").getByRole("button", { name: "Save" }).click();
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await page.getByText("expires in 7 days").waitFor();
  seen.extended = await page.getByText(/^expires in /).innerText();
  await look(page, "extended");
  await page.getByRole("link", { name: "Resources" }).click();

  await page.getByRole("link", { name: "Upstreams" }).click();
  await page.getByRole("cell", { name: "not reachable" }).waitFor();
  seen.upstream = await page.getByRole("row").nth(1).innerText();
  await look(page, "upstreams");
  await page.getByRole("link", { name: "Owners" }).click();
  const owner = page.getByRole("row").filter({ hasText: "1.2 MB" });
  await owner.waitFor();
  seen.owner = await owner.innerText();
  await look(page, "owners");
  await owner.getByRole("button", { name: "Delete all" }).click();
  await look(page, "purge");
  await page.getByRole("dialog").getByRole("button", { name: "Delete all" }).click();
  seen.purged = await page.getByText(/^Deleted /).innerText();
  await owner.waitFor({ state: "detached" });
  await page.getByRole("link", { name: "Larder" }).click();

  // Hostile content, names and URIs.
  await page.getByRole("searchbox").fill("x:xss");
  const hostile = page.getByRole("row").filter({ hasText: "x:xss" });
  await hostile.nth(given.hostile - 1).waitFor();
  await look(page, "hostile");
  for (let index = 0; index < given.hostile; index++) {
    await hostile.nth(index).getByRole("link").click();
    await page.getByRole("heading", { level: 1 }).first().waitFor();
    for (const tab of await page.getByRole("tab").all()) {
      await tab.click();
      await page.getByRole("tab", { name: await tab.innerText(), selected: true }).waitFor();
    }
    await page.getByRole("link", { name: "Resources" }).click();
    await page.getByRole("searchbox").fill("x:xss");
    await hostile.nth(given.hostile - 1).waitFor();
  }
  await page.goto(`${given.url}#/resource/x%3Agone`);
  await page.getByRole("alert").waitFor();
  await look(page, "gone");
}

try {
  const page = await stage.open({ colorScheme: "light" });
  await walk(page);
  // A second window, dark and narrow; a logout here ends the session of a copied cookie.
  stage.suffix = "-dark";
  const dark = await stage.open({ colorScheme: "dark", storageState: await page.context().storageState() });
  await dark.goto(given.url);
  await dark.getByRole("table").waitFor();
  await look(dark, "list");
  stage.suffix = "-narrow";
  await dark.setViewportSize({ width: 390, height: 740 });
  await look(dark, "list");
  await dark.goto(`${given.url}#/owners`);
  await dark.getByRole("heading", { name: "Owners" }).waitFor();
  await dark.getByRole("table").waitFor();
  await look(dark, "owners");
  stage.suffix = "-dark";
  await dark.setViewportSize({ width: 1180, height: 760 });
  await dark.goto(`${given.url}#/resource/${encodeURIComponent(given.table)}`);
  await dark.getByText("north").first().waitFor();
  await look(dark, "resource");
  const other = await stage.open({ storageState: await dark.context().storageState() });
  await dark.getByRole("button", { name: "Log out" }).click();
  await dark.getByText("You are logged out.").waitFor();
  await look(dark, "logged-out");
  await other.goto(given.url);
  await other.getByRole("heading", { name: "Log in" }).waitFor();
  seen.loggedOut = true;
  // The first window notices at its next request.
  await page.goto(given.url);
  await page.getByRole("heading", { name: "Log in" }).waitFor();
  console.log(JSON.stringify(seen));
} catch (error) {
  seen.failed = String(error);
  console.log(JSON.stringify(seen));
} finally {
  await stage.stop();
}
