// A log: regular expressions, the next and the previous match, a line by its number.

import { assert, eventually } from "../assert.mjs";
import { log } from "../content.mjs";

export default async function search(stage) {
  await stage.store({ uri: "log:1", name: "gateway.log", text: log(20_000), mime_type: "text/plain" });
  const view = await stage.open({ uri: "log:1" });
  const active = () => view.locator(".line.active .gutter").first().innerText();
  const reaches = (line) => eventually(`line ${line}`, active, (shown) => shown === line);
  await view.getByRole("searchbox").fill("ERROR.*orders/\\d*94$");
  await view.getByText(/^1 of \d+ lines$/).waitFor();
  await reaches("194");
  await view.getByRole("button", { name: "Next" }).click();
  const second = await eventually("the second match", active, (shown) => shown !== "194");
  await stage.tab.keyboard.press("Tab");
  await view.getByRole("button", { name: "Previous" }).click();
  await reaches("194");
  assert.ok(await view.getByRole("button", { name: "Previous" }).isDisabled());
  await view.getByRole("searchbox").press("Enter");
  await reaches(second);
  await view.getByLabel("Go to line").fill("19,999");
  await view.getByLabel("Go to line").press("Enter");
  await reaches("19,999");
  await view.getByText("/v1/orders/19999 ").waitFor();
  await view.getByRole("searchbox").fill("(");
  await view.getByText(/not a valid regular expression/).waitFor();
  await view.getByRole("button", { name: "Regular expression" }).click();
  await view.getByText(/^1 of \d+ lines$/).waitFor();
  await view.getByText(/^1 of 639 lines$/).waitFor();
  assert.ok((await view.getByRole("listitem").count()) < 500);
}
