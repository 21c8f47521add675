// A histogram: how many values are in each bin.

import { type Given, useFigures } from "./chart.tsx";
import { FigureTable } from "./chart-line.tsx";
import { count, exact, leftOut, number } from "./format.ts";
import type { ChartRequest, HistogramChart } from "./source.ts";
import { Empty, Loading, Problem } from "./states.tsx";

const BINS = 40;

export function HistogramView({ info, source, chart, narrow, facts }: Given) {
  const found = useFigures(
    () => source.chart({ chart, limit: BINS, ...narrow } as ChartRequest) as unknown as Promise<HistogramChart>,
    [info.uri, info.revision, chart, narrow],
  );
  if (found instanceof Error) return <Problem error={found} />;
  if (!found) return <Loading label="Counting" />;
  if (found.bins.length === 0) return <Empty title="No numbers">No row has a number in this column.</Empty>;

  const most = Math.max(...found.bins.map(([, , count]) => count));
  const counted = found.bins.reduce((sum, [, , count]) => sum + count, 0);
  return (
    <>
      <div class="bar readout">
        <output class="facts">{[count(counted, "value"), leftOut((found.figures[0]?.values ?? 0) - counted)].filter(Boolean).join("; ")}</output>
        <span class="grow" />
        <output class="facts">{facts(found.rows)}</output>
      </div>
      <div class="histogram" role="img" aria-label={`Histogram of ${chart.y[0] ?? ""}; the table below has its numbers`}>
        {found.bins.map((bin, at) => (
          <span key={at} class="bin" title={`${range(found, at)}: ${number(bin[2])}`} style={{ height: `${(bin[2] / most) * 100}%` }} />
        ))}
      </div>
      <p class="ends" aria-hidden="true">
        <span>{exact(found.figures[0]?.min ?? null)}</span>
        <span>{exact(found.figures[0]?.max ?? null)}</span>
      </p>
      <FigureTable figures={found.figures} />
      <div class="figures" tabIndex={0} role="region" aria-label="Bins">
        <table>
          <thead>
            <tr>
              <th scope="col">Values</th>
              <th scope="col">Count</th>
            </tr>
          </thead>
          <tbody>
            {found.bins.map((bin, at) => (
              <tr key={at}>
                <th scope="row">{range(found, at)}</th>
                <td>{number(bin[2])}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}

/** `1 to 4`; of numbers with decimals, the end is that of the next bin, but of the last it belongs to it. */
function range({ bins, whole }: HistogramChart, at: number): string {
  const [from, to] = bins[at] ?? [0, 0];
  if (!whole) return at + 1 < bins.length ? `${exact(from)} to below ${exact(to)}` : `${exact(from)} to ${exact(to)}`;
  const last = typeof to === "number" ? to - 1 : String(BigInt(to) - 1n);
  return String(last) === String(from) ? exact(from) : `${exact(from)} to ${exact(last)}`;
}
