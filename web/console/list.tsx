// The stored resources, page by page, and a search over all of them.

import { useCallback, useEffect, useRef, useState } from "preact/hooks";

import { age, count, expiry, number, size, visible } from "../shared/format.ts";
import { Icon } from "../shared/icons.tsx";
import { type Choices, parsed, type as typed, usePlace } from "../shared/place.ts";
import { Search } from "../shared/search.tsx";
import { Empty, Loading, Problem } from "../shared/states.tsx";
import { data, text } from "./api.ts";
import type { Shell } from "./app.tsx";
import { useChanges } from "./changes.ts";
import { Copy } from "./copy.tsx";
import { Many } from "./many.tsx";
import { folderAddress, resourceAddress } from "./place.ts";
import { Remove } from "./remove.tsx";
import { Share } from "./share.tsx";
import { Upload } from "./upload.tsx";

const PAGE = 50;

const BY_URI: Order = { by: "uri", descending: false };
const ORDERS = ["uri", "name", "size", "created", "expires"];
/** How often a search is repeated at most while others store, in milliseconds: it reads content. */
const SEARCH_PAUSE = 4000;
/** How often a list is repeated at most for which the server looks at all resources. */
const SORTED_PAUSE = 2000;

export interface Item {
  uri: string;
  name: string;
  description?: string;
  mime_type: string;
  size: number;
  created?: string;
  expires: string;
}

interface Quota {
  bytes: number;
  used_bytes: number;
  resources: number;
  used_resources: number;
}

/** By what the server sorts. */
interface Order {
  by: "uri" | "name" | "size" | "created" | "expires";
  descending: boolean;
}

interface Folder {
  prefix: string;
  resources: number;
  bytes: number;
}

interface Page {
  items: Item[];
  folders?: Folder[];
  /** How many folders are not in the list. */
  moreFolders?: number;
  /** Where the next page begins, if there is one. */
  next?: string;
}

interface Found {
  uri: string;
  name: string;
  /** What is known of the match: a line of the content with its number, or a remark. */
  lines: { text: string; line?: number }[];
}

type Shown =
  | { kind: "page"; page: Page }
  | { kind: "found"; head: string; left: string; found: Found[] }
  | { kind: "failed"; error: Error };

type Open = { kind: "share" | "delete"; item: Item };

