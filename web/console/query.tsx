// A query over one resource: SQL or jq, its result as a table or a chart, and its whole result as a resource of its own. The query
// is in the URL, so that it can be sent to others and asked again.

import type uPlot from "uplot";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";

import { count, exact, number, visible } from "../shared/format.ts";
import { usePlace } from "../shared/place.ts";
import { MAX_CURVES, Plot } from "../shared/plot.tsx";
import type { Info } from "../shared/source.ts";
import { Empty, Loading, Problem } from "../shared/states.tsx";
import { callExactly } from "./api.ts";
import type { Shell } from "./app.tsx";
import { resourceAddress } from "./place.ts";

const LIMIT = 1000;

/** A value of a result. An integer that JavaScript would round is a text. */
type Value = null | boolean | number | string | object;

interface Result {
  columns: { name: string; type: string }[];
  rows: Value[][];
  total: number;
  complete: boolean;
  stored?: string;
  read: { rows: number };
  notes?: { text: string }[];
}

type State = { kind: "none" } | { kind: "asking" } | { kind: "failed"; error: Error } | { kind: "found"; result: Result };

export function QueryView({ info, shell }: { info: Info; shell: Shell }) {
  const place = usePlace();
  const asked = place.get("query");
  const engine = place.get("engine") === "jq" ? "jq" : "sql";
  const shown = place.get("result") === "chart" ? "chart" : "table";
  const [text, setText] = useState(asked ?? (engine === "sql" ? "SELECT * FROM t LIMIT 100" : "."));
  const [into, setInto] = useState("");
  const [state, setState] = useState<State>({ kind: "none" });
  const turn = useRef(0);

  const ask = async (query: string, uri?: string) => {
    const mine = ++turn.current;
    setState({ kind: "asking" });
    try {
      const result = await answerTo(info, engine, query, uri);
      if (mine === turn.current) setState({ kind: "found", result });
    } catch (error) {
      const found = shell.failed(error);
      if (found && mine === turn.current) setState({ kind: "failed", error: found });
    }
  };
  // A query of the URL is asked at once. It only reads.
  useEffect(() => {
    if (asked === undefined) return;
    setText(asked);
    void ask(asked);
  }, [asked, engine, info.revision]);
  const run = () => {
    if (text.trim() === "") return;
    if (text === asked) void ask(text);
    else place.set({ query: text }, true);
  };
  const mayStore = shell.tools.has("create_resource");
  return (
    <section class="view query" aria-label="Query">
      <div class="bar">
        <label class="field">
          Language
          <select
            value={engine}
            onChange={(event) => {
              const next = event.currentTarget.value;
              setState({ kind: "none" });
              setText(next === "jq" ? "." : "SELECT * FROM t LIMIT 100");
              place.set({ engine: next === "jq" ? "jq" : undefined, query: undefined, result: undefined }, true);
            }}
          >
            <option value="sql">SQL</option>
            <option value="jq">jq</option>
          </select>
        </label>
        <span class="facts clip">
          {engine === "sql" ? "The rows are the table t." : "The input is the content."}
        </span>
        {engine === "sql" && (
          <details class="columns">
            <summary>Columns</summary>
            <Columns info={info} />
          </details>
        )}
        <span class="grow" />
        <span class="facts">Ctrl+Enter runs it</span>
      </div>
      <div class="editor">
        <textarea
          aria-label={engine === "sql" ? "SQL" : "jq filter"}
          spellcheck={false}
          autocomplete="off"
          autocapitalize="off"
          rows={Math.min(12, Math.max(3, text.split("\n").length))}
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) run();
          }}
        />
        <div class="run">
          <button type="button" class="button primary" disabled={state.kind === "asking"} onClick={run}>
            Run
          </button>
          {mayStore && (
            <span class="into">
              <input
                type="text"
                class="code"
                aria-label="URI of the whole result"
                placeholder="results://name"
                value={into}
                onInput={(event) => setInto(event.currentTarget.value)}
              />
              <button
                type="button"
                class="button"
                disabled={into.trim() === "" || text.trim() === "" || state.kind === "asking"}
                onClick={() => void ask(text, into.trim())}
              >
                Store the whole result
              </button>
            </span>
          )}
        </div>
      </div>
      {state.kind === "asking" ? (
        <Loading label="Asking" />
      ) : state.kind === "failed" ? (
        <Problem error={state.error} />
      ) : state.kind === "found" ? (
        <Found result={state.result} shown={shown} name={info.name} choose={(result) => place.set({ result }, true)} />
      ) : (
        <Empty title="No result yet">Write a query and run it. It reads all rows, and changes nothing.</Empty>
      )}
    </section>
  );
}

async function answerTo(info: Info, engine: "sql" | "jq", query: string, into?: string): Promise<Result> {
  const answer = await callExactly("query_resource", {
    from: info.uri,
    // A stored query may be asked again after a change, so it is of the revision that is shown.
    ...(info.revisions.length > 1 && { revision: info.revision }),
    [engine]: query,
    limit: LIMIT,
    ...(into !== undefined && { into: { uri: into } }),
  });
  if (answer.isError || !answer.structuredContent) {
    throw new Error((answer.content ?? []).map((block) => block.text ?? "").join("\n") || "The server refuses this.");
  }
  return answer.structuredContent as unknown as Result;
}

function Columns({ info }: { info: Info }) {
  const columns = info.records?.columns;
  if (!columns) return <p class="hint">line_no and line</p>;
  return (
    <ul>
      {columns.map((column) => (
        <li key={column.name} class="code">
          {visible(column.name)} <span class="none">{column.type}</span>
        </li>
      ))}
    </ul>
  );
}

interface FoundProps {
  result: Result;
  shown: "table" | "chart";
  name: string;
  choose: (shown: "chart" | undefined) => void;
}

