// A host of MCP Apps, on the SDK's AppBridge. Bundled, and run in the browser.

import { AppBridge, PostMessageTransport } from "@modelcontextprotocol/ext-apps/app-bridge";

const record = { messages: [], sizes: [], links: [], modes: [] };
let bridge;
let frame;

const report = (from, message) => {
  record.messages.push({ from, message });
  window.report(from, message);
};

window.addEventListener("message", (event) => {
  if (frame && event.source === frame.contentWindow) report("view", event.data);
});

/** Opens the page as a host does: frame, bridge, input, and the result of the call. */
async function open({ url, sandbox, input, result, context, frameStyle }) {
  await bridge?.close();
  frame?.remove();
  record.messages = [];
  window.report("open");
  frame = document.createElement("iframe");
  frame.title = "Viewer";
  frame.setAttribute("sandbox", sandbox);
  frame.style.cssText = frameStyle;
  document.body.append(frame);
  bridge = new AppBridge(
    null,
    { name: "Test host", version: "1" },
    { openLinks: {}, serverTools: {}, logging: {} },
    { hostContext: context },
  );
  bridge.oncalltool = (params) => window.callTool(params);
  bridge.onopenlink = async ({ url }) => {
    record.links.push(url);
    return {};
  };
  bridge.onsizechange = (size) => {
    record.sizes.push(size);
    if (size.height && frame.dataset.mode !== "fullscreen") frame.style.height = `${size.height}px`;
  };
  bridge.onrequestdisplaymode = async ({ mode }) => {
    record.modes.push(mode);
    frame.dataset.mode = mode;
    frame.style.height = mode === "fullscreen" ? "100vh" : "460px";
    bridge.setHostContext({ ...context, displayMode: mode });
    return { mode };
  };
  const initialized = new Promise((resolve) => {
    bridge.oninitialized = resolve;
  });
  const transport = new PostMessageTransport(frame.contentWindow, frame.contentWindow);
  const send = transport.send.bind(transport);
  transport.send = (message, ...rest) => {
    report("host", message);
    return send(message, ...rest);
  };
  await bridge.connect(transport);
  frame.src = url;
  await initialized;
  await bridge.sendToolInput({ arguments: input });
  if (result) await bridge.sendToolResult(result);
}

/** Sends a request of which the bridge knows nothing. */
function ask(id, method) {
  const message = { jsonrpc: "2.0", id, method, params: {} };
  report("host", message);
  frame.contentWindow.postMessage(message, "*");
}

window.host = {
  open,
  ask,
  record,
  context: (context) => bridge.setHostContext(context),
  teardown: () => bridge.teardownResource({}),
  cancel: (reason) => bridge.sendToolCancelled({ reason }),
};
