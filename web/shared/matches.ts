// The lines with matches, in their order, as far as they were asked for.

import type { SearchRequest, Source } from "./source.ts";

const PAGE = 500;
/** So many lines with matches are read to find the place of one. */
const MAX_SOUGHT = 10_000;

export class Matches {
  /** The number of all matches, and of the lines that have them. */
  total = 0;
  lines = 0;
  private found: number[] = [];
  /** How many matches come before the next page. */
  private next: number | undefined = 0;

  constructor(
    private source: Source,
    private search: Pick<SearchRequest, "query" | "literal" | "ignoreCase">,
  ) {}

  /** Which line with a match, from 0, is the first at or after a line; 0 if that takes too long. */
  async from(line: number): Promise<number> {
    await this.at(0);
    while (this.next !== undefined && (this.found.at(-1) ?? 0) < line && this.found.length < MAX_SOUGHT) {
      await this.at(this.found.length);
    }
    return Math.max(0, this.found.findIndex((found) => found >= line));
  }

  /** The number of the line, from 1, of the nth line with a match, from 0. */
  async at(wanted: number): Promise<number | undefined> {
    while (wanted >= this.found.length && this.next !== undefined) {
      const page = await this.source.search({ ...this.search, offset: this.next, limit: PAGE });
      this.total = page.total;
      this.lines = page.lines;
      this.next = page.rows.length > 0 ? page.next : undefined;
      // A long line has a row for each match.
      for (const row of page.rows) if (row.line !== this.found.at(-1)) this.found.push(row.line);
    }
    return this.found[wanted];
  }
}
