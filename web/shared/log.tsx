// Numbered lines, with a search by regular expression.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";

import { Coloured, useColours } from "./coloured.tsx";
import { count, number, size, visible } from "./format.ts";
import { Icon } from "./icons.tsx";
import { Matches } from "./matches.ts";
import { usePages } from "./pages.ts";
import { ordinal, type, usePlace } from "./place.ts";
import { Search } from "./search.tsx";
import type { Info, Line, Source } from "./source.ts";
import { Empty, Problem } from "./states.tsx";
import { type VirtualHandle, VirtualList } from "./virtual.tsx";

const ROW = 20;
/** More text is not coloured: it would take longer than a person waits. */
const MAX_MARKED = 4000;

export function LogView({ info, source }: { info: Info; source: Source }) {
  const place = usePlace();
  const query = place.get("search") ?? "";
  const isRegex = place.get("as") !== "text";
  const ignoreCase = place.get("case") !== "match";
  const whole = place.get("whole") === "yes";
  const line = ordinal(place.get("line"));
  const active = line !== undefined && line <= info.lines ? line - 1 : undefined;
  const setActive = (index: number) => place.set({ line: String(index + 1) });
  const coloured = useColours(info, source);
  const [match, setMatch] = useState(0);
  const [problem, setProblem] = useState<Error>();
  const [found, setFound] = useState<{ total: number; lines: number }>();
  const handle = useRef<VirtualHandle>(undefined);
  const total = info.lines;
  const pages = usePages<Line>(`${info.uri} ${info.revision}`, async (offset, limit) => {
    const part = await source.window({ as: "log", offset, limit });
    return { offset, items: part.lines };
  });
  const matches = useMemo(
    () => new Matches(source, { query, literal: !isRegex, ignoreCase }),
    [source, query, isRegex, ignoreCase],
  );
  const latest = useRef(matches);
  latest.current = matches;

  const go = async (to: number) => {
    try {
      const line = await matches.at(to);
      if (matches !== latest.current) return;
      setFound({ total: matches.total, lines: matches.lines });
      setProblem(undefined);
      if (line === undefined) return;
      setMatch(to);
      setActive(line - 1);
      handle.current?.reveal(line - 1, "center");
    } catch (error) {
      if (matches !== latest.current) return;
      setProblem(error instanceof Error ? error : new Error(String(error)));
    }
  };
  const isFirst = useRef(true);
  useEffect(() => {
    setFound(undefined);
    setProblem(undefined);
    setMatch(0);
    // A line of the URL stays where it is; a search that is typed goes to its first match.
    const line = isFirst.current ? active : undefined;
    isFirst.current = false;
    if (!query) return;
    if (line === undefined) void go(0);
    else matches.from(line + 1).then((to) => (setMatch(to), setFound({ total: matches.total, lines: matches.lines })), setProblem);
  }, [matches]);
  useEffect(() => {
    if (active !== undefined) handle.current?.reveal(active, "center");
  }, []);
  // A line that the buttons of the browser lead to.
  useEffect(() => {
    if (active !== undefined) handle.current?.reveal(active);
  }, [active]);
  const step = (by: number) => {
    const to = match + by;
    if (to >= 0 && to < (found?.lines ?? 0)) void go(to);
  };
  const pattern = useMemo(() => marker(query, isRegex, ignoreCase), [query, isRegex, ignoreCase]);

  const row = (index: number) => {
    const line = pages.get(index);
    const text = line === undefined ? "" : visible(typeof line === "string" ? line : line.text);
    // Colours are of this text only if it is the same one.
    const colours = coloured?.[index];
    const parts = colours?.map((part) => part.text).join("") === line ? colours : undefined;
    return (
      <div
        key={index}
        role="listitem"
        class={`line ${index === active ? "active" : ""} ${line === undefined ? "pending" : coloured ? "" : level(text)}`}
        onClick={() => setActive(index)}
      >
        <span class="gutter" style={{ width: `${number(total).length + 2}ch` }}>
          {number(index + 1)}
        </span>
        <span class="text" dir="auto">
          {pattern === undefined && parts !== undefined ? <Coloured parts={parts} /> : marked(text, pattern)}
          {line !== undefined && typeof line !== "string" && (
            <span class="more"> … {size(line.bytes - line.text.length)} more</span>
          )}
        </span>
      </div>
    );
  };

  return (
    <section class="view" aria-label="Log">
      <div class="bar">
        {info.searches && (
          <>
            <Search
              label={isRegex ? "Search by regular expression" : "Search for a text"}
              value={query}
              invalid={problem !== undefined}
              onChange={(text) => type(place, "search", text)}
              onKey={(event) => {
                if (event.key === "Enter") step(event.shiftKey ? -1 : 1);
                if (event.key === "Escape") handle.current?.focus();
              }}
            />
            <button
              type="button"
              class="toggle code"
              aria-pressed={isRegex}
              aria-label="Regular expression"
              title="Regular expression"
              onClick={() => place.set({ as: isRegex ? "text" : undefined }, true)}
            >
              .*
            </button>
            <button
              type="button"
              class="toggle"
              aria-pressed={!ignoreCase}
              aria-label="Match case"
              title="Match case"
              onClick={() => place.set({ case: ignoreCase ? "match" : undefined }, true)}
            >
              Aa
            </button>
            <button type="button" class="button bare" aria-label="Previous" disabled={!found || match === 0} onClick={() => step(-1)}>
              <Icon name="up" />
            </button>
            <button type="button" class="button bare" aria-label="Next" disabled={!found || match + 1 >= found.lines} onClick={() => step(1)}>
              <Icon name="down" />
            </button>
            <output class={`facts ${problem ? "danger" : ""}`}>
              {problem
                ? problem.message.replace(/ To search for the text itself.*$/s, "")
                : !query
                  ? ""
                  : !found
                    ? "Searching…"
                    : found.total === 0
                      ? "No match"
                      : `${number(match + 1)} of ${count(found.lines, "line")}`}
            </output>
          </>
        )}
        <span class="grow" />
        <button type="button" class="toggle" aria-pressed={whole} onClick={() => place.set({ whole: whole ? undefined : "yes" }, true)}>
          Whole line
        </button>
        <GoToLine
          total={total}
          onGo={(line) => {
            setActive(line);
            handle.current?.reveal(line, "center");
            handle.current?.focus();
          }}
        />
      </div>
      {pages.error ? (
        <Problem error={pages.error} retry={() => pages.retry()} />
      ) : total === 0 ? (
        <Empty title="No lines">The content is empty.</Empty>
      ) : (
        <>
          <VirtualList
            role="list"
            className="log"
            label={`Lines of ${info.name}`}
            total={total}
            rowHeight={ROW}
            row={row}
            active={active}
            onActive={setActive}
            onRange={(first, end) => pages.want(first, end)}
            onKey={(event) => {
              if (event.target !== event.currentTarget || event.ctrlKey || event.metaKey) return;
              if (event.key === "n") step(1);
              if (event.key === "N") step(-1);
            }}
            handle={(given) => {
              handle.current = given;
            }}
          />
          {whole && active !== undefined && <Whole line={pages.get(active)} number={active + 1} />}
        </>
      )}
    </section>
  );
}