function Found({ result, shown, name, choose }: FoundProps) {
  const { columns, rows, total, stored, notes } = result;
  const numeric = columns.flatMap((column, at) => (column.type === "integer" || column.type === "number" ? [at] : []));
  const canDraw = numeric.length > 0 && rows.length > 1;
  return (
    <>
      <div class="bar">
        <output class="facts" aria-label="Result">
          {result.complete ? count(total, "row") : `the first ${number(rows.length)} of ${count(total, "row")}`}, from{" "}
          {count(result.read.rows, "row")} read
        </output>
        {stored !== undefined && (
          <span role="status">
            Stored as <a href={resourceAddress(stored)}>{visible(stored)}</a>
          </span>
        )}
        <span class="grow" />
        {canDraw && (
          <div class="legend" role="group" aria-label="Result as">
            <button type="button" class="toggle" aria-pressed={shown === "table"} onClick={() => choose(undefined)}>
              Table
            </button>
            <button type="button" class="toggle" aria-pressed={shown === "chart"} onClick={() => choose("chart")}>
              Chart
            </button>
          </div>
        )}
      </div>
      {(notes ?? []).length > 0 && <p class="notes hint">{(notes ?? []).map((note) => note.text).join("; ")}.</p>}
      {rows.length === 0 ? (
        <Empty title="No rows">The result is empty.</Empty>
      ) : shown === "chart" && canDraw ? (
        result.complete ? (
          <Drawn result={result} numeric={numeric} name={name} />
        ) : (
          <Empty title="Only a part of the result is here">
            {`A chart of ${number(rows.length)} of ${count(total, "row")} would say too little. Aggregate in the query, or store the whole result and open its chart.`}
          </Empty>
        )
      ) : (
        <Rows result={result} />
      )}
    </>
  );
}

function Rows({ result: { columns, rows } }: { result: Result }) {
  const isNumber = (at: number) => columns[at]?.type === "integer" || columns[at]?.type === "number";
  return (
    <div class="figures answer" tabIndex={0} role="region" aria-label="Rows of the result">
      <table>
        <thead>
          <tr>
            {columns.map((column, at) => (
              <th key={at} scope="col" class={isNumber(at) ? "end" : ""} dir="auto">
                {visible(column.name)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, index) => (
            <tr key={index}>
              {row.map((value, at) => (
                <td key={at} class={isNumber(at) ? "end" : typeof value === "object" ? "code" : ""} dir="auto">
                  {value === null ? <span class="none">–</span> : cell(value)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** The value as the query has it: figures without marks between thousands can be copied. */
function cell(value: Value): string {
  return visible(typeof value === "object" ? JSON.stringify(value) : String(value));
}

/** The value beside its bar. */
const amount = (value: Value | undefined) => (typeof value === "number" || typeof value === "string" ? value : null);

/** A result of few rows with a text first is drawn as bars, another one as curves over its rows or its first numbers. */
function Drawn({ result: { columns, rows }, numeric, name }: { result: Result; numeric: number[]; name: string }) {
  const isCurve = numeric[0] === 0 && numeric.length > 1;
  const shown = numeric.slice(isCurve ? 1 : 0, MAX_CURVES + (isCurve ? 1 : 0));
  const label = numeric[0] === 0 ? undefined : 0;
  const data = useMemo<uPlot.AlignedData>(() => {
    const points = rows.flatMap((row, index) => {
      const x = isCurve ? figure(row[0]) : index + 1;
      return x === null ? [] : [{ row, x }];
    });
    points.sort((a, b) => a.x - b.x);
    return [points.map(({ x }) => x), ...shown.map((at) => points.map(({ row }) => figure(row[at])))];
  }, [rows, isCurve]);
  const names = shown.map((at) => visible(columns[at]?.name ?? ""));
  if (label !== undefined && rows.length <= 200) return <Bars columns={columns} rows={rows} at={shown[0] ?? 0} />;
  return (
    <>
      <p class="keys">
        {names.map((name, at) => (
          <span key={name}>
            <span class={`swatch curve-${at}`} aria-hidden="true" /> {name}
          </span>
        ))}
      </p>
      <Plot data={data} names={names} isTime={false} label={name} />
    </>
  );
}

/** The number to draw of a value in a column of numbers, if it has one. */
function figure(value: Value | undefined): number | null {
  const found = typeof value === "number" || (typeof value === "string" && value !== "") ? Number(value) : Number.NaN;
  return Number.isFinite(found) ? found : null;
}

function Bars({ columns, rows, at }: { columns: Result["columns"]; rows: Value[][]; at: number }) {
  const values = rows.map((row) => figure(row[at]) ?? 0);
  const low = Math.min(0, ...values);
  const high = Math.max(0, ...values);
  // The room of the track without that of the figure.
  const part = (size: number) => (high > low ? `calc((100% - var(--amount)) * ${size / (high - low)})` : "0");
  return (
    <div class="bars" tabIndex={0} role="region" aria-label={`Bars of ${columns[at]?.name ?? ""}`}>
      <table>
        <thead class="hidden">
          <tr>
            <th scope="col">{visible(columns[0]?.name ?? "")}</th>
            <th scope="col">{visible(columns[at]?.name ?? "")}</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((row, index) => (
            <tr key={index}>
              <th scope="row" dir="auto">
                <span class="clip">{row[0] === null || row[0] === undefined ? "none" : cell(row[0])}</span>
              </th>
              <td class="track">
                <span
                  class="fill"
                  style={{ marginInlineStart: part(Math.min(0, values[index] ?? 0) - low), width: part(Math.abs(values[index] ?? 0)) }}
                />
                <span class="amount">{exact(amount(row[at]))}</span>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
