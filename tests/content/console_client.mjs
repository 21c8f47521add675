// A client that stores what a walk looks at, and reads what SQL says of it.

const VERSION = "2026-07-28";
const META = {
  "io.modelcontextprotocol/protocolVersion": VERSION,
  "io.modelcontextprotocol/clientInfo": { name: "walk", version: "1" },
  "io.modelcontextprotocol/clientCapabilities": {},
};

export class Client {
  constructor({ mcp, token }) {
    this.url = mcp;
    this.token = token;
  }

  async call(name, args) {
    const response = await fetch(this.url, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
        "mcp-protocol-version": VERSION,
        "mcp-method": "tools/call",
        "mcp-name": name,
        ...(this.token && { authorization: `Bearer ${this.token}` }),
      },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, arguments: args, _meta: META } }),
    });
    const text = await response.text();
    const json = text.startsWith("{") ? text : text.split("\n").findLast((line) => line.startsWith("data:")).slice(5);
    const { result, error } = JSON.parse(json);
    if (error || result.isError) throw new Error(`${name}: ${error?.message ?? result.content[0].text}`);
    return result;
  }

  store(args) {
    return this.call("create_resource", args);
  }

  /** The rows of a query. */
  async sql(uri, sql) {
    return (await this.call("query_resource", { from: uri, sql })).structuredContent.rows;
  }
}
