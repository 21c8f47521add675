// The lines with matches, in their order, as far as they were asked for.

import type { SearchRequest, Source } from "./source.ts";

const PAGE = 500;

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
