// Every message fits the specification, in its order, under several policies.

import fs from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";

import Ajv from "ajv/dist/2020.js";

import { assert, eventually } from "../assert.mjs";
import { orders, tree } from "../content.mjs";
import { DEFAULT_POLICY, STRICT_POLICY } from "../stage.mjs";

const require = createRequire(import.meta.url);
const sdk = path.dirname(require.resolve("@modelcontextprotocol/ext-apps/app-bridge"));
const schema = JSON.parse(fs.readFileSync(path.join(sdk, "generated/schema.json"), "utf8"));
const TYPES = {
  "ui/initialize": "McpUiInitializeRequest",
  "ui/open-link": "McpUiOpenLinkRequest",
  "ui/request-display-mode": "McpUiRequestDisplayModeRequest",
  "ui/notifications/initialized": "McpUiInitializedNotification",
  "ui/notifications/size-changed": "McpUiSizeChangedNotification",
};

export default async function protocol(stage) {
  const ajv = new Ajv({ strict: false, validateFormats: false });
  ajv.addSchema(schema, "apps");
  const validators = Object.fromEntries(
    Object.entries(TYPES).map(([method, type]) => [method, ajv.compile({ $ref: `apps#/$defs/${type}` })]),
  );
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
    const { messages, modes } = await stage.tab.evaluate(() => window.host.record);
    assert.deepEqual(modes, ["fullscreen"]);
    const methods = messages.filter((one) => one.from === "view").map((one) => one.message.method);
    assert.equal(methods[0], "ui/initialize");
    assert.equal(methods.filter((method) => method !== undefined)[1], "ui/notifications/initialized");
    assert.ok(methods.includes("ui/notifications/size-changed"));
    for (const { from, message } of messages) {
      assert.equal(message.jsonrpc, "2.0");
      const validate = from === "view" ? validators[message.method] : undefined;
      if (from === "view" && message.method && message.method !== "tools/call") assert.ok(validate, `unknown: ${message.method}`);
      // The schemas describe the message without its envelope.
      const { jsonrpc: _, id: __, ...bare } = message;
      if (validate) assert.ok(validate(bare), `${JSON.stringify(message)}: ${ajv.errorsText(validate.errors)}`);
    }
    for (const [uri, role] of [["protocol:json", "tree"], ["protocol:svg", "img"]]) {
      await (await stage.open({ uri, ...(role === "tree" && { as: "json" }) }, { sandbox })).getByRole(role).first().waitFor();
    }
    const outside = stage.requests.filter((url) => !url.startsWith(stage.host.origin) && !url.startsWith(stage.sandbox.origin) && !url.startsWith("data:image/"));
    assert.deepEqual(outside, []);
    await stage.tab.evaluate(() => window.host.teardown());
  }
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
