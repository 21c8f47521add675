// With the keyboard alone, for screen readers, in both themes and in the host's colours.

import fs from "node:fs";
import { createRequire } from "node:module";

import { assert, eventually } from "../assert.mjs";
import { log, orders, tree } from "../content.mjs";

const axe = fs.readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

export default async function access(stage) {
  await stage.store({ uri: "access:csv", name: "orders.csv", text: orders(2_000), mime_type: "text/csv" });
  await stage.store({ uri: "access:log", name: "a.log", text: log(500), mime_type: "text/plain" });
  await stage.store({ uri: "access:json", name: "a.json", json: tree() });
  await stage.store({ uri: "access:svg", name: "a.svg", text: '<svg xmlns="http://www.w3.org/2000/svg" width="90" height="90"/>', mime_type: "image/svg+xml" });
  await stage.store({ uri: "access:diff", name: "a.txt", text: "a\nb\nc\n", mime_type: "text/plain" });
  await stage.update({ uri: "access:diff", text: "a\nB\nc\n" });
  const found = [];
  const check = async (what) => {
    const frame = stage.frame();
    await frame.evaluate(axe);
    const { violations } = await frame.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
    found.push(...violations.map((one) => `${what}: ${one.id}: ${one.nodes.slice(0, 2).map((node) => `${node.html.slice(0, 160)} ${node.failureSummary ?? ""}`).join(" | ")}`));
  };
  for (const theme of ["light", "dark"]) {
    await stage.window();
    for (const [input, ready, act] of [
      [{ uri: "access:csv" }, (view) => view.getByRole("cell", { name: "Grace Hopper" }).first(), async (view) => {
        await view.getByRole("button", { name: "Filter" }).click();
        await view.getByRole("rowheader", { name: "2", exact: true }).dblclick();
        await view.getByRole("heading", { name: "Row 2" }).waitFor();
      }],
      [{ uri: "access:csv", as: "chart" }, (view) => view.getByRole("img")],
      [{ uri: "access:log" }, (view) => view.getByText("/v1/orders/2 ").first(), async (view) => {
        await view.getByRole("searchbox").fill("error");
        await view.getByText(/^1 of/).waitFor();
      }],
      [{ uri: "access:json", as: "json" }, (view) => view.getByRole("treeitem").first()],
      [{ uri: "access:svg" }, (view) => view.getByRole("img")],
      [{ uri: "access:diff", against: "1" }, (view) => view.getByText("B", { exact: true })],
      [{ uri: "access:none" }, (view) => view.getByRole("alert")],
    ]) {
      const view = await stage.open(input, { context: { theme } });
      await ready(view).waitFor();
      await act?.(view);
      await check(`${theme} ${JSON.stringify(input)}`);
    }
  }
  assert.deepEqual(found, []);

  // The keyboard: from the search to the rows, a row, and back.
  const view = await stage.open({ uri: "access:csv" });
  await view.getByRole("cell", { name: "Grace Hopper" }).first().waitFor();
  const press = (key) => stage.tab.keyboard.press(key);
  await view.getByRole("tab", { name: "Table" }).focus();
  await press("ArrowRight");
  await view.getByRole("tab", { name: "Chart", selected: true }).waitFor();
  await press("ArrowLeft");
  await view.getByRole("tab", { name: "Table", selected: true }).waitFor();
  await view.getByRole("region", { name: "Rows of orders.csv" }).waitFor();
  const focused = () => stage.frame().evaluate(() => document.activeElement?.getAttribute("aria-label") ?? "");
  for (let n = 0; n < 8 && (await focused()) !== "Rows of orders.csv"; n++) await press("Tab");
  assert.equal(await focused(), "Rows of orders.csv");
  await press("ArrowDown");
  await press("ArrowDown");
  await eventually("the row is there", () => view.getByRole("cell", { name: "Alan Turing" }).count(), (n) => n > 0);
  await press("Enter");
  await view.getByRole("heading", { name: "Row 2" }).waitFor();
  await press("Escape");
  assert.equal(await focused(), "Rows of orders.csv");

  // The host's theme and colours, also while the page is shown.
  const background = () => stage.frame().evaluate(() => getComputedStyle(document.querySelector(".viewer")).backgroundColor);
  assert.equal(await background(), "rgb(255, 255, 255)");
  await stage.tab.evaluate(() => window.host.context({ theme: "dark" }));
  await eventually("it is dark", background, (color) => color === "rgb(26, 26, 26)");
  await stage.tab.evaluate(() => window.host.context({ theme: "dark", styles: { variables: { "--color-background-primary": "rgb(1, 2, 3)" } } }));
  await eventually("the host's colour", background, (color) => color === "rgb(1, 2, 3)");
}
