// The changes of a text since another revision or resource.

import { diffLines, diffWordsWithSpace } from "diff";
import { useEffect, useMemo, useState } from "preact/hooks";

import { count, number, size, visible } from "./format.ts";
import { ordinal, usePlace } from "./place.ts";
import { type Info, type Source, readAll } from "./source.ts";
import { Empty, Loading, Problem } from "./states.tsx";
import { VirtualList } from "./virtual.tsx";

/** Longer texts are not compared here. */
const MAX_TEXT = 4_000_000;
/** How long a comparison may take, in milliseconds. */
const TIMEOUT = 8000;
/** Unchanged lines that are shown before and after a change. */
const AROUND = 3;
const ROW = 20;

interface Row {
  kind: "same" | "added" | "removed" | "gap";
  before?: number;
  after?: number;
  text: string;
  /** For a gap: the lines that are left out. */
  hidden?: Row[];
  /** The line that this one replaces, or that replaces it. */
  other?: string;
}

export function DiffView({ info, source }: { info: Info; source: Source }) {
  const earlier = info.revisions.filter((revision) => revision !== info.revision);
  const place = usePlace();
  const since = ordinal(place.get("since"));
  const given = info.against?.uri === info.uri ? info.against.revision : earlier.at(-1);
  const revision = since !== undefined && earlier.includes(since) ? since : given;
  const other = info.against && info.against.uri !== info.uri ? info.against : undefined;
  const [rows, setRows] = useState<Row[]>();
  const [error, setError] = useState<Error>();
  const [active, setActive] = useState<number>();
  const [opened, setOpened] = useState<ReadonlySet<Row>>(new Set());

  useEffect(() => {
    let isCurrent = true;
    setRows(undefined);
    setError(undefined);
    if (other === undefined && revision === undefined) return;
    const compare = async () => {
      const before = other ? source.at(other.uri, other.revision) : source.at(info.uri, revision);
      const [old, now] = await Promise.all([text(before), text(source.at(info.uri, info.revision))]);
      if (isCurrent) setRows(compared(old, now));
    };
    compare().catch((problem: unknown) => {
      if (isCurrent) setError(problem instanceof Error ? problem : new Error(String(problem)));
    });
    return () => {
      isCurrent = false;
    };
  }, [source, info.revision, revision]);

  const shown = useMemo(
    () => rows?.flatMap((row) => (row.hidden && opened.has(row) ? row.hidden : [row])),
    [rows, opened],
  );
  const added = rows?.filter((row) => row.kind === "added").length ?? 0;
  const removed = rows?.filter((row) => row.kind === "removed").length ?? 0;
  if (other === undefined && revision === undefined) {
    return <Empty title="No earlier revision">Changes appear here when the resource is updated.</Empty>;
  }

  const width = `${number(info.lines).length + 1}ch`;
  const row = (index: number) => {
    const one = shown?.[index];
    if (!one) return null;
    const marks = { same: " ", added: "+", removed: "−", gap: "" };
    return (
      <div
        key={index}
        role="listitem"
        class={`line change ${one.kind} ${index === active ? "active" : ""}`}
        onClick={() => {
          setActive(index);
          if (one.hidden) setOpened(new Set(opened).add(one));
        }}
      >
        <span class="gutter" style={{ width }}>
          {one.before !== undefined && number(one.before)}
        </span>
        <span class="gutter" style={{ width }}>
          {one.after !== undefined && number(one.after)}
        </span>
        <span class="sign">{marks[one.kind]}</span>
        <span class="text" dir="auto">
          <Words row={one} />
        </span>
      </div>
    );
  };
  return (
    <section class="view" aria-label="Changes">
      <div class="bar">
        {other ? (
          <span class="facts clip">compared with {visible(other.uri)}</span>
        ) : (
          <label class="field">
            Since revision
            <select value={revision} onChange={(event) => place.set({ since: event.currentTarget.value }, true)}>
              {earlier.map((one) => (
                <option key={one} value={one}>
                  {one}
                </option>
              ))}
            </select>
          </label>
        )}
        <span class="grow" />
        {rows && (
          <output class="facts">
            <span class="added">+{number(added)}</span> <span class="removed">−{number(removed)}</span>
          </output>
        )}
      </div>
      {error ? (
        <Problem error={error} />
      ) : !rows ? (
        <Loading label="Comparing" />
      ) : added + removed === 0 ? (
        <Empty title="No changes">Both texts are the same.</Empty>
      ) : (
        <VirtualList
          role="list"
          className="log diff"
          label={`Changes of ${info.name}`}
          total={shown?.length ?? 0}
          rowHeight={ROW}
          row={row}
          active={active}
          onActive={setActive}
          onKey={(event) => {
            const one = active === undefined ? undefined : shown?.[active];
            if (event.key === "Enter" && one?.hidden) setOpened(new Set(opened).add(one));
          }}
        />
      )}
    </section>
  );
}

/** The text of a line, with what differs from its counterpart marked. */
function Words({ row }: { row: Row }) {
  const text = visible(row.text);
  if (row.other === undefined || text.length + row.other.length > 2000) return <>{text}</>;
  const isAdded = row.kind === "added";
  const parts = isAdded ? diffWordsWithSpace(visible(row.other), text) : diffWordsWithSpace(text, visible(row.other));
  return (
    <>
      {parts
        .filter((part) => (isAdded ? !part.removed : !part.added))
        .map((part, at) => (part.added || part.removed ? <mark key={at}>{part.value}</mark> : part.value))}
    </>
  );
}

async function text(source: Source): Promise<string> {
  const info = await source.info();
  if (info.size > MAX_TEXT) {
    throw new Error(`${size(info.size)} are too much to compare here; at most ${size(MAX_TEXT)} are.`);
  }
  return new TextDecoder().decode(await readAll(source, info.size));
}

/** The lines of both texts, with long unchanged parts left out. */
export function compared(before: string, after: string): Row[] {
  const changes = diffLines(before, after, { timeout: TIMEOUT });
  if (!changes) throw new Error("The texts differ too much to compare them here.");
  const rows: Row[] = [];
  let [old, now] = [0, 0];
  changes.forEach((change, at) => {
    const lines = change.value.replace(/\n$/, "").split("\n");
    if (change.added || change.removed) {
      const next = changes[change.removed ? at + 1 : at - 1];
      const isReplaced = next && (change.removed ? next.added : next.removed) && next.count === change.count;
      const others = isReplaced ? next.value.split("\n") : [];
      lines.forEach((text, line) => {
        const other = others[line];
        rows.push({
          kind: change.added ? "added" : "removed",
          text,
          ...(change.added ? { after: ++now } : { before: ++old }),
          ...(other !== undefined && { other }),
        });
      });
      return;
    }
    const same = lines.map((text): Row => ({ kind: "same", text, before: ++old, after: ++now }));
    const head = at === 0 ? 0 : AROUND;
    const tail = at === changes.length - 1 ? 0 : AROUND;
    if (same.length <= head + tail + 1) {
      rows.push(...same);
      return;
    }
    const hidden = same.slice(head, same.length - tail);
    rows.push(...same.slice(0, head));
    rows.push({ kind: "gap", text: `${count(hidden.length, "line")} without a change`, hidden });
    rows.push(...same.slice(same.length - tail));
  });
  return rows;
}
