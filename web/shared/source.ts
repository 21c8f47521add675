// What a viewer reads from. A page of MCP Apps and the console have one each.

export type View = "table" | "json" | "log" | "image" | "pdf" | "diff" | "chart" | "bytes";
export type Type = "empty" | "number" | "boolean" | "text" | "json";

export interface Column {
  name: string;
  type: Type;
}

/** What is known about a resource before a part of it is read. */
export interface Info {
  uri: string;
  name: string;
  title?: string;
  description?: string;
  mimeType: string;
  text: boolean;
  size: number;
  lines: number;
  revision: number;
  /** The stored revisions, the oldest first. */
  revisions: number[];
  updated: string;
  expires: string;
  /** The view to begin with. */
  as: View;
  views: View[];
  records?: { total: number; at?: string; columns: Column[] };
  /** Whether rows can be sorted and filtered. */
  sorts: boolean;
  /** Whether lines can be searched. */
  searches: boolean;
  against?: { uri: string; revision: number; size: number };
  /** Seconds between two looks for a new revision. */
  poll: number;
}

export type Op = "contains" | "equals" | "not" | "less" | "greater" | "empty" | "filled";

export interface Sort {
  column: string;
  descending: boolean;
}

export interface Filter {
  column: string;
  op: Op;
  value: string;
}

export type Cell = string | null;

/** Rows in the order of a request; there may be fewer than requested. */
export interface Rows {
  columns: Column[];
  rows: Cell[][];
  offset: number;
  /** Only with the first rows of a filtered table. */
  total?: number;
  /** Of a chart: the distance of two rows in the table. */
  step?: number;
}

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

/** A small JSON value, or what stands for a large one. */
export type Child = { key?: string } & (
  | { value: Json }
  | { type: "list" | "object" | "text" | "scalar"; size?: number; preview: string }
);

export interface Children {
  container: "list" | "object" | "scalar";
  children: Child[];
  offset: number;
  total: number;
}

/** A line, or the beginning of a long one. */
export type Line = string | { text: string; bytes: number };

export interface Lines {
  lines: Line[];
  offset: number;
  total: number;
}

export type WindowRequest =
  | { as: "chart"; offset: number; limit: number; columns: string[] }
  | { as: "table"; offset: number; limit: number; sort?: Sort; filter?: Filter[]; query?: string }
  | { as: "json"; offset: number; limit: number; at: string }
  | { as: "log"; offset: number; limit: number };

export type Window<R extends WindowRequest> = R extends { as: "json" }
  ? Children
  : R extends { as: "log" }
    ? Lines
    : Rows;

export interface SearchRequest {
  /** A regular expression, or the text itself. */
  query: string;
  literal: boolean;
  ignoreCase: boolean;
  /** How many matches to skip. */
  offset: number;
  limit: number;
}

/** Lines with matches. */
export interface Found {
  /** The number of all matches. */
  total: number;
  lines: number;
  rows: { line: number; text: string }[];
  /** How many matches to skip for those that follow. */
  next?: number;
}

/** One revision of one resource. */
export interface Source {
  /** The facts of this revision. */
  info(): Promise<Info>;
  /** The number of the latest revision. */
  latest(): Promise<number>;
  window<R extends WindowRequest>(request: R): Promise<Window<R>>;
  /** At most 256 KiB. */
  bytes(offset: number, length: number): Promise<Uint8Array>;
  search(request: SearchRequest): Promise<Found>;
  /** Another resource or revision, read in the same way; the latest one by default. */
  at(uri: string, revision?: number): Source;
}

/** The most bytes of one read. */
export const MAX_BYTES = 256 * 1024;

/** Bytes from `offset` on, in as many reads as that takes. */
export async function readAll(
  source: Source,
  size: number,
  progress?: (read: number) => void,
): Promise<Uint8Array> {
  const all = new Uint8Array(size);
  for (let at = 0; at < size; ) {
    const part = await source.bytes(at, Math.min(MAX_BYTES, size - at));
    if (part.length === 0) throw new Error("The content ended early.");
    all.set(part, at);
    at += part.length;
    progress?.(at);
  }
  return all;
}
