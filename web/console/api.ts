// Requests of the page to the server, as the identity of its session.

import type { ToolResult } from "../view/bridge.ts";

const VERSION = "2026-07-28";

const META = {
  "io.modelcontextprotocol/protocolVersion": VERSION,
  "io.modelcontextprotocol/clientInfo": { name: "larder-console", version: "1" },
  "io.modelcontextprotocol/clientCapabilities": {
    extensions: { "io.modelcontextprotocol/ui": { mimeTypes: ["text/html;profile=mcp-app"] } },
  },
};

/** Who is logged in, if anybody. */
export interface Session {
  /** Whether callers need a token. */
  login: boolean;
  /** The host of the authorization server at which people log in, if there is one. */
  oidc?: string;
  /** Whether they may log in with a token there, too. */
  tokens?: boolean;
  user?: string;
  /** Whether they have the scope of operators. */
  operator?: boolean;
  expires?: string | null;
}

/** The session has ended. */
export class LoggedOut extends Error {}

export async function session(): Promise<Session> {
  return (await (await request("session")).json()) as Session;
}

/** A server behind this one. */
export interface Upstream {
  name: string;
  state: "idle" | "no_access" | "needs_login" | "starting" | "down" | "up" | "degraded";
  /** Why a part of its lists is not offered. */
  degraded: string | null;
  tools: number | null;
  last_error: string | null;
  error_seconds_ago: number | null;
}

export async function upstreams(): Promise<Upstream[]> {
  return ((await (await request("upstreams")).json()) as { upstreams: Upstream[] }).upstreams;
}

/** The counters of an instance at a time, in milliseconds since the epoch. */
export interface Sample {
  time: number;
  /** Since the start of the instance. */
  calls: number;
  errors: number;
  returned_bytes: number;
  kept_out_bytes: number;
  /** At that time. */
  running: number;
  streams: number;
}

/** What an instance has done since its start. */
export interface Samples {
  started: number;
  /** Of the last hour, the oldest first. */
  samples: Sample[];
  now: Sample;
  /** Those with the most calls, and all others together. */
  callers: Caller[];
  others: Caller;
}

/** What a caller has done since the start of the instance. */
export interface Caller {
  name: string;
  calls: number;
  errors: number;
  received_bytes: number;
  stored_bytes: number;
}

export async function traffic(): Promise<Samples> {
  return (await (await request("traffic")).json()) as Samples;
}

/** Resources and the bytes that they count. */
export interface Use {
  resources: number;
  bytes: number;
}

/** A page of the owners who have stored something. */
export interface OwnerPage {
  owners: (Use & { owner: string; name?: string | null })[];
  /** Where the next page begins. */
  next: string | null;
  /** Of all owners. */
  total: Use;
  /** Of each owner. */
  quota: Use;
}

export async function owners(after: string): Promise<OwnerPage> {
  const query = after === "" ? "" : `?${new URLSearchParams({ after })}`;
  return (await (await request(`owners${query}`)).json()) as OwnerPage;
}

/** Deletes all that an owner has stored. Returns the number of resources. */
export async function purge(owner: string): Promise<number> {
  const response = await request("purge", { method: "POST", body: new URLSearchParams({ owner }) });
  return ((await response.json()) as { deleted: number }).deleted;
}

export async function logIn(token: string): Promise<void> {
  await request("login", { method: "POST", body: new URLSearchParams({ token }) });
}

/** Begins a login at the authorization server. Returns the address of its page. */
export async function beginLogin(): Promise<string> {
  const begun = (await (await request("oidc", { method: "POST" })).json()) as { url: string };
  return begun.url;
}

export async function logOut(): Promise<void> {
  await request("logout", { method: "POST" });
}

let nextId = 1;

/** A request of MCP. */
export async function rpc(
  method: string,
  params: { [name: string]: unknown },
  parse: (text: string) => unknown = JSON.parse,
): Promise<unknown> {
  const name = typeof params["name"] === "string" ? params["name"] : undefined;
  const response = await request("rpc", {
    method: "POST",
    headers: {
      "content-type": "application/json",
      "mcp-protocol-version": VERSION,
      "mcp-method": method,
      ...(name !== undefined && { "mcp-name": name }),
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: nextId++, method, params: { ...params, _meta: META } }),
  });
  const answer = parse(await response.text()) as { result?: unknown; error?: { message: string } };
  if (answer.error) throw new Error(answer.error.message);
  return answer.result;
}

export async function call(name: string, args: object): Promise<ToolResult> {
  return (await rpc("tools/call", { name, arguments: args })) as ToolResult;
}

/** The result of a tool, in which integers that JavaScript would round are texts. */
export async function callExactly(name: string, args: object): Promise<ToolResult> {
  return (await rpc("tools/call", { name, arguments: args }, parseExactly)) as ToolResult;
}

/** JSON, with integers that JavaScript would round as texts. */
export function parseExactly(json: string): unknown {
  const token = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;
  const isRounded = (text: string) => /^-?\d{16,}$/.test(text) && !Number.isSafeInteger(Number(text));
  return JSON.parse(json.replace(token, (text) => (isRounded(text) ? `"${text}"` : text)));
}

/** The text of a result. What the server refuses is an error with its words. */
export async function text(name: string, args: object): Promise<string> {
  const result = await call(name, args);
  const text = (result.content ?? []).map((block) => block.text ?? "").join("\n");
  if (result.isError) throw new Error(text || "The server refuses this.");
  return text;
}

/** The structured value of a result. */
export async function data<T>(name: string, args: object): Promise<T> {
  const result = await call(name, args);
  if (!result.isError && result.structuredContent) return result.structuredContent as T;
  const text = (result.content ?? []).map((block) => block.text ?? "").join("\n");
  if (result.isError) throw new Error(text || "The server refuses this.");
  return JSON.parse(text) as T;
}

/** The names of the tools that this identity may call. */
export async function tools(): Promise<Set<string>> {
  const names = new Set<string>();
  let cursor: string | undefined;
  do {
    const page = (await rpc("tools/list", cursor === undefined ? {} : { cursor })) as {
      tools: { name: string }[];
      nextCursor?: string;
    };
    for (const tool of page.tools) names.add(tool.name);
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  return names;
}

/** A link of this server, at the origin of this page. */
export function here(link: string): string {
  const url = new URL(link);
  if (url.hostname !== location.hostname) {
    throw new Error(`Links of this server are at ${url.origin}: open the console there.`);
  }
  return location.origin + url.pathname + url.search;
}

async function request(path: string, init: RequestInit = {}): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(path, init);
  } catch {
    throw new Error("The server does not respond.");
  }
  if (response.ok) return response;
  const body = (await response.json().catch(() => undefined)) as { error?: { message?: string } } | undefined;
  const message = body?.error?.message ?? `The server responds with ${response.status}.`;
  throw response.status === 401 && path !== "login" ? new LoggedOut(message) : new Error(message);
}
