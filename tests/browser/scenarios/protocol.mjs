// Every message fits the specification, in its order, under several policies.

import { assert, eventually } from "../assert.mjs";
import { orders, tree } from "../content.mjs";
import { Messages } from "../messages.mjs";
import { DEFAULT_POLICY, STRICT_POLICY } from "../stage.mjs";

export default async function protocol(stage) {
  refuses();
  await stage.store({ uri: "protocol:csv", name: "orders.csv", text: orders(500), mime_type: "text/csv" });
  await stage.store({ uri: "protocol:json", name: "tree.json", json: tree() });
  await stage.store({ uri: "protocol:svg", name: "a.svg", text: '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>', mime_type: "image/svg+xml" });
  await stage.update({ uri: "protocol:csv", text: orders(501) });
  for (const [policy, sandbox] of [
    [DEFAULT_POLICY, "allow-scripts allow-same-origin allow-forms"],
    [DEFAULT_POLICY, "allow-scripts"],
    [STRICT_POLICY, "allow-scripts"],
  ]) {
    stage.policy = policy;
    stage.requests.length = 0;
    await stage.window();
    const view = await stage.open({ uri: "protocol:csv" }, { sandbox });
    for (const tab of ["Chart", "Text", "Changes", "Bytes", "Table"]) {
      await view.getByRole("tab", { name: tab }).click();
      await view.getByRole("region", { name: /^Rows|Figures/ }).or(view.getByRole("list", { name: /^(Lines|Changes|Bytes) of/ })).waitFor();
    }
    await view.getByRole("button", { name: "Full screen" }).click();
    await view.getByRole("button", { name: "Leave full screen" }).waitFor();
    const { modes } = await stage.tab.evaluate(() => window.host.record);
    assert.deepEqual(modes, ["fullscreen"]);
    for (const method of ["ping", "sampling/unknown"]) await stage.tab.evaluate((method) => window.host.ask(`of-${method}`, method), method);
    const answered = ["result of ping", "error of sampling/unknown"];
    await eventually("answers", () => answered.filter((one) => stage.messages.seen.has(one)).length, (count) => count === 2);
    for (const [uri, role] of [["protocol:json", "tree"], ["protocol:svg", "img"]]) {
      await (await stage.open({ uri, ...(role === "tree" && { as: "json" }) }, { sandbox })).getByRole(role).first().waitFor();
    }
    const outside = stage.requests.filter((url) => !url.startsWith(stage.host.origin) && !url.startsWith(stage.sandbox.origin) && !url.startsWith("data:image/"));
    assert.deepEqual(outside, []);
    await stage.tab.evaluate(() => window.host.teardown());
  }
  const sent = ["tools/call", "ui/request-display-mode", "ui/notifications/initialized", "ui/notifications/size-changed", "result of ui/resource-teardown"];
  assert.deepEqual(sent.filter((one) => !stage.messages.seen.has(one)), []);
  assert.deepEqual(stage.violations, []);
  assert.deepEqual(stage.errors, []);

  // A new revision is offered, and shown when the person wants it.
  const view = await stage.open({ uri: "protocol:csv" });
  await view.getByText("501 rows").waitFor();
  await stage.update({ uri: "protocol:csv", text: orders(502) });
  await view.getByRole("button", { name: "Show it" }).click();
  await view.getByText("502 rows").waitFor();
  // Before the result, and when the call is cancelled.
  const waiting = await stage.open({ uri: "protocol:csv" }, { result: null });
  await waiting.getByText("Opening protocol:csv").waitFor();
  await stage.tab.evaluate(() => window.host.cancel("by the person"));
  await waiting.getByText("by the person").waitFor();
  await eventually("no errors", async () => stage.errors, (errors) => errors.length === 0);
}

/** The check of messages finds what is wrong with them. */
function refuses() {
  const begin = { jsonrpc: "2.0", id: 1, method: "ui/initialize", params: { protocolVersion: "2026-01-26", appInfo: { name: "a", version: "1" }, appCapabilities: {} } };
  const ready = { jsonrpc: "2.0", method: "ui/notifications/initialized", params: {} };
  const answer = ["host", { jsonrpc: "2.0", id: 1, result: {} }];
  const problems = (...reports) => {
    const messages = new Messages();
    messages.report("open");
    for (const report of reports) messages.report(...(Array.isArray(report) ? report : ["view", report]));
    return messages.problems;
  };
  assert.deepEqual(problems(begin, answer, ready), []);
  for (const wrong of [
    { jsonrpc: "1.0", id: 2, method: "tools/call", params: { name: "a", arguments: {} } },
    { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "a", arguments: {} } },
    { jsonrpc: "2.0", id: 2, method: "tools/call", params: { arguments: {} } },
    { jsonrpc: "2.0", id: 2, method: "tools/call", params: { name: "a", arguments: [] } },
    { jsonrpc: "2.0", id: 2, method: "ui/open-link", params: {} },
    { jsonrpc: "2.0", id: 2, method: "ui/request-display-mode", params: { mode: "huge" } },
    { jsonrpc: "2.0", method: "ui/notifications/size-changed", params: { height: "460px" } },
    { jsonrpc: "2.0", method: "ui/notifications/invented", params: {} },
    { jsonrpc: "2.0", id: 9, result: {} },
    begin,
    ready,
  ]) {
    assert.equal(problems(begin, answer, ready, wrong).length, 1, JSON.stringify(wrong));
  }
  assert.equal(problems(begin, ready).length, 1);
  assert.equal(problems(ready).length, 1);
  const asked = ["host", { jsonrpc: "2.0", id: 5, method: "ui/resource-teardown", params: {} }];
  assert.deepEqual(problems(begin, answer, ready, asked, { jsonrpc: "2.0", id: 5, result: {} }), []);
  assert.equal(problems(begin, answer, ready, asked, { jsonrpc: "2.0", id: 5, result: 1 }).length, 1);
}
