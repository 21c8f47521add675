// An operator watches the traffic in Chromium: console_traffic.mjs, with {"chromium", "url", "token", "screenshots"?} on stdin.
// Writes `store` to stderr when calls are to be made, and what was seen to stdout.

import { text } from "node:stream/consumers";

import { Stage } from "./console_stage.mjs";

const stage = await Stage.start(JSON.parse(await text(process.stdin)));
const { seen } = stage;
stage.expected = /status of (401|503)/;

const charts = (page) => page.getByRole("img", { name: /^Curves of/ });
const drawn = (page) => charts(page).nth(2).locator("canvas").waitFor();

/** Pretends that the tab is hidden, or shown. */
const show = (page, state) =>
  page.evaluate((state) => {
    Object.defineProperty(document, "visibilityState", { value: state, configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
  }, state);

async function walk(page) {
  await stage.logIn(page);
  await page.getByRole("link", { name: "Traffic" }).click();
  await page.getByText("There are no curves yet").waitFor();
  await stage.look(page, "traffic-fresh");
  console.error("store");
  await drawn(page);
  // The fifty minutes of a busy instance take a busy machine long.
  await page.getByText("started 50 min ago").waitFor({ timeout: 180_000 });
  seen.charts = await charts(page).evaluateAll((all) => all.map((one) => one.getAttribute("aria-label")));
  await stage.look(page, "traffic");

  // The table, by the keyboard.
  await page.locator("summary").focus();
  await page.keyboard.press("Enter");
  const table = page.getByRole("region", { name: "Numbers of the curves" });
  await table.waitFor();
  seen.rows = await table.getByRole("row").count();
  seen.headings = await table.getByRole("columnheader").allInnerTexts();
  seen.newest = await table.getByRole("row").nth(1).getByRole("cell").allInnerTexts();
  await table.scrollIntoViewIfNeeded();
  await stage.look(page, "traffic-table");

  const failing = (route) => route.fulfill({ status: 503, json: { error: { message: "The store is not available now." } } });
  await page.route("**/console/traffic", failing);
  await page.getByRole("alert").filter({ hasText: "not available" }).waitFor();
  await stage.look(page, "traffic-failed");
  await page.unroute("**/console/traffic", failing);
  await page.getByRole("button", { name: "Try again" }).click();
  await drawn(page);
}

/** The requests of a tab that is hidden, and then shown. */
async function hide(page) {
  await page.clock.install();
  const requests = [];
  page.on("request", (request) => requests.push(new URL(request.url()).pathname.split("/").pop()));
  await page.goto(`${stage.given.url}#/traffic`);
  await drawn(page);
  await show(page, "hidden");
  requests.length = 0;
  await page.clock.runFor(60_000);
  await page.evaluate(() => fetch("session"));
  seen.hidden = [...requests];
  const asked = page.waitForRequest("**/console/traffic");
  await show(page, "visible");
  await asked;
  requests.length = 0;
  await page.clock.runFor(6_000);
  await page.evaluate(() => fetch("session"));
  seen.visible = [...requests];
}

try {
  const page = await stage.open({ colorScheme: "light" });
  await walk(page);
  stage.suffix = "-dark";
  const dark = await stage.open({ colorScheme: "dark", storageState: await page.context().storageState() });
  await dark.goto(`${stage.given.url}#/traffic`);
  await drawn(dark);
  await stage.look(dark, "traffic");
  stage.suffix = "-narrow";
  await dark.setViewportSize({ width: 390, height: 740 });
  await stage.look(dark, "traffic");
  stage.suffix = "-wide";
  await dark.setViewportSize({ width: 1900, height: 900 });
  await stage.look(dark, "traffic");
  await hide(dark);
} catch (error) {
  seen.failed = String(error);
}
console.log(JSON.stringify(seen));
await stage.stop();
