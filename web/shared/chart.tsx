// Charts of a table: curves, bars of groups, a histogram. The server aggregates them over all rows that fit the filters of the
// table, so no row is left out.

import { useEffect, useState } from "preact/hooks";

import { BarsChart } from "./chart-bars.tsx";
import { HistogramView } from "./chart-histogram.tsx";
import { LineView } from "./chart-line.tsx";
import { describeFilter, isFilters } from "./filters.tsx";
import { count, number, visible } from "./format.ts";
import { type Place, parsed, usePlace } from "./place.ts";
import { MAX_CURVES } from "./plot.tsx";
import type { Aggregate, Chart, ChartColumns, ChartRequest, Filter, Info, Source } from "./source.ts";
import { Empty, Loading, Problem } from "./states.tsx";

const KINDS = { line: "Curves", bars: "Bars of groups", histogram: "Histogram" } as const;
const AGGREGATES: { [by in Aggregate]: string } = {
  rows: "number of rows",
  sum: "sum of",
  mean: "mean of",
  min: "lowest of",
  max: "highest of",
};

/** The columns, by what their values are. */
interface Drawable {
  all: string[];
  numeric: string[];
  /** The columns whose values all are numbers: a few numbers among texts are seldom meant. */
  wholly: string[];
  dates: string[];
}

/** What the source answers to a request; undefined before. */
export function useFigures<T>(read: () => Promise<T>, keys: unknown[]): T | Error | undefined {
  const [found, setFound] = useState<{ key: string; value: T | Error }>();
  const key = JSON.stringify(keys);
  useEffect(() => {
    let isCurrent = true;
    read().then(
      (value) => isCurrent && setFound({ key, value }),
      (error: unknown) => isCurrent && setFound({ key, value: error instanceof Error ? error : new Error(String(error)) }),
    );
    return () => {
      isCurrent = false;
    };
  }, [key]);
  return found?.key === key ? found.value : undefined;
}

export function ChartView({ info, source }: { info: Info; source: Source }) {
  const place = usePlace();
  const filter = parsed<Filter[]>(place.get("filter"), isFilters, []);
  const query = place.get("find") ?? "";
  const narrow = { ...(filter.length > 0 && { filter }), ...(query && { query }) };
  const columns = useFigures(() => source.chart({} as ChartRequest) as Promise<ChartColumns>, [info.uri, info.revision]);

  if (columns instanceof Error) return <Problem error={columns} />;
  if (!columns) return <Loading label="Reading" />;

  const drawable = drawn(columns);
  if (drawable.all.length === 0) return <Empty title="No rows">There is nothing to draw.</Empty>;
  const chart = chosen(place, drawable, info);
  const isFiltered = filter.length > 0 || query !== "";
  const facts = (rows: number) => `${isFiltered ? `${number(rows)} of ` : ""}${count(columns.rows, "row")}`;
  const given = { info, source, chart, narrow, facts };
  return (
    <section class="view" aria-label="Chart">
      <div class="bar">
        <Pick label="Chart" value={chart.kind} options={KINDS} onChoose={(kind) => place.set({ chart: kind, x: undefined, y: undefined }, true)} />
        <Choices chart={chart} columns={drawable} place={place} />
        {isFiltered && (
          <span class="facts clip" title="The filters of the table">
            {[...filter.map(describeFilter), ...(query ? [`with ${visible(query)}`] : [])].join("; ")}
          </span>
        )}
        {columns.more > 0 && <span class="facts">{count(columns.more, "more column")} cannot be chosen here</span>}
      </div>
      {chart.kind === "bars" ? (
        <BarsChart {...given} word={chart.by === "rows" ? "Rows" : `${AGGREGATES[chart.by ?? "rows"]} ${visible(chart.y[0] ?? "")}`} />
      ) : chart.y.length === 0 ? (
        <Empty title={drawable.numeric.length === 0 ? "No numbers" : "No curve"}>
          {drawable.numeric.length === 0 ? "No column of the table has numbers. Bars count the rows of groups." : "Choose a column above."}
        </Empty>
      ) : chart.kind === "histogram" ? (
        <HistogramView {...given} />
      ) : (
        <LineView {...given} />
      )}
    </section>
  );
}

/** What a view of a chart gets. */
export interface Given {
  info: Info;
  source: Source;
  chart: Chart;
  /** The filters of the table. */
  narrow: Omit<ChartRequest, "chart" | "limit">;
  /** How many rows were counted. */
  facts: (rows: number) => string;
}

function drawn({ columns }: ChartColumns): Drawable {
  const filled = columns.filter((column) => column.values > 0);
  return {
    all: columns.map((column) => column.name),
    numeric: filled.filter((column) => (column.numbers ?? 0) > 0).map((column) => column.name),
    wholly: filled.filter((column) => column.numbers === column.values).map((column) => column.name),
    dates: filled.filter((column) => column.dates === column.values).map((column) => column.name),
  };
}

