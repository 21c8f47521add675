// What walks through the console share: windows that report what is wrong, and pictures that axe checks.

import fs from "node:fs";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";

const axe = fs.readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

export class Stage {
  seen = { violations: [], beacons: [], errors: [], axe: [] };
  /** Errors of the page that a walk provokes. */
  expected = /status of 401/;
  /** The end of the names of pictures. */
  suffix = "";

  static async start(given) {
    const stage = new Stage();
    stage.given = given;
    stage.browser = await chromium.launch({ executablePath: given.chromium, args: ["--no-sandbox"] });
    return stage;
  }

  stop() {
    return this.browser.close();
  }

  async open(options) {
    const { given, seen } = this;
    const context = await this.browser.newContext({ viewport: { width: 1180, height: 760 }, ...options });
    await context.route(/beacon/, (route) => {
      seen.beacons.push(route.request().url());
      return route.abort();
    });
    // To try pages before they are built into Larder.
    if (given.built) {
      await context.route(/\/console\/app\.(js|css)$/, async (route) => {
        const name = new URL(route.request().url()).pathname.split("/").pop();
        const response = await route.fetch();
        return route.fulfill({ response, body: fs.readFileSync(`${given.built}/${name}`) });
      });
    }
    const page = await context.newPage();
    page.setDefaultTimeout(30_000);
    page.on("console", (message) => {
      const text = message.text();
      if (/Content Security Policy|TrustedHTML|TrustedScript/.test(text)) seen.violations.push(text);
      else if (message.type() === "error" && !this.expected.test(text)) seen.errors.push(text);
    });
    page.on("pageerror", (error) => seen.errors.push(error.message));
    page.on("dialog", (dialog) => {
      seen.beacons.push(`dialog: ${dialog.message()}`);
      return dialog.dismiss();
    });
    return page;
  }

  async look(page, name) {
    const { screenshots } = this.given;
    if (screenshots) await page.screenshot({ path: `${screenshots}/${name}${this.suffix}.png` });
    const session = await page.context().newCDPSession(page);
    // The page's policy holds for scripts of the page; this one is the test's.
    await session.send("Page.setBypassCSP", { enabled: true });
    const { result } = await session.send("Runtime.evaluate", {
      expression: `${axe}; axe.run().then((r) => JSON.stringify(r.violations.map((v) => v.id + " " + v.nodes.map((n) => n.target + ": " + n.failureSummary).join("; "))))`,
      awaitPromise: true,
    });
    for (const violation of JSON.parse(result.value)) this.seen.axe.push(`${name}: ${violation}`);
    await session.detach();
  }

  async logIn(page) {
    await page.goto(this.given.url);
    if (!this.given.token) {
      await page.getByRole("heading", { name: "Resources" }).waitFor();
      return;
    }
    const field = page.getByLabel("Access token");
    await field.fill(this.given.token);
    await field.press("Enter");
    await page.getByRole("heading", { name: "Resources" }).waitFor();
  }
}
