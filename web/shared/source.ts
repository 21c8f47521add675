// What a viewer reads from. A page of MCP Apps and the console have one each.

import type { Pdf } from "./pdf-code.ts";

export type View = "markdown" | "table" | "json" | "log" | "image" | "pdf" | "diff" | "chart" | "bytes";
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

/** What a chart shows. */
export interface Chart {
  kind: "line" | "bars" | "histogram";
  /** Across, or the groups; the number of the row by default. */
  x?: string;
  y: string[];
  by?: Aggregate;
}

export type Aggregate = "rows" | "sum" | "mean" | "min" | "max";

/** A number; a text if it is an integer that JavaScript would round. */
export type Figure = number | string | null;

/** What there is to draw, by the values of all rows. */
export interface ChartColumns {
  rows: number;
  columns: { name: string; values: number; numbers: number | null; dates: number | null }[];
  /** How many columns are not in the list. */
  more: number;
}

export interface Figures {
  column: string;
  /** All values, of which `count` are numbers that the server can compute with. */
  values: number;
  count: number;
  min: Figure;
  mean: Figure;
  max: Figure;
}

export interface LineChart {
  rows: number;
  placed: number;
  across: "row" | "number" | "time";
  /** Whether each bucket has one value across. */
  single: boolean;
  /** The first and the last value across, the rows, and of each column the count, minimum, mean and maximum. */
  buckets: Figure[][];
  figures: Figures[];
}

export interface BarChart {
  rows: number;
  groups: number;
  bars: [group: string | null, rows: number, value: Figure][];
  /** The values of the column that is drawn, if there is one, and how many of them are numbers. */
  values: number | null;
  numbers: number | null;
}

export interface HistogramChart {
  rows: number;
  bins: [from: number | string, to: number | string, count: number][];
  /** Whether the bins are of whole numbers, which end before the next begins. */
  whole: boolean;
  figures: Figures[];
}

export interface ChartRequest {
  chart?: Chart;
  limit?: number;
  filter?: Filter[];
  query?: string;
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
  /** Figures of all rows; without a chart, the columns of which one can be drawn. */
  chart<R extends ChartRequest>(request: R): Promise<Drawn<R>>;
  /** What draws PDF, from where this page gets it. */
  pdf(): Promise<Pdf>;
  /** Another resource or revision, read in the same way; the latest one by default. */
  at(uri: string, revision?: number): Source;
}

export type Drawn<R extends ChartRequest> = R extends { chart: { kind: "line" } }
  ? LineChart
  : R extends { chart: { kind: "bars" } }
    ? BarChart
    : R extends { chart: { kind: "histogram" } }
      ? HistogramChart
      : ChartColumns;

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