const isTexts = (value: unknown): value is string[] => Array.isArray(value) && value.every((one) => typeof one === "string");

/** The chart of the choices, as far as the columns have it. */
function chosen(place: Place, columns: Drawable, info: Info): Chart {
  const wanted = place.get("chart") as Chart["kind"] | undefined;
  const kind = wanted !== undefined && wanted in KINDS ? wanted : columns.wholly.length > 0 ? "line" : "bars";
  const x = place.get("x");
  const hasX = (names: string[]) => x !== undefined && names.includes(x);

  if (kind === "bars") {
    const by = place.get("by") as Aggregate | undefined;
    const groups = columns.all.filter((name) => !columns.wholly.includes(name) && !columns.dates.includes(name));
    const y = parsed(place.get("y"), isTexts, []).filter((name) => columns.numeric.includes(name));
    const value = y[0] ?? columns.wholly[0] ?? columns.numeric[0];
    return {
      kind,
      x: hasX(columns.all) ? (x as string) : (groups[0] ?? columns.all[0] ?? ""),
      y: value === undefined ? [] : [value],
      by: by !== undefined && by in AGGREGATES && value !== undefined ? by : "rows",
    };
  }

  const across = kind === "line" ? (hasX([...columns.numeric, ...columns.dates]) ? x : x === "" ? undefined : columns.dates[0]) : undefined;
  const others = columns.numeric.filter((name) => name !== across);
  const most = kind === "histogram" ? 1 : MAX_CURVES;
  // A column that numbers the rows says nothing as a curve, nor does one of booleans, which SQL has as 1 and 0.
  const isBoolean = (name: string) => info.records?.columns.some((one) => one.name === name && one.type === "boolean");
  const whole = others.filter((name) => columns.wholly.includes(name));
  const telling = whole.filter((name) => !/^(id|row|index|nr|no)$/i.test(name) && !isBoolean(name));
  const otherwise = (telling.length > 0 ? telling : whole.length > 0 ? whole : others).slice(0, kind === "histogram" ? 1 : 3);
  const y = parsed(place.get("y"), isTexts, otherwise).filter((name) => others.includes(name));
  return { kind, ...(across !== undefined && { x: across }), y: y.slice(0, most) };
}

function Choices({ chart, columns, place }: { chart: Chart; columns: Drawable; place: Place }) {
  const named = (names: string[]) => Object.fromEntries(names.map((name) => [name, visible(name) || "(no name)"]));
  const setY = (names: string[]) => place.set({ y: JSON.stringify(names) }, true);

  if (chart.kind === "bars") {
    const by = columns.numeric.length > 0 ? AGGREGATES : { rows: AGGREGATES.rows };
    return (
      <>
        <Pick label="Groups" value={chart.x ?? ""} options={named(columns.all)} onChoose={(x) => place.set({ x }, true)} />
        <Pick label="Show" value={chart.by ?? "rows"} options={by} onChoose={(by) => place.set({ by }, true)} />
        {chart.by !== "rows" && (
          <Pick label="Values" value={chart.y[0] ?? ""} options={named(columns.numeric)} onChoose={(name) => setY([name])} />
        )}
      </>
    );
  }
  if (chart.kind === "histogram") {
    return <Pick label="Values" value={chart.y[0] ?? ""} options={named(columns.numeric)} onChoose={(name) => setY([name])} />;
  }

  const across = { "": "Row number", ...named([...columns.dates, ...columns.numeric]) };
  return (
    <>
      <Pick label="Across" value={chart.x ?? ""} options={across} onChoose={(x) => place.set({ x, y: undefined }, true)} />
      <div class="legend" role="group" aria-label="Curves">
        {columns.numeric
          .filter((name) => name !== chart.x)
          .map((name) => {
            const at = chart.y.indexOf(name);
            return (
              <button
                key={name}
                type="button"
                class="toggle"
                aria-pressed={at >= 0}
                disabled={at < 0 && chart.y.length >= MAX_CURVES}
                onClick={() => setY(at >= 0 ? chart.y.filter((one) => one !== name) : [...chart.y, name])}
              >
                <span class={`swatch ${at >= 0 ? `curve-${at}` : ""}`} aria-hidden="true" />
                <span class="clip" dir="auto">
                  {visible(name)}
                </span>
              </button>
            );
          })}
      </div>
    </>
  );
}

function Pick<T extends string>(props: { label: string; value: T; options: { [value: string]: string }; onChoose: (value: T) => void }) {
  return (
    <label class="field">
      {props.label}
      <select value={props.value} onChange={(event) => props.onChoose(event.currentTarget.value as T)}>
        {Object.entries(props.options).map(([value, label]) => (
          <option key={value} value={value}>
            {label}
          </option>
        ))}
      </select>
    </label>
  );
}
