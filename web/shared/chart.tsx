// Curves of numeric columns, of a sample of the rows.

import type uPlot from "uplot";
import { useEffect, useMemo, useState } from "preact/hooks";

import { count, number, visible } from "./format.ts";
import { MAX_CURVES, Plot } from "./plot.tsx";
import type { Cell, Column, Info, Rows, Source } from "./source.ts";
import { Empty, Loading, Problem } from "./states.tsx";

const POINTS = 1500;
const ROW_NUMBER = "\u0000row";

export function ChartView({ info, source }: { info: Info; source: Source }) {
  const columns = info.records?.columns ?? [];
  const numeric = columns.filter(isNumber);
  const [sample, setSample] = useState<Rows>();
  const [error, setError] = useState<Error>();
  const times = useMemo(() => (sample ? timeColumns(sample) : []), [sample]);
  const [chosenX, setX] = useState<string>();
  const [toggled, setToggled] = useState<ReadonlySet<string>>(new Set());
  const x = chosenX ?? times[0] ?? ROW_NUMBER;
  const curves = numeric.filter((column) => column.name !== x).slice(0, 24);
  const ordinal = useMemo(() => new Set(sample ? curves.filter((one) => isOrdinal(sample, one)) : []), [sample, x]);
  const isDefault = (column: Column) => curves.indexOf(column) < MAX_CURVES && !ordinal.has(column);
  const shown = curves.filter((column) => isDefault(column) !== toggled.has(column.name));

  useEffect(() => {
    let isCurrent = true;
    read(source, info).then(
      (rows) => isCurrent && setSample(rows),
      (problem: unknown) => isCurrent && setError(problem instanceof Error ? problem : new Error(String(problem))),
    );
    return () => {
      isCurrent = false;
    };
  }, [source, info.revision]);

  if (error) return <Problem error={error} />;
  if (!sample) return <Loading label="Reading" />;
  if (numeric.length === 0) return <Empty title="No numbers">No column of the table has numbers.</Empty>;
  const total = info.records?.total ?? sample.rows.length;
  const data = series(sample, x, shown);
  return (
    <section class="view" aria-label="Chart">
      <div class="bar">
        <label class="field">
          Across
          <select value={x} onChange={(event) => setX(event.currentTarget.value)}>
            <option value={ROW_NUMBER}>Row number</option>
            {[...times, ...numeric.map((column) => column.name)].map((name) => (
              <option key={name} value={name}>
                {visible(name)}
              </option>
            ))}
          </select>
        </label>
        <div class="legend" role="group" aria-label="Curves">
          {curves.map((column) => {
            const at = shown.indexOf(column);
            return (
              <button
                key={column.name}
                type="button"
                class="toggle"
                aria-pressed={at >= 0}
                onClick={() => {
                  const next = new Set(toggled);
                  if (!next.delete(column.name)) next.add(column.name);
                  setToggled(next);
                }}
              >
                <span class={`swatch ${at >= 0 ? `curve-${at % MAX_CURVES}` : ""}`} aria-hidden="true" />
                <span class="clip" dir="auto">
                  {visible(column.name)}
                </span>
              </button>
            );
          })}
        </div>
        <span class="grow" />
        <output class="facts">
          {sample.rows.length < total ? `${number(sample.rows.length)} of ${count(total, "row")}` : count(total, "row")}
        </output>
      </div>
      {shown.length === 0 ? (
        <Empty title="No curve">Choose a column above.</Empty>
      ) : (
        <Plot data={data} names={shown.map((column) => visible(column.name))} isTime={times.includes(x)} label={info.name} />
      )}
      <Summary columns={shown} data={data} />
    </section>
  );
}