/** The active line, with all that was read of it. */
function Whole({ line, number: at }: { line: Line | undefined; number: number }) {
  if (line === undefined) return null;
  return (
    <pre class="whole" tabIndex={0} aria-label={`Line ${number(at)}`} dir="auto">
      {visible(typeof line === "string" ? line : line.text)}
    </pre>
  );
}

function GoToLine({ total, onGo }: { total: number; onGo: (line: number) => void }) {
  const [text, setText] = useState("");
  const line = Number(text.replace(/[,\s]/g, ""));
  const isValid = text !== "" && Number.isInteger(line) && line >= 1 && line <= total;
  return (
    <input
      class="goto"
      type="text"
      inputMode="numeric"
      aria-label="Go to line"
      placeholder="Go to line"
      value={text}
      aria-invalid={(text !== "" && !isValid) || undefined}
      onInput={(event) => setText(event.currentTarget.value)}
      onKeyDown={(event) => {
        if (event.key === "Enter" && isValid) onGo(line - 1);
      }}
    />
  );
}

/** What marks the matches of visible lines; the server alone counts them. */
function marker(query: string, isRegex: boolean, ignoreCase: boolean): RegExp | undefined {
  if (!query) return undefined;
  const source = isRegex ? query : query.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  try {
    return new RegExp(source, ignoreCase ? "gui" : "gu");
  } catch {
    // Valid for the server, perhaps.
    return undefined;
  }
}

function marked(text: string, pattern: RegExp | undefined) {
  if (!pattern || text.length > MAX_MARKED) return text;
  const parts = [];
  let end = 0;
  for (const found of text.matchAll(pattern)) {
    if (found[0] === "") continue;
    parts.push(text.slice(end, found.index), <mark key={found.index}>{found[0]}</mark>);
    end = found.index + found[0].length;
    if (parts.length > 200) break;
  }
  if (end === 0) return text;
  parts.push(text.slice(end));
  return parts;
}

function level(text: string): string {
  const word = /\b(fatal|panic|error|err|warn|warning)\b/i.exec(text.slice(0, 120))?.[1]?.toLowerCase();
  if (!word) return "";
  return word.startsWith("warn") ? "warn" : "error";
}