export function List({ shell }: { shell: Shell }) {
  const place = usePlace();
  const typedText = place.get("q") ?? "";
  const query = typedText.trim();
  const sorts = shell.tools.has("view_list");
  const prefix = place.get("prefix") ?? "";
  const hasFolders = sorts && place.get("folders") === "yes";
  const by = place.get("sort");
  const order: Order = {
    by: by !== undefined && ORDERS.includes(by) ? (by as Order["by"]) : "uri",
    descending: place.get("order") === "descending",
  };
  /** Where the pages so far begin; the last one is shown. */
  const starts = startsOf(place.get("pages"));
  const [shown, setShown] = useState<Shown>();
  const [quota, setQuota] = useState<Quota>();
  const [open, setOpen] = useState<Open>();
  const [chosen, setChosen] = useState<ReadonlyMap<string, Item>>(new Map());
  const turn = useRef(0);
  const isPrefix = query.includes(":") || !shell.tools.has("search_resources");
  const after = starts[starts.length - 1] ?? "";
  const isSearch = query !== "" && !isPrefix;
  /** A change of what is listed begins at the first page. */
  const change = (choices: Choices, step = true) => {
    setChosen(new Map());
    place.set({ pages: undefined, ...choices }, step);
  };

  const load = useCallback(async () => {
    const mine = ++turn.current;
    try {
      const next: Shown =
        isSearch
          ? await search(query)
          : { kind: "page", page: await (sorts ? sorted(query || prefix, order, after, hasFolders) : page(query, after)) };
      if (mine === turn.current) setShown(next);
    } catch (error) {
      const found = shell.failed(error);
      if (found && mine === turn.current) setShown({ kind: "failed", error: found });
    }
  }, [query, prefix, isSearch, sorts, order.by, order.descending, after, hasFolders, shell.failed]);
  const measure = useCallback(async () => {
    try {
      setQuota((await data<{ quota?: Quota }>("list_resources", { limit: 1 })).quota);
    } catch {
      // The list itself shows what is wrong.
    }
  }, []);
  useEffect(() => void load(), [load]);
  // A link and the buttons of the browser lead elsewhere, too: what is no longer seen must not be deleted.
  const pages = place.get("pages");
  useEffect(() => setChosen(new Map()), [typedText, prefix, hasFolders, pages]);
  useEffect(() => void measure(), []);
  const refresh = () => {
    void measure();
    void load();
  };
  const repeat = useRef<number>(undefined);
  useEffect(() => () => window.clearTimeout(repeat.current), [load]);
  useChanges(undefined, () => {
    void measure();
    const pause = isSearch ? SEARCH_PAUSE : hasFolders || order.by !== "uri" ? SORTED_PAUSE : 0;
    if (pause === 0) void load();
    else {
      window.clearTimeout(repeat.current);
      repeat.current = window.setTimeout(() => void load(), pause);
    }
  });
  const close = () => setOpen(undefined);
  const sortBy = (by: Order["by"]) => {
    const next = order.by !== by ? { by, descending: false } : order.descending ? BY_URI : { by, descending: true };
    change({ sort: next.by === "uri" ? undefined : next.by, order: next.descending ? "descending" : undefined });
  };
  const setStarts = (next: string[]) => {
    setChosen(new Map());
    place.set({ pages: next.length > 1 ? JSON.stringify(next.slice(1)) : undefined }, true);
  };

  return (
    <main class="list" aria-labelledby="list-title">
      <div class="heading">
        <h1 id="list-title">Resources</h1>
        {quota && <Usage quota={quota} />}
      </div>
      <div class="bar">
        <Search
          label={shell.tools.has("search_resources") ? "Search words, or a URI prefix" : "URI prefix"}
          value={typedText}
          onChange={(next) => {
            setChosen(new Map());
            typed(place, "q", next, { pages: undefined });
          }}
        />
        {sorts && (
          <button
            type="button"
            class="toggle"
            aria-pressed={hasFolders}
            onClick={() => change({ folders: hasFolders ? undefined : "yes", prefix: undefined })}
          >
            Folders
          </button>
        )}
        <span class="grow" />
        {chosen.size > 0 && (
          <Many
            items={[...chosen.values()]}
            shell={shell}
            clear={() => setChosen(new Map())}
            removed={(uri) => setChosen((chosen) => new Map([...chosen].filter(([one]) => one !== uri)))}
            done={refresh}
          />
        )}
        {shell.tools.has("upload_url") && <Upload shell={shell} stored={refresh} />}
      </div>
      {hasFolders && !isSearch && prefix !== "" && <Path prefix={prefix} />}
      <div class="sheet" aria-busy={shown === undefined || undefined}>
        {shown === undefined ? (
          <Loading />
        ) : shown.kind === "failed" ? (
          <Problem error={shown.error} retry={() => void load()} />
        ) : shown.kind === "found" ? (
          <Matches head={shown.head} left={shown.left} found={shown.found} />
        ) : shown.page.items.length + (shown.page.folders?.length ?? 0) === 0 ? (
          query !== "" ? (
            <Empty title="No resource has a URI that begins so">{visible(query)}</Empty>
          ) : (
            <Empty title="Nothing is stored">
              Large results of tools, what create_resource stores, and your uploads appear here until they expire.
            </Empty>
          )
        ) : (
          <Table
            page={shown.page}
            within={prefix}
            shell={shell}
            open={setOpen}
            order={order}
            chosen={chosen}
            choose={setChosen}
            {...(sorts && { sortBy })}
          />
        )}
      </div>
      {shown?.kind === "page" && (starts.length > 1 || shown.page.next !== undefined) && (
        <nav class="pager" aria-label="Pages">
          <span class="facts">
            Page {number(starts.length)}
            {quota && query === "" && !hasFolders && ` of ${number(Math.max(1, Math.ceil(quota.used_resources / PAGE)))}`}
          </span>
          <button
            type="button"
            class="button"
            disabled={starts.length < 2}
            onClick={() => setStarts(starts.slice(0, -1))}
          >
            Previous
          </button>
          <button
            type="button"
            class="button"
            disabled={shown.page.next === undefined}
            onClick={() => setStarts([...starts, shown.page.next ?? ""])}
          >
            Next
          </button>
        </nav>
      )}
      {open?.kind === "share" && <Share uri={open.item.uri} shell={shell} close={close} />}
      {open?.kind === "delete" && (
        <Remove
          uri={open.item.uri}
          name={open.item.name}
          shell={shell}
          close={close}
          deleted={() => {
            close();
            refresh();
          }}
        />
      )}
    </main>
  );
}

function Usage({ quota }: { quota: Quota }) {
  const part = Math.max(quota.used_bytes / quota.bytes, quota.used_resources / quota.resources);
  return (
    <p class="usage">
      <meter aria-label="Quota used" min={0} max={1} high={0.85} value={Math.min(1, part)} />
      <span>
        {size(quota.used_bytes)} of {size(quota.bytes)}
      </span>
      <span>
        {number(quota.used_resources)} of {count(quota.resources, "resource")}
      </span>
    </p>
  );
}