/** All rows of a short table, evenly chosen ones of a long one. */
async function read(source: Source, info: Info): Promise<Rows> {
  const total = info.records?.total ?? 0;
  if (total > POINTS || !info.records) {
    if (info.sorts) {
      const columns = (info.records?.columns ?? []).filter((column) => column.type === "number" || column.type === "text");
      // Few columns may be dates; what is neither a number nor a date is not drawn.
      const wanted = [...columns.filter(isNumber), ...columns.filter((column) => !isNumber(column)).slice(0, 4)];
      return source.window({ as: "chart", offset: 0, limit: POINTS, columns: wanted.slice(0, 32).map((one) => one.name) });
    }
  }
  const all: Rows = { columns: [], rows: [], offset: 0 };
  while (all.rows.length < Math.min(total, POINTS)) {
    const part = await source.window({ as: "table", offset: all.rows.length, limit: POINTS - all.rows.length });
    if (part.rows.length === 0) break;
    if (part.columns.length > all.columns.length) all.columns = part.columns;
    all.rows.push(...part.rows);
  }
  return all;
}

const isNumber = (column: Column): boolean => column.type === "number";

/** Whether the column counts the rows: a curve of it says nothing. */
function isOrdinal(sample: Rows, column: Column): boolean {
  const at = sample.columns.findIndex((one) => one.name === column.name);
  const values = sample.rows.map((row) => Number(row[at] ?? NaN));
  return values.length > 2 && values.every((value, n) => Number.isInteger(value) && (n === 0 || value > (values[n - 1] ?? value)));
}

const seconds = (cell: Cell | undefined): number | null => {
  if (!cell || !/^\d{4}-\d\d-\d\d/.test(cell)) return null;
  const time = Date.parse(cell);
  return Number.isNaN(time) ? null : time / 1000;
};

/** Columns whose texts are dates, in the order of the rows. */
function timeColumns(sample: Rows): string[] {
  return sample.columns
    .filter((column, at) => {
      if (column.type !== "text") return false;
      const seen = sample.rows.slice(0, 50).map((row) => seconds(row[at]));
      return seen.length > 1 && seen.every((time) => time !== null);
    })
    .map((column) => column.name);
}

function series(sample: Rows, x: string, shown: Column[]): uPlot.AlignedData {
  const place = (name: string) => sample.columns.findIndex((column) => column.name === name);
  const value = (cell: Cell | undefined) => (cell === null || cell === undefined || cell === "" ? null : Number(cell));
  const step = sample.step ?? 1;
  const at = place(x);
  const rows = sample.rows
    .map((row, index) => ({ row, x: x === ROW_NUMBER ? index * step + 1 : (seconds(row[at]) ?? value(row[at])) }))
    .filter((one): one is { row: Cell[]; x: number } => one.x !== null && Number.isFinite(one.x))
    .sort((a, b) => a.x - b.x);
  const places = shown.map((column) => place(column.name));
  return [
    rows.map((one) => one.x),
    ...places.map((at) =>
      rows.map((one) => {
        const y = value(one.row[at]);
        return y !== null && Number.isFinite(y) ? y : null;
      }),
    ),
  ];
}

/** The figures, for those who do not see the curves. */
function Summary({ columns, data }: { columns: Column[]; data: uPlot.AlignedData }) {
  const short = (value: number) => Number(value.toPrecision(6)).toLocaleString("en-US", { maximumFractionDigits: 6 });
  return (
    <div class="figures" tabIndex={0} role="region" aria-label="Figures">
      <table>
        <thead>
          <tr>
            <th scope="col">Column</th>
            <th scope="col">Lowest</th>
            <th scope="col">Mean</th>
            <th scope="col">Highest</th>
          </tr>
        </thead>
        <tbody>
          {columns.map((column, at) => {
            const values = Array.from(data[at + 1] ?? []).filter((value): value is number => typeof value === "number");
            const sum = values.reduce((sum, value) => sum + value, 0);
            return (
              <tr key={column.name}>
                <th scope="row" dir="auto">
                  <span class={`swatch curve-${at % MAX_CURVES}`} aria-hidden="true" />
                  {visible(column.name)}
                </th>
                <td>{values.length > 0 ? short(values.reduce((a, b) => Math.min(a, b))) : "–"}</td>
                <td>{values.length > 0 ? short(sum / values.length) : "–"}</td>
                <td>{values.length > 0 ? short(values.reduce((a, b) => Math.max(a, b))) : "–"}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}
