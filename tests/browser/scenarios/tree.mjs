// A large JSON value, read as its nodes are opened, by the keyboard alone.

import { assert, eventually } from "../assert.mjs";

export default async function tree(stage) {
  // {"meta": {"name": "large"}, "items": [{"id": 0, …}, …]}, stored by the test.
  let view;
  const node = (name) => view.getByRole("treeitem", { name });
  // The window of the host is open before.
  await stage.window();
  await stage.measure(`${stage.given.json_mb} MB of JSON: the top of the tree`, async () => {
    view = await stage.open({ uri: "big:tree", as: "json" });
    await node(/^items/).waitFor({ timeout: 60_000 });
  });
  const read = () => stage.calls.filter((call) => call.arguments.as === "json").length;
  assert.equal(read(), 1, "only the top is read");
  await view.getByRole("tree").focus();
  const press = (key) => stage.tab.keyboard.press(key);
  await press("ArrowDown");
  await stage.measure(`${stage.given.json_mb} MB of JSON: its array is opened`, async () => {
    await press("ArrowRight");
    await node(/^0/).first().waitFor({ timeout: 60_000 });
  });
  assert.equal(await node(/^items/).getAttribute("aria-expanded"), "true");
  assert.ok(read() <= 3, `${read()} reads`);
  await press("ArrowRight");
  await press("ArrowRight");
  await view.getByText("/items/0", { exact: true }).waitFor();
  await node(/^id/).waitFor();
  assert.ok((await view.getByRole("treeitem").count()) < 500);
  await press("ArrowLeft");
  await press("ArrowLeft");
  await press("ArrowLeft");
  await eventually("it is closed", () => node(/^items/).getAttribute("aria-expanded"), (open) => open === "false");
}
