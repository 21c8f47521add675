// A value in the tree: read from the source, or held in a parent that was small.

import { count } from "./format.ts";
import type { Child, Json, Source } from "./source.ts";

type Kind = "list" | "object" | "text" | "number" | "boolean" | "null" | "scalar";

const PAGE = 200;
/** So many pages of children are read to find one. */
const MAX_SOUGHT_PAGES = 50;
let ids = 0;

export class Node {
  readonly id = `node-${++ids}`;
  isOpen = false;
  isReading = false;
  error: Error | undefined;
  private children: Node[] = [];
  private total = 0;
  private container: "list" | "object" | "scalar" = "scalar";
  isRead = false;

  private constructor(
    private source: Source,
    private changed: () => void,
    readonly parent: Node | undefined,
    readonly key: string | number | undefined,
    readonly pointer: string,
    private child: Child | undefined,
    readonly depth: number,
    /** Stands for the children of its parent that are not read. */
    readonly isMore = false,
  ) {}

  static root(source: Source, changed: () => void): Node {
    return new Node(source, changed, undefined, undefined, "", undefined, 0);
  }

  get type(): Kind {
    const child = this.child;
    if (!child) return this.container === "scalar" ? "scalar" : this.container;
    if ("type" in child) return child.type;
    return kind(child.value);
  }

  get canOpen(): boolean {
    if (this.isMore) return false;
    const isContainer = this.type === "list" || this.type === "object";
    return isContainer && this.size !== 0;
  }

  get size(): number | undefined {
    const child = this.child;
    if (!child) return this.isRead ? this.total : undefined;
    if ("type" in child) return this.isRead ? this.total : child.size;
    const value = child.value;
    if (Array.isArray(value)) return value.length;
    return value !== null && typeof value === "object" ? Object.keys(value).length : undefined;
  }

  /** The value on one line. */
  get preview(): string {
    const child = this.child;
    if (!child) return "";
    if ("type" in child) return child.type === "text" ? `"${child.preview}…` : this.isOpen ? brackets(child.type) : `${child.preview}…`;
    const value = child.value;
    if (this.isOpen) return brackets(kind(value));
    const text = JSON.stringify(value);
    return text.length > 400 ? `${text.slice(0, 400)}…` : text;
  }

  describe(): string {
    if (this.container === "scalar") return "One value";
    return count(this.total, this.container === "list" ? "item" : "member");
  }

  close(): void {
    this.isOpen = false;
    this.changed();
  }

  async open(): Promise<void> {
    this.isOpen = true;
    this.error = undefined;
    const child = this.child;
    if (child && "value" in child) {
      if (!this.isRead) this.adopt(child.value);
      this.changed();
      return;
    }
    if (!this.isRead) await this.read();
    else this.changed();
  }

  /** Reads the children that follow. */
  more(): void {
    const parent = this.parent;
    if (parent && !parent.isReading && !this.error) void parent.read(this);
  }

  /** The visible nodes below this one, in their order. */
  rows(into: Node[] = []): Node[] {
    for (const child of this.children) {
      into.push(child);
      if (child.isOpen) child.rows(into);
    }
    return into;
  }

  /** The node of a JSON Pointer, with all above it open. Undefined if there is none, or too far behind others. */
  async find(pointer: string): Promise<Node | undefined> {
    let node: Node = this;
    for (const segment of pointer.split("/").slice(1)) {
      if (!node.isOpen) await node.open();
      const wanted = `${node.pointer}/${segment}`;
      const known = () => node.children.find((child) => !child.isMore && child.pointer === wanted);
      let child = known();
      for (let page = 0; !child && page < MAX_SOUGHT_PAGES && node.children.at(-1)?.isMore; page++) {
        await node.read(node.children.at(-1));
        child = known();
      }
      if (!child) return undefined;
      node = child;
    }
    return node;
  }

  private async read(more?: Node): Promise<void> {
    if (this.isReading) return;
    this.isReading = true;
    this.changed();
    try {
      const known = this.children.filter((child) => !child.isMore);
      const part = await this.source.window({ as: "json", at: this.pointer, offset: known.length, limit: PAGE });
      this.container = part.container;
      this.total = part.total;
      this.children = known.concat(part.children.map((child, at) => this.of(child, known.length + at)));
      this.isRead = true;
      if (part.children.length > 0 && this.children.length < this.total) {
        this.children.push(new Node(this.source, this.changed, this, undefined, this.pointer, undefined, this.depth + 1, true));
      }
    } catch (error) {
      const problem = error instanceof Error ? error : new Error(String(error));
      if (more) more.error = problem;
      else this.error = problem;
      if (!more && this.parent) this.isOpen = false;
    } finally {
      this.isReading = false;
      this.changed();
    }
  }

  private adopt(value: Json): void {
    this.isRead = true;
    if (Array.isArray(value)) {
      this.children = value.map((item, at) => this.of({ value: item }, at));
    } else if (value !== null && typeof value === "object") {
      this.children = Object.entries(value).map(([key, member], at) => this.of({ key, value: member }, at));
    }
    this.total = this.children.length;
  }

  private of(child: Child, at: number): Node {
    const isScalar = this.container === "scalar" && this.parent === undefined;
    const key = child.key ?? (isScalar ? undefined : at);
    const segment = String(key ?? "").replace(/~/g, "~0").replace(/\//g, "~1");
    const pointer = key === undefined ? this.pointer : `${this.pointer}/${segment}`;
    return new Node(this.source, this.changed, this, key, pointer, child, this.depth + 1);
  }
}

const brackets = (kind: string): string => (kind === "list" ? "[ ]" : "{ }");

function kind(value: Json): Kind {
  if (value === null) return "null";
  if (Array.isArray(value)) return "list";
  if (typeof value === "string") return "text";
  return typeof value as "number" | "boolean" | "object";
}
