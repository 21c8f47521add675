// A source that reads by the tools that only the page calls.

import { type Pdf, pdfOfPage } from "../shared/pdf-code.ts";
import type { ChartRequest, Drawn, Found, Info, SearchRequest, Source, Window, WindowRequest } from "../shared/source.ts";
import type { ToolResult } from "./bridge.ts";

type Call = (name: string, args: object) => Promise<ToolResult>;

export class ToolSource implements Source {
  constructor(
    private call: Call,
    private uri: string,
    private revision?: number,
    /** Where another page than that of MCP Apps has what draws PDF. */
    private code?: () => Promise<Pdf>,
  ) {}

  at(uri: string, revision?: number): ToolSource {
    return new ToolSource(this.call, uri, revision, this.code);
  }

  async info(): Promise<Info> {
    return (await this.read("view_window", { as: "info" })) as unknown as Info;
  }

  async latest(): Promise<number> {
    const answer = value(await this.call("view_bytes", { uri: this.uri, length: 1 }));
    return Number(answer["revision"]);
  }

  async window<R extends WindowRequest>(request: R): Promise<Window<R>> {
    return (await this.read("view_window", request)) as unknown as Window<R>;
  }

  async bytes(offset: number, length: number): Promise<Uint8Array> {
    const answer = await this.read("view_bytes", { offset, length });
    const text = atob(String(answer["data"]));
    return Uint8Array.from(text, (c) => c.charCodeAt(0));
  }

  async search(request: SearchRequest): Promise<Found> {
    const { query, literal, ignoreCase, offset, limit } = request;
    const args = { as: "log", query, literal, ignore_case: ignoreCase, offset, limit };
    const answer = await this.read("view_window", args);
    const next = answer["next"] as { offset?: number } | undefined;
    const { total, lines, rows } = answer as unknown as Found;
    return { total, lines, rows, ...(next?.offset !== undefined && { next: next.offset }) };
  }

  async chart<R extends ChartRequest>(request: R): Promise<Drawn<R>> {
    return (await this.read("view_window", { as: "chart", ...request })) as unknown as Drawn<R>;
  }

  pdf(): Promise<Pdf> {
    return this.code?.() ?? pdfOfPage(this);
  }

  private async read(tool: string, args: object): Promise<{ [name: string]: unknown }> {
    const revision = this.revision === undefined ? {} : { revision: this.revision };
    return value(await this.call(tool, { uri: this.uri, ...revision, ...args }));
  }
}

/** The value of a result. What the server refuses is an error with its words. */
export function value(result: ToolResult): { [name: string]: unknown } {
  if (result.isError || !result.structuredContent) {
    const text = result.content?.find((block) => block.type === "text")?.text;
    throw new Error(text ?? "The server sent no answer.");
  }
  return result.structuredContent;
}
