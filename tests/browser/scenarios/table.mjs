// A million rows: sorted, filtered, and few of them in the document.

import { assert, eventually } from "../assert.mjs";

export default async function table(stage) {
  // The content is stored by the test, which is faster.
  let view;
  const cell = (row, column) =>
    view.locator(`[aria-rowindex="${row + 1}"] [role=cell]`).nth(column);
  const shows = (row, column, text) =>
    eventually(`row ${row}`, async () => ((await cell(row, column).count()) ? cell(row, column).innerText() : ""), (shown) => shown === text);
  // The window of the host is open before.
  await stage.window();
  await stage.measure("a million rows: first view", async () => {
    view = await stage.open({ uri: "big:rows" }, { height: "600px" });
    await shows(1, 0, "1");
  });
  const rows = view.getByRole("row");
  const few = async () => assert.ok((await rows.count()) < 500, `${await rows.count()} rows`);
  await view.getByText("1,000,000 rows").waitFor();
  await few();

  // To the end, by the keyboard.
  const region = view.getByRole("region", { name: "Rows of rows.csv" });
  await region.focus();
  await stage.measure("a million rows: to the last row", async () => {
    await stage.tab.keyboard.press("End");
    await shows(1_000_000, 0, "1000000");
  });
  await few();
  await stage.tab.keyboard.press("Home");
  await shows(1, 0, "1");

  await stage.measure("a million rows: sorted by a column of texts", async () => {
    await view.getByRole("button", { name: "Sort by key" }).click();
    await shows(1, 1, "k0000000");
  });
  const header = view.getByRole("columnheader", { name: /key/ });
  assert.equal(await header.getAttribute("aria-sort"), "ascending");
  await stage.measure("a million rows: in the reverse order", async () => {
    await view.getByRole("button", { name: "Sort by key" }).click();
    await shows(1, 1, "k0999999");
  });
  assert.equal(await header.getAttribute("aria-sort"), "descending");
  await few();

  await view.getByRole("button", { name: "Filter" }).click();
  await view.getByLabel("Column", { exact: true }).selectOption("id");
  await view.getByLabel("Condition").selectOption("greater");
  await view.getByLabel("Value").fill("999990");
  await stage.measure("a million rows: filtered by a number", async () => {
    await view.getByRole("button", { name: "Add" }).click();
    await view.getByText("10 of 1,000,000 rows").waitFor({ timeout: 60_000 });
  });
  await view.getByRole("button", { name: /Remove the filter/ }).click();
  await stage.measure("a million rows: searched for a text", async () => {
    await view.getByRole("searchbox").fill("k0123456");
    await view.getByText("1 of 1,000,000 rows").waitFor({ timeout: 60_000 });
  });
  await shows(1, 1, "k0123456");
}
