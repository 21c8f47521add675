// Pictures of every state, to be looked at.

import { log, orders, tree } from "../content.mjs";

const SVG = `<svg xmlns="http://www.w3.org/2000/svg" width="320" height="200"><rect width="320" height="200" fill="#dbe7f6"/><circle cx="160" cy="100" r="70" fill="#1f5fbf"/><text x="160" y="108" fill="#fff" text-anchor="middle" font-family="sans-serif" font-size="24">larder</text></svg>`;

export default async function looks(stage) {
  await stage.store({ uri: "looks:orders", name: "orders.csv", text: orders(12_345), mime_type: "text/csv" });
  await stage.store({ uri: "looks:log", name: "gateway.log", text: log(20_000), mime_type: "text/plain" });
  await stage.store({ uri: "looks:json", name: "package.json", json: tree() });
  await stage.store({ uri: "looks:svg", name: "mark.svg", text: SVG, mime_type: "image/svg+xml" });
  await stage.store({ uri: "looks:bytes", name: "data.bin", blob: Buffer.from(orders(40)).toString("base64") });
  await stage.store({ uri: "looks:empty", name: "empty.csv", text: "id,name\n", mime_type: "text/csv" });
  await stage.store({ uri: "looks:none", name: "empty.txt", text: "", mime_type: "text/plain" });
  const text = log(60);
  await stage.store({ uri: "looks:diff", name: "gateway.conf", text, mime_type: "text/plain" });
  const changed = text.replace(/orders\/7 200/, "orders/7 503").replace(/.*orders\/20 .*\n/, "") + "one more line\n";
  await stage.update({ uri: "looks:diff", text: changed });
  const long = `${"A very long name of a resource that nobody would choose ".repeat(4)}.csv`;
  const wide = ["id,العنوان,a column with a very long name indeed that has to be cut,z", "1,مرحبا بالعالم,x,1", `2,שלום עולם,${"long text ".repeat(30)},2`];
  await stage.store({ uri: "looks:long", name: long, text: `${wide.join("\n")}\n`, mime_type: "text/csv" });

  for (const theme of ["light", "dark"]) {
    const context = { theme };
    const shown = async (name, input, act) => {
      const view = await stage.open(input, { context });
      await stage.tab.evaluate((theme) => (document.body.style.background = theme === "dark" ? "#1a1a1a" : "#fff"), theme);
      await act?.(view);
      await stage.tab.waitForTimeout(150);
      await stage.shot(`${name}-${theme}`);
    };
    await stage.window();
    await shown("table", { uri: "looks:orders" }, (view) => view.getByRole("rowheader", { name: "5", exact: true }).waitFor());
    await shown("table-sorted", { uri: "looks:orders" }, async (view) => {
      await view.getByRole("button", { name: "Sort by total" }).click();
      await view.getByRole("button", { name: "Filter" }).click();
      await view.getByLabel("Column", { exact: true }).selectOption("customer");
      await view.getByLabel("Value").fill("ada");
      await view.getByRole("button", { name: "Add" }).click();
      await view.getByText(/ of 12,345 rows/).waitFor();
      const cell = view.getByRole("cell", { name: "Ada Lovelace" }).first();
      await cell.dblclick();
      await view.getByRole("heading", { name: "Row 1" }).waitFor();
    });
    await shown("table-nothing", { uri: "looks:orders" }, async (view) => {
      await view.getByRole("searchbox").fill("nobody has this");
      await view.getByText("No row fits").waitFor();
    });
    await shown("log", { uri: "looks:log" }, async (view) => {
      await view.getByRole("searchbox").fill("timed out.*/\\d+7\\d");
      await view.getByText(/1 of \d+ line/).waitFor();
      await view.getByRole("button", { name: "Next" }).click();
    });
    await shown("log-invalid", { uri: "looks:log" }, async (view) => {
      await view.getByRole("searchbox").fill("(");
      await view.getByText(/not a valid/).waitFor();
    });
    await shown("tree", { uri: "looks:json", as: "json" }, async (view) => {
      await view.getByText("limits").click();
      await view.getByText("items", { exact: true }).click();
      await view.getByText("keywords").click();
    });
    await shown("chart", { uri: "looks:orders", as: "chart" }, (view) => view.getByRole("img").waitFor());
    await shown("image", { uri: "looks:svg" }, (view) => view.getByText("320 × 200").waitFor());
    await shown("bytes", { uri: "looks:bytes" }, (view) => view.getByText("id,placed").first().waitFor());
    await shown("diff", { uri: "looks:diff", against: "1" }, (view) => view.getByText("one more line").waitFor());
    await shown("empty-table", { uri: "looks:empty" }, (view) => view.getByText("No rows", { exact: true }).waitFor());
    await shown("empty-text", { uri: "looks:none" }, (view) => view.getByText("No lines").waitFor());
    await shown("long", { uri: "looks:long" }, (view) => view.getByText("مرحبا بالعالم").waitFor());
    await shown("failed", { uri: "looks:missing" }, (view) => view.getByRole("alert").waitFor());
    await stage.window({ viewport: { width: 360, height: 640 } });
    await shown("narrow-table", { uri: "looks:orders" }, (view) => view.getByRole("rowheader", { name: "5", exact: true }).waitFor());
    await shown("narrow-log", { uri: "looks:log" }, (view) => view.getByText("GET").first().waitFor());
    await stage.window({ viewport: { width: 1500, height: 900 } });
    await shown("wide-table", { uri: "looks:orders" }, async (view) => {
      await view.getByRole("button", { name: "Full screen" }).click();
      await view.getByRole("rowheader", { name: "25", exact: true }).waitFor();
    });
  }
}
