// The parts of a test: the browser, the host on one origin, the page on another, Larder behind.

import fs from "node:fs";
import http from "node:http";
import path from "node:path";
import { fileURLToPath } from "node:url";

import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { build } from "esbuild";
import { chromium } from "playwright-core";

import { Messages } from "./messages.mjs";

const here = path.dirname(fileURLToPath(import.meta.url));
export const PAGE_TYPE = "text/html;profile=mcp-app";
const EXTENSION = "io.modelcontextprotocol/ui";

/** What a host applies to a page that asks for nothing (MCP Apps, Content Security Policy). */
export const DEFAULT_POLICY =
  "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; media-src 'self' data:; connect-src 'none'";
/** Without an origin of its own, as in a frame with srcdoc. */
export const STRICT_POLICY =
  "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; connect-src 'none'; font-src 'none'; worker-src 'none'; frame-src 'none'; base-uri 'none'; form-action 'none'";

function listen(handler) {
  return new Promise((resolve) => {
    const server = http.createServer(handler);
    server.listen(0, "127.0.0.1", () => resolve({ server, origin: `http://127.0.0.1:${server.address().port}` }));
  });
}

export class Stage {
  violations = [];
  errors = [];
  requests = [];
  calls = [];
  beacons = [];
  /** Checks what the page sends, in all scenarios. */
  messages = new Messages();
  policy = DEFAULT_POLICY;

  static async start(given) {
    const stage = new Stage();
    stage.given = given;
    const capabilities = { extensions: { [EXTENSION]: { mimeTypes: [PAGE_TYPE] } } };
    stage.client = new Client({ name: "test-host", version: "1" }, { capabilities });
    await stage.client.connect(new StreamableHTTPClientTransport(new URL(given.url)));
    const tools = await stage.client.listTools();
    stage.tool = tools.tools.find((tool) => tool.name === "view_resource");
    const uri = stage.tool._meta.ui.resourceUri;
    stage.page = (await stage.client.readResource({ uri })).contents[0];
    // To try a page before it is built into Larder.
    if (given.page) stage.page.text = fs.readFileSync(given.page, "utf8");
    const bundle = await build({
      absWorkingDir: here,
      entryPoints: ["host.mjs"],
      bundle: true,
      write: false,
      format: "iife",
      define: { "process.env.NODE_ENV": '"production"' },
    });
    const script = bundle.outputFiles[0].text;
    stage.host = await listen((request, response) => {
      response.setHeader("content-type", request.url === "/host.js" ? "text/javascript" : "text/html");
      const html = '<!doctype html><meta charset="utf-8"><style>body{margin:0}iframe{display:block;border:0;width:100%}</style><body><script src="/host.js"></script>';
      response.end(request.url === "/host.js" ? script : html);
    });
    stage.sandbox = await listen((_, response) => {
      response.setHeader("content-type", "text/html; charset=utf-8");
      response.setHeader("content-security-policy", stage.policy);
      response.end(stage.page.text);
    });
    stage.browser = await chromium.launch({ executablePath: given.chromium, args: ["--no-sandbox"] });
    return stage;
  }

  async stop() {
    await this.browser?.close();
    await this.client?.close();
    this.host?.server.closeAllConnections();
    this.sandbox?.server.closeAllConnections();
    this.host?.server.close();
    this.sandbox?.server.close();
  }

  /** A window of the browser with the host in it. */
  async window(options = {}) {
    await this.context?.close();
    this.context = await this.browser.newContext({ viewport: { width: 900, height: 640 }, ...options });
    this.tab = await this.context.newPage();
    await this.context.route(/beacon/, (route) => {
      this.beacons.push(route.request().url());
      return route.abort();
    });
    this.tab.on("console", (message) => {
      const text = message.text();
      if (/Content Security Policy|Refused to/.test(text)) this.violations.push(text);
      else if (message.type() === "error") this.errors.push(text);
    });
    this.tab.on("pageerror", (error) => this.errors.push(error.message));
    this.tab.on("request", (request) => this.requests.push(request.url()));
    this.tab.on("dialog", (dialog) => {
      this.beacons.push(`dialog: ${dialog.message()}`);
      return dialog.dismiss();
    });
    await this.context.exposeBinding("report", (_, from, message) => this.messages.report(from, message));
    await this.context.exposeBinding("callTool", async (_, params) => {
      this.calls.push(params);
      if (this.delay) await this.delay(params);
      return this.client.callTool(params);
    });
    await this.tab.goto(this.host.origin);
  }

  /** Calls view_resource and shows its page. Returns the frame. */
  async open(input, { context = {}, sandbox = "allow-scripts", height = "460px", result } = {}) {
    if (!this.tab) await this.window();
    const answer = result === undefined ? await this.client.callTool({ name: "view_resource", arguments: input }) : result;
    await this.tab.evaluate((given) => window.host.open(given), {
      url: this.sandbox.origin,
      sandbox,
      input,
      result: answer,
      context: { theme: "light", displayMode: "inline", availableDisplayModes: ["inline", "fullscreen"], ...context },
      frameStyle: `height: ${height}`,
    });
    return this.tab.frameLocator("iframe");
  }

  frame() {
    return this.tab.frames().find((frame) => frame.url().startsWith(this.sandbox.origin));
  }

  async store(args) {
    const result = await this.client.callTool({ name: "create_resource", arguments: args });
    if (result.isError) throw new Error(result.content[0].text);
  }

  async update(args) {
    const result = await this.client.callTool({ name: "update_resource", arguments: args });
    if (result.isError) throw new Error(result.content[0].text);
  }

  /** Prints how long work takes. No test fails by it: machines differ. */
  async measure(what, work) {
    const began = performance.now();
    const result = await work();
    console.log(`measured: ${what}: ${((performance.now() - began) / 1000).toFixed(2)} s`);
    return result;
  }

  async shot(name) {
    if (!this.given.screenshots) return;
    fs.mkdirSync(this.given.screenshots, { recursive: true });
    await this.tab.screenshot({ path: path.join(this.given.screenshots, `${name}.png`) });
  }
}
