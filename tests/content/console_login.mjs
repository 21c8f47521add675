// Logs in at the authorization server in Chromium: console_login.mjs, with {"chromium", "url", "screenshots"?} on stdin.
// Writes what was seen to stdout.

import assert from "node:assert/strict";
import { text } from "node:stream/consumers";
import { chromium } from "playwright-core";

const given = JSON.parse(await text(process.stdin));
const browser = await chromium.launch({ executablePath: given.chromium, args: ["--no-sandbox"] });
const seen = { errors: [] };

async function open() {
  const context = await browser.newContext({ viewport: { width: 1180, height: 760 }, colorScheme: "light" });
  const page = await context.newPage();
  page.setDefaultTimeout(30_000);
  page.on("console", (message) => {
    if (message.type() === "error" && !/status of 40[01]/.test(message.text())) seen.errors.push(message.text());
  });
  page.on("pageerror", (error) => seen.errors.push(error.message));
  await page.goto(given.url);
  return page;
}

const button = (page) => page.getByRole("button", { name: /^Log in at / });
const resources = (page) => page.getByRole("heading", { name: "Resources" });

try {
  const page = await open();
  await button(page).waitFor();
  seen.button = await button(page).innerText();
  const field = page.getByLabel("Access token");
  if (given.tokens === false) assert.equal(await field.count(), 0, "nobody has a token");
  else await field.waitFor();
  if (given.screenshots) await page.screenshot({ path: `${given.screenshots}/login-${given.tokens === false ? "provider" : "oidc"}.png` });
  await button(page).click();
  await resources(page).waitFor();
  seen.path = new URL(page.url()).pathname;
  seen.user = await page.locator(".user").innerText();
  const cookies = await page.context().cookies(given.url);
  seen.cookies = cookies.map(({ name, path, httpOnly, sameSite }) => [name, path, httpOnly, sameSite]);
  await page.reload();
  await resources(page).waitFor();

  // Somebody else's callback, which another page sends this browser to.
  const attacker = await open();
  let callback = await attacker.evaluate(async () => (await (await fetch("oidc", { method: "POST" })).json()).url);
  while (!callback.includes("/console/callback")) {
    const response = await attacker.context().request.get(callback, { maxRedirects: 0 });
    callback = new URL(response.headers()["location"], callback).href;
  }
  const victim = await open();
  await button(victim).waitFor();
  await victim.goto(callback);
  await victim.getByRole("heading", { name: "No login" }).waitFor();
  if (given.screenshots) await victim.screenshot({ path: `${given.screenshots}/login-of-another.png` });
  await victim.getByRole("link", { name: "Back to the console" }).click();
  await button(victim).waitFor();
  seen.victim = (await victim.context().cookies(given.url)).map(({ name }) => name);

  const copy = await browser.newContext({ storageState: await page.context().storageState() });
  await page.getByRole("button", { name: "Log out" }).click();
  await page.getByText("You are logged out.").waitFor();
  await button(page).waitFor();
  const copied = await copy.newPage();
  await copied.goto(given.url);
  await button(copied).waitFor();
  seen.loggedOut = true;
} catch (error) {
  seen.failed = String(error);
}
console.log(JSON.stringify(seen));
await browser.close();