/** The heading of a column, which sorts by it if the server can. */
function Heading(props: {
  by: Order["by"];
  label: string;
  class?: string;
  order: Order;
  sortBy?: (by: Order["by"]) => void;
}) {
  const { by, label, order, sortBy } = props;
  const sort = order.by === by ? (order.descending ? "descending" : "ascending") : undefined;
  return (
    <th scope="col" class={props.class} aria-sort={sortBy ? (sort ?? "none") : undefined}>
      {sortBy ? (
        <button
          type="button"
          class="sort"
          aria-label={`Sort by ${label.toLowerCase()}`}
          onClick={() => sortBy(by)}
        >
          {label}
          {sort && <Icon name={sort === "descending" ? "down" : "up"} />}
        </button>
      ) : (
        label
      )}
    </th>
  );
}

function Table(props: {
  page: Page;
  /** The folder whose resources these are. */
  within: string;
  shell: Shell;
  open: (open: Open) => void;
  order: Order;
  sortBy?: (by: Order["by"]) => void;
  chosen: ReadonlyMap<string, Item>;
  choose: (chosen: ReadonlyMap<string, Item>) => void;
}) {
  const { page, shell, open, chosen, choose } = props;
  const { items, folders = [] } = page;
  const now = Date.now();
  const sorting = { order: props.order, ...(props.sortBy && { sortBy: props.sortBy }) };
  const isAll = items.length > 0 && items.every((item) => chosen.has(item.uri));
  const mark = (item: Item, isChosen: boolean) => {
    const next = new Map(chosen);
    if (isChosen) next.set(item.uri, item);
    else next.delete(item.uri);
    choose(next);
  };
  return (
    <table class="resources">
      <thead>
        <tr>
          <th scope="col" class="mark">
            <input
              type="checkbox"
              aria-label="Choose all of this page"
              checked={isAll}
              disabled={items.length === 0}
              onChange={() => choose(isAll ? new Map() : new Map(items.map((item) => [item.uri, item])))}
            />
          </th>
          <Heading by="name" label="Name" {...sorting} />
          <th scope="col" class="wide">
            Type
          </th>
          <Heading by="size" label="Size" class="figure" {...sorting} />
          {props.sortBy && <Heading by="created" label="Created" class="wide time" {...sorting} />}
          <Heading by="expires" label="Expires" class="wide time" {...sorting} />
          <th scope="col">
            <span class="hidden">Actions</span>
          </th>
        </tr>
      </thead>
      <tbody>
        {folders.map((folder) => (
          <tr key={folder.prefix} class="folder">
            <td class="mark">
              <Icon name="folder" />
            </td>
            <td class="title">
              <a href={folderAddress(folder.prefix)} dir="auto">
                {visible(folder.prefix.slice(props.within.length))}
              </a>
            </td>
            <td class="wide clip">{count(folder.resources, "resource")}</td>
            <td class="figure">{size(folder.bytes)}</td>
            {props.sortBy && <td class="wide time" />}
            <td class="wide time" />
            <td class="tools" />
          </tr>
        ))}
        {(page.moreFolders ?? 0) > 0 && (
          <tr>
            <td />
            <td colSpan={6} class="hint">
              {count(page.moreFolders ?? 0, "more folder")}. Enter the beginning of their URIs.
            </td>
          </tr>
        )}
        {items.map((item) => (
          <tr key={item.uri} class={chosen.has(item.uri) ? "chosen" : ""}>
            <td class="mark">
              <input
                type="checkbox"
                aria-label={`Choose ${visible(item.name)}`}
                checked={chosen.has(item.uri)}
                onChange={(event) => mark(item, event.currentTarget.checked)}
              />
            </td>
            <td class="title">
              <a href={resourceAddress(item.uri)} dir="auto">
                {visible(item.name)}
              </a>
              <span class="code clip" title={visible(item.uri)}>
                {visible(item.uri)}
              </span>
            </td>
            <td class="wide clip">{visible(item.mime_type)}</td>
            <td class="figure">{size(item.size)}</td>
            {item.created !== undefined && <td class="wide time">{age(item.created, now)}</td>}
            <td class="wide time">{expiry(item.expires, now).replace("expires ", "")}</td>
            <td class="tools">
              {shell.tools.has("share_resource") && (
                <button
                  type="button"
                  class="button small"
                  aria-label={`Share ${visible(item.name)}`}
                  onClick={() => open({ kind: "share", item })}
                >
                  Share
                </button>
              )}
              {shell.tools.has("delete_resource") && (
                <button
                  type="button"
                  class="button small"
                  aria-label={`Delete ${visible(item.name)}`}
                  onClick={() => open({ kind: "delete", item })}
                >
                  Delete
                </button>
              )}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Matches({ head, left, found }: { head: string; left: string; found: Found[] }) {
  return (
    <section class="matches" aria-label="Matches">
      <div role="status">
        <p class="hint">{visible(head)}</p>
        {left !== "" && <p class="left">Not searched: {visible(left)}.</p>}
      </div>
      <ol>
        {found.map((one) => (
          <li key={one.uri}>
            <a href={resourceAddress(one.uri)} dir="auto">
              {visible(one.name)}
            </a>{" "}
            <span class="code clip">{visible(one.uri)}</span> <Copy label="Copy URI" text={one.uri} small />
            {one.lines.map(({ text, line }, index) => (
              <p key={index} class="code clip">
                {line === undefined ? (
                  visible(text)
                ) : (
                  <a href={resourceAddress(one.uri, { view: "log", line: String(line) })}>
                    {number(line)}: {visible(text)}
                  </a>
                )}
              </p>
            ))}
          </li>
        ))}
      </ol>
    </section>
  );
}

/** A result has as many items as fit into it, so a page may take several. */
async function page(prefix: string, start: string): Promise<Page> {
  const items: Item[] = [];
  let after = start;
  for (;;) {
    const part = await data<{ complete: boolean; resources: Item[] }>("list_resources", {
      after,
      limit: PAGE - items.length,
      ...(prefix && { prefix }),
    });
    items.push(...part.resources);
    const last = items[items.length - 1];
    if (part.complete || part.resources.length === 0 || !last || items.length >= PAGE) {
      return { items, ...(!part.complete && last && { next: last.uri }) };
    }
    after = last.uri;
  }
}

/** A page in an order. The server finds it among all resources. */
async function sorted(prefix: string, order: Order, after: string, hasFolders: boolean): Promise<Page> {
  const found = await data<{ resources: Item[]; next?: string; folders?: Folder[]; more_folders?: number }>("view_list", {
    ...(hasFolders && { folders: true }),
    sort: order.by,
    descending: order.descending,
    limit: PAGE,
    ...(after && { after }),
    ...(prefix && { prefix }),
  });
  return {
    items: found.resources,
    ...(found.next !== undefined && { next: found.next }),
    ...(found.folders && { folders: found.folders }),
    ...(found.more_folders !== undefined && { moreFolders: found.more_folders }),
  };
}

/** The folders above the one that is shown. */
function Path({ prefix }: { prefix: string }) {
  const ends = [...prefix.matchAll(/\/+/g)].map((slash) => slash.index + slash[0].length);
  return (
    <nav class="crumbs" aria-label="Folders">
      <a href={folderAddress("")}>All</a>
      {ends.map((end, at) => (
        <a key={end} href={folderAddress(prefix.slice(0, end))} aria-current={end === prefix.length ? "page" : undefined} dir="auto">
          {visible(prefix.slice(ends[at - 1] ?? 0, end))}
        </a>
      ))}
    </nav>
  );
}

/** The beginnings of the pages up to the one in the URL. */
function startsOf(text: string | undefined): string[] {
  const isTexts = (value: unknown): value is string[] => Array.isArray(value) && value.every((one) => typeof one === "string");
  return ["", ...parsed(text, isTexts, [])];
}

/** The result is text for models: each match begins with its rank, and what belongs to it is indented. */
async function search(query: string): Promise<Shown> {
  const [head = "", ...lines] = (await text("search_resources", { query })).split("\n");
  const found: Found[] = [];
  for (const line of lines) {
    const match = /^\d+\. (\S+) \((.*)\)$/.exec(line);
    if (match) found.push({ uri: match[1] ?? "", name: match[2] ?? "", lines: [] });
    else if (line.startsWith("   ") && !line.startsWith("   next: ")) {
      const [, at, rest = ""] = /^ {3}(\d+): (.*)$/.exec(line) ?? [];
      found[found.length - 1]?.lines.push(at === undefined ? { text: line.trim() } : { text: rest, line: Number(at) });
    }
  }
  const said = head.replace(/; next: .*$/, ".");
  // What was left out: "… NOT searched: all after the first 10,000 by URI (a prefix narrows the search). …". People enter no
  // prefix beside words.
  const left = / NOT searched: (.*?)\.(?= |$)/.exec(said);
  return {
    kind: "found",
    head: left ? said.replace(left[0], "") : said,
    left: (left?.[1] ?? "").replaceAll(" (a prefix narrows the search)", ""),
    found,
  };
}
