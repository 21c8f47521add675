// The messages between the page and its host (MCP Apps, 2026-01-26): JSON-RPC by postMessage.

const VERSION = "2026-01-26";

export type DisplayMode = "inline" | "fullscreen" | "pip";

/** What the host says about itself and the page's place in it. */
export interface HostContext {
  theme?: "light" | "dark";
  styles?: { variables?: { [name: string]: string | undefined }; css?: { fonts?: string } };
  displayMode?: DisplayMode;
  availableDisplayModes?: DisplayMode[];
  containerDimensions?: { height?: number; maxHeight?: number; width?: number; maxWidth?: number };
  safeAreaInsets?: { top: number; right: number; bottom: number; left: number };
}

export interface HostCapabilities {
  openLinks?: object;
  serverTools?: object;
}

export interface ToolResult {
  isError?: boolean;
  content?: { type: string; text?: string }[];
  structuredContent?: { [name: string]: unknown };
}

interface Message {
  jsonrpc?: string;
  id?: number | string;
  method?: string;
  params?: { [name: string]: unknown };
  result?: unknown;
  error?: { code: number; message: string };
}

interface Handlers {
  input(args: { [name: string]: unknown }): void;
  result(result: ToolResult): void;
  cancelled(reason: string | undefined): void;
  context(context: HostContext): void;
  /** The host is about to remove the page, which has to be silent from then on. */
  closed(): void;
}

/** The host ended a request with an error. */
export class HostError extends Error {}

export class Bridge {
  context: HostContext = {};
  capabilities: HostCapabilities = {};
  private waiting = new Map<number, { resolve(value: unknown): void; reject(error: Error): void }>();
  private nextId = 1;
  private isClosed = false;

  constructor(
    private host: Window,
    private handlers: Handlers,
  ) {
    window.addEventListener("message", (event) => {
      if (event.source === this.host) this.receive(event.data as Message);
    });
  }

  /** Introduces the page. Some hosts show it only then. */
  async start(): Promise<void> {
    const answer = (await this.request("ui/initialize", {
      protocolVersion: VERSION,
      appInfo: { name: "larder-viewer", title: "Larder", version: "1" },
      appCapabilities: { availableDisplayModes: ["inline", "fullscreen"] },
    })) as { hostContext?: HostContext; hostCapabilities?: HostCapabilities };
    this.capabilities = answer.hostCapabilities ?? {};
    this.update(answer.hostContext ?? {});
    this.notify("ui/notifications/initialized", {});
  }

  async call(name: string, args: object): Promise<ToolResult> {
    return (await this.request("tools/call", { name, arguments: args })) as ToolResult;
  }

  /** Asks for a link to be opened: a page must not do that itself. */
  async open(url: string): Promise<void> {
    await this.request("ui/open-link", { url });
  }

  async display(mode: DisplayMode): Promise<void> {
    const answer = (await this.request("ui/request-display-mode", { mode })) as { mode?: DisplayMode };
    if (answer.mode) this.update({ displayMode: answer.mode });
  }

  resized(height: number): void {
    this.notify("ui/notifications/size-changed", { height });
  }

  private request(method: string, params: object): Promise<unknown> {
    const id = this.nextId++;
    return new Promise((resolve, reject) => {
      if (this.isClosed) return reject(new HostError("The host has closed the page."));
      this.waiting.set(id, { resolve, reject });
      this.post({ id, method, params: params as { [name: string]: unknown } });
    });
  }

  private notify(method: string, params: object): void {
    this.post({ method, params: params as { [name: string]: unknown } });
  }

  private post(message: Message): void {
    if (this.isClosed) return;
    // The page does not know the origin of its host, and sends nothing that is secret from it.
    this.host.postMessage({ jsonrpc: "2.0", ...message }, "*");
  }

  private receive(message: Message | null): void {
    if (message?.jsonrpc !== "2.0") return;
    if (message.method === undefined) this.settle(message);
    else if (message.id === undefined) this.notified(message.method, message.params ?? {});
    else this.requested(message.id, message.method);
  }

  private settle(message: Message): void {
    const waiting = this.waiting.get(Number(message.id));
    if (!waiting) return;
    this.waiting.delete(Number(message.id));
    if (message.error) waiting.reject(new HostError(message.error.message));
    else waiting.resolve(message.result ?? {});
  }

  private notified(method: string, params: { [name: string]: unknown }): void {
    switch (method) {
      case "ui/notifications/tool-input":
        return this.handlers.input((params["arguments"] ?? {}) as { [name: string]: unknown });
      case "ui/notifications/tool-result":
        return this.handlers.result(params as ToolResult);
      case "ui/notifications/tool-cancelled":
        return this.handlers.cancelled(params["reason"] as string | undefined);
      case "ui/notifications/host-context-changed":
        return this.update(params as HostContext);
    }
  }

  private requested(id: number | string, method: string): void {
    const isKnown = method === "ui/resource-teardown" || method === "ping";
    const error = { code: -32601, message: `Unknown method: ${method}` };
    const answer = isKnown ? { id, result: {} } : { id, error };
    this.host.postMessage({ jsonrpc: "2.0", ...answer }, "*");
    if (method === "ui/resource-teardown") {
      this.isClosed = true;
      for (const { reject } of this.waiting.values()) reject(new HostError("The host has closed the page."));
      this.waiting.clear();
      this.handlers.closed();
    }
  }

  private update(changed: HostContext): void {
    this.context = { ...this.context, ...changed };
    this.handlers.context(this.context);
  }
}
