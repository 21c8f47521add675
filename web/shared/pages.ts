// Items that are read when they come into view. Holds the pages that were seen last.

import { useEffect, useReducer, useRef } from "preact/hooks";

const PAGE = 100;
const MAX_PAGES = 80;

interface Part<T> {
  items: T[];
  offset: number;
}

export class Pages<T> {
  private pages = new Map<number, T[]>();
  private loading = new Set<number>();
  /** Why the last read failed. */
  error: Error | undefined;

  constructor(
    private read: (offset: number, limit: number) => Promise<Part<T>>,
    private changed: () => void,
  ) {}

  get(index: number): T | undefined {
    const page = Math.floor(index / PAGE);
    return this.pages.get(page)?.[index - page * PAGE];
  }

  get isLoading(): boolean {
    return this.loading.size > 0;
  }

  /** Reads what is missing of these items. */
  want(first: number, end: number): void {
    for (let page = Math.floor(first / PAGE); page * PAGE < end; page++) {
      const known = this.pages.get(page);
      if (known) {
        this.pages.delete(page);
        this.pages.set(page, known);
      }
      const wanted = Math.min(PAGE, end - page * PAGE);
      if (!this.loading.has(page) && !this.error && (known?.length ?? 0) < wanted) void this.load(page);
    }
    for (const page of this.pages.keys()) {
      if (this.pages.size <= MAX_PAGES) break;
      this.pages.delete(page);
    }
  }

  /** Tries again after an error. */
  retry(): void {
    this.error = undefined;
    this.changed();
  }

  private async load(page: number): Promise<void> {
    this.loading.add(page);
    try {
      let items = this.pages.get(page) ?? [];
      // A part may have fewer items than requested.
      while (items.length < PAGE) {
        const part = await this.read(page * PAGE + items.length, PAGE - items.length);
        if (part.items.length === 0) break;
        items = items.concat(part.items);
        this.pages.set(page, items);
        this.changed();
      }
    } catch (error) {
      this.error = error instanceof Error ? error : new Error(String(error));
    } finally {
      this.loading.delete(page);
      this.changed();
    }
  }
}

/** Pages of what `read` gives, anew when `key` changes. */
export function usePages<T>(
  key: string,
  read: (offset: number, limit: number) => Promise<Part<T>>,
): Pages<T> {
  const [, redraw] = useReducer((n: number) => n + 1, 0);
  const held = useRef<{ key: string; pages: Pages<T> }>(undefined);
  const mounted = useRef(true);
  useEffect(() => {
    mounted.current = true;
    return () => {
      mounted.current = false;
    };
  }, []);
  if (held.current?.key !== key) {
    const mine: Pages<T> = new Pages(read, () => {
      if (mounted.current && held.current?.pages === mine) redraw(0);
    });
    held.current = { key, pages: mine };
  }
  return held.current.pages;
}
