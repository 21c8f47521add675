// Curves: in each bucket the mean, and the range from the lowest to the highest value.

import type uPlot from "uplot";
import { useMemo, useState } from "preact/hooks";

import { type Given, useFigures } from "./chart.tsx";
import { count, exact, leftOut, moment, visible } from "./format.ts";
import { MAX_CURVES, Plot } from "./plot.tsx";
import type { ChartRequest, Figure, Figures, LineChart } from "./source.ts";
import { Empty, Loading, Problem } from "./states.tsx";

/** About as many buckets as a screen has room for. */
const BUCKETS = 400;
/** The numbers of a bucket before those of its columns, and of each column. */
const HEAD = 3;
const EACH = 4;

export function LineView({ info, source, chart, narrow, facts }: Given) {
  const found = useFigures(
    () => source.chart({ chart, limit: BUCKETS, ...narrow } as ChartRequest) as unknown as Promise<LineChart>,
    [info.uri, info.revision, chart, narrow],
  );
  const [pointed, setPointed] = useState<number>();
  const data = useMemo(() => (found && !(found instanceof Error) ? series(found, chart.y.length) : undefined), [found]);

  if (found instanceof Error) return <Problem error={found} />;
  if (!found || !data) return <Loading label="Counting" />;
  if (found.buckets.length === 0) return <Empty title="No point">No row has a value across.</Empty>;

  const names = chart.y.map(visible);
  const across = (bucket: Figure[]) => span(bucket[0] ?? null, bucket[1] ?? null, found.across);
  const bucket = pointed === undefined ? undefined : found.buckets[pointed];
  const missing = found.rows - found.placed;
  const left = leftOut(found.figures.reduce((sum, one) => sum + one.values - one.count, 0));
  return (
    <>
      <div class="bar readout">
        <output class="facts clip" aria-label="At the pointer">
          {bucket
            ? `${across(bucket)}: ${names.map((name, at) => `${name} ${values(bucket, at)}`).join("; ")}`
            : found.single
              ? "Each point has all rows of its value."
              : `Each point is the mean of a bucket; the band reaches from its lowest to its highest value.`}
        </output>
        <span class="grow" />
        <output class="facts">
          {facts(found.rows)}
          {missing > 0 && `, ${count(missing, "row")} without a value across`}
          {left !== undefined && `, ${left}`}
        </output>
      </div>
      <Plot data={data} names={names} isTime={found.across === "time"} isUtc hasBands label={info.name} onPoint={setPointed} />
      <FigureTable figures={found.figures} />
      <Buckets found={found} names={names} across={across} />
    </>
  );
}

/** `x`, then of each column the mean, the lowest and the highest value. */
function series({ buckets }: LineChart, columns: number): uPlot.AlignedData {
  const value = (figure: Figure | undefined) => (figure === null || figure === undefined ? null : Number(figure));
  const xs = buckets.map((bucket) => (Number(bucket[0]) + Number(bucket[1])) / 2);
  const curves = Array.from({ length: columns }, (_, at) =>
    [2, 1, 3].map((place) => buckets.map((bucket) => value(bucket[HEAD + EACH * at + place]))),
  );
  return [xs, ...curves.flat()];
}

function span(from: Figure, to: Figure, across: LineChart["across"]): string {
  const text = (figure: Figure) => (across === "time" ? moment(Number(figure)) : exact(figure));
  const word = across === "row" ? "Row " : "";
  return from === to ? `${word}${text(from)}` : `${word}${text(from)} to ${text(to)}`;
}

function values(bucket: Figure[], column: number): string {
  const [count, low, mean, high] = bucket.slice(HEAD + EACH * column, HEAD + EACH * (column + 1));
  if (!count) return "–";
  return low === high ? exact(mean ?? null) : `${exact(mean ?? null)} (${exact(low ?? null)} to ${exact(high ?? null)})`;
}

/** The figures of all rows. */
export function FigureTable({ figures }: { figures: Figures[] }) {
  return (
    <div class="figures" tabIndex={0} role="region" aria-label="Figures">
      <table>
        <thead>
          <tr>
            <th scope="col">Column</th>
            <th scope="col">Numbers</th>
            <th scope="col">Lowest</th>
            <th scope="col">Mean</th>
            <th scope="col">Highest</th>
          </tr>
        </thead>
        <tbody>
          {figures.map((one, at) => (
            <tr key={one.column}>
              <th scope="row" dir="auto">
                <span class={`swatch curve-${at % MAX_CURVES}`} aria-hidden="true" />
                {visible(one.column)}
              </th>
              {[one.count, one.min, one.mean, one.max].map((figure, at) => (
                <td key={at}>{exact(figure)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** The numbers of the curves, for those who do not see them. */
function Buckets(props: { found: LineChart; names: string[]; across: (bucket: Figure[]) => string }) {
  const [isOpen, setOpen] = useState(false);
  const { found, names, across } = props;
  return (
    <details class="samples" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>Numbers of the curves</summary>
      {isOpen && (
        <div class="figures" tabIndex={0} role="region" aria-label="Numbers of the curves">
          <table>
            <thead>
              <tr>
                <th scope="col">{found.across === "row" ? "Rows" : "Across"}</th>
                <th scope="col">Count</th>
                {names.flatMap((name) =>
                  ["lowest", "mean", "highest"].map((word) => (
                    <th key={`${name} ${word}`} scope="col">
                      {name}, {word}
                    </th>
                  )),
                )}
              </tr>
            </thead>
            <tbody>
              {found.buckets.map((bucket, row) => (
                <tr key={row}>
                  <th scope="row">{across(bucket)}</th>
                  <td>{exact(bucket[2] ?? null)}</td>
                  {names.flatMap((name, at) =>
                    [1, 2, 3].map((place) => <td key={`${name} ${place}`}>{exact(bucket[HEAD + EACH * at + place] ?? null)}</td>),
                  )}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </details>
  );
}
