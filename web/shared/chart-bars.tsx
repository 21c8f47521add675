// Bars: a value of each group, the largest first.

import { type Given, useFigures } from "./chart.tsx";
import { count, exact, leftOut, number, visible } from "./format.ts";
import type { BarChart, ChartRequest, Info } from "./source.ts";
import { Empty, Loading, Problem } from "./states.tsx";

const GROUPS = 100;

export function BarsChart({ info, source, chart, narrow, facts, word }: Given & { word: string }) {
  const found = useFigures(
    () => source.chart({ chart, limit: GROUPS, ...narrow } as ChartRequest) as unknown as Promise<BarChart>,
    [info.uri, info.revision, chart, narrow],
  );
  if (found instanceof Error) return <Problem error={found} />;
  if (!found) return <Loading label="Counting" />;
  if (found.bars.length === 0) return <Empty title="No group">No row fits.</Empty>;

  const values = found.bars.map(([, , value]) => Number(value ?? 0));
  const low = Math.min(0, ...values);
  const high = Math.max(0, ...values);
  // The room of the track without that of the figure.
  const part = (size: number) => (high > low ? `calc((100% - var(--amount)) * ${size / (high - low)})` : "0");
  const left = leftOut((found.values ?? 0) - (found.numbers ?? 0));
  const shown = found.bars.reduce((sum, [, rows]) => sum + rows, 0);
  return (
    <>
      <div class="bar readout">
        <output class="facts">
          {found.groups > found.bars.length
            ? `${number(found.bars.length)} of ${count(found.groups, "group")}; the others have ${count(found.rows - shown, "row")}`
            : count(found.groups, "group")}
        </output>
        <span class="grow" />
        <output class="facts">{[facts(found.rows), left].filter(Boolean).join(", ")}</output>
      </div>
      <div class="bars" tabIndex={0} role="region" aria-label="Bars">
        <table>
          <thead class="hidden">
            <tr>
              <th scope="col">{visible(chart.x ?? "")}</th>
              <th scope="col">{word}</th>
            </tr>
          </thead>
          <tbody>
            {found.bars.map(([group, rows, value], index) => (
              <tr key={index} title={count(rows, "row")}>
                <th scope="row" dir="auto" class={group === null ? "none" : ""}>
                  <span class="clip">{label(info, chart.x ?? "", group)}</span>
                </th>
                <td class="track">
                  <span
                    class="fill"
                    style={{ marginInlineStart: part(Math.min(0, values[index] ?? 0) - low), width: part(Math.abs(values[index] ?? 0)) }}
                  />
                  <span class="amount">{exact(value)}</span>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}

/** A group as the table shows it: SQL has booleans as 1 and 0. */
function label(info: Info, column: string, group: string | null): string {
  if (group === null) return "none";
  if (group === "") return "(empty)";
  const isBoolean = info.records?.columns.some((one) => one.name === column && one.type === "boolean");
  if (isBoolean && (group === "0" || group === "1")) return group === "1" ? "true" : "false";
  return visible(group);
}
