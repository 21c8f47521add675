// Checks what the viewer sends to its host, message by message: JSON-RPC and MCP by the schemas of the SDK, MCP Apps by its
// schema.json, and the order in which a page introduces itself.

import fs from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";

import {
  CallToolRequestSchema,
  EmptyResultSchema,
  JSONRPCErrorResponseSchema,
  JSONRPCNotificationSchema,
  JSONRPCRequestSchema,
  JSONRPCResultResponseSchema,
} from "@modelcontextprotocol/core";
import Ajv from "ajv/dist/2020.js";

const require = createRequire(import.meta.url);
const sdk = path.dirname(require.resolve("@modelcontextprotocol/ext-apps/app-bridge"));
const ajv = new Ajv({ strict: false, validateFormats: false });
ajv.addSchema(JSON.parse(fs.readFileSync(path.join(sdk, "generated/schema.json"), "utf8")), "apps");

/** A check that returns what is wrong. */
const apps = (type) => {
  const validate = ajv.compile({ $ref: `apps#/$defs/${type}` });
  return (value) => (validate(value) ? undefined : ajv.errorsText(validate.errors));
};
const mcp = (schema) => (value) => schema.safeParse(value).error?.message;

const REQUESTS = {
  "ui/initialize": apps("McpUiInitializeRequest"),
  "ui/open-link": apps("McpUiOpenLinkRequest"),
  "ui/request-display-mode": apps("McpUiRequestDisplayModeRequest"),
  "tools/call": mcp(CallToolRequestSchema),
};
const NOTIFICATIONS = {
  "ui/notifications/initialized": apps("McpUiInitializedNotification"),
  "ui/notifications/size-changed": apps("McpUiSizeChangedNotification"),
};
/** Of results, by the method that the host asked with. */
const RESULTS = {
  "ui/resource-teardown": apps("McpUiResourceTeardownResult"),
  ping: mcp(EmptyResultSchema),
};

export class Messages {
  problems = [];
  /** What pages have sent: methods, and `result of` or `error of` what the host asked. */
  seen = new Set();
  #page;

  /** What the host reports: `open` for a page that begins, or who sent a message. */
  report(from, message) {
    if (from === "open") this.#page = { sent: 0, ids: new Set(), asked: new Map(), isInitialized: false };
    else if (from === "host") this.#received(message);
    else this.#sent(message);
  }

  #received(message) {
    if (message.method === undefined) this.#page.isInitialized ||= message.id === this.#page.initialize;
    else if (message.id !== undefined) this.#page.asked.set(message.id, message.method);
  }

  #sent(message) {
    const page = this.#page;
    const problem = this.#envelope(message) ?? this.#order(message, page);
    if (problem) this.problems.push(`${problem}: ${JSON.stringify(message).slice(0, 400)}`);
    page.sent += 1;
  }

  #envelope(message) {
    const page = this.#page;
    const { jsonrpc: _, id, ...bare } = message ?? {};
    if (bare.method !== undefined && id !== undefined) {
      this.seen.add(bare.method);
      if (page.ids.has(id)) return "an ID is used twice";
      page.ids.add(id);
      const check = Object.hasOwn(REQUESTS, bare.method) && REQUESTS[bare.method];
      return mcp(JSONRPCRequestSchema)(message) ?? (check ? check(bare) : "an unknown request");
    }
    if (bare.method !== undefined) {
      this.seen.add(bare.method);
      const check = Object.hasOwn(NOTIFICATIONS, bare.method) && NOTIFICATIONS[bare.method];
      return mcp(JSONRPCNotificationSchema)(message) ?? (check ? check(bare) : "an unknown notification");
    }
    const asked = page.asked.get(id);
    if (asked === undefined) return "a response that nobody waits for";
    page.asked.delete(id);
    const known = Object.hasOwn(RESULTS, asked) && RESULTS[asked];
    this.seen.add(`${known ? "result" : "error"} of ${asked}`);
    if (!known) return mcp(JSONRPCErrorResponseSchema)(message);
    return mcp(JSONRPCResultResponseSchema)(message) ?? known(bare.result);
  }

  /** A page introduces itself, waits for the answer, and says that it is ready, before anything else. */
  #order({ id, method }, page) {
    if (page.sent === 0) {
      page.initialize = id;
      return method === "ui/initialize" ? undefined : "not ui/initialize first";
    }
    if (method === "ui/initialize") return "ui/initialize twice";
    if (page.sent > 1) return method === "ui/notifications/initialized" ? "initialized twice" : undefined;
    if (method !== "ui/notifications/initialized") return "something before initialized";
    return page.isInitialized ? undefined : "initialized before the answer of the host";
  }
}
