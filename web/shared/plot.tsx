// Curves over numbers or times.

import uPlot from "uplot";
import { useEffect, useRef } from "preact/hooks";

import { timeOfDay } from "./format.ts";

/** How many colours there are. */
export const MAX_CURVES = 6;

/** With fewer points than this, each is drawn: a line needs two. */
const FEW = 3;

interface PlotProps {
  data: uPlot.AlignedData;
  names: string[];
  isTime: boolean;
  label: string;
  /** How the values of an hour are written; they begin at 0. */
  format?: (value: number) => string;
  /** Whether times are shown in UTC instead of where the person is. */
  isUtc?: boolean;
  /** Whether each curve has a lowest and a highest value beside it. */
  hasBands?: boolean;
  /** Gets the index of the point that the pointer is at. */
  onPoint?: (index: number | undefined) => void;
}

export function Plot({ data, names, isTime, label, format, isUtc = false, hasBands = false, onPoint }: PlotProps) {
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const element = place.current;
    if (!element) return;
    let plot: uPlot | undefined;
    const draw = () => {
      plot?.destroy();
      const { width, height } = element.getBoundingClientRect();
      const size = { width, height: Math.max(160, height) };
      const few = (data[0]?.length ?? 0) < FEW;
      if (width > 0) plot = new uPlot(options(element, { names, isTime, size, few, format, isUtc, hasBands, onPoint }), data, element);
    };
    draw();
    const observer = new ResizeObserver(() => {
      const { width, height } = element.getBoundingClientRect();
      if (plot && width > 0) plot.setSize({ width, height: Math.max(160, height) });
      else draw();
    });
    observer.observe(element);
    const theme = new MutationObserver(draw);
    theme.observe(document.documentElement, { attributes: true });
    return () => {
      theme.disconnect();
      observer.disconnect();
      plot?.destroy();
    };
  }, [data, names.join(), isTime, format, hasBands]);
  return <div ref={place} class="plot" role="img" aria-label={`Curves of ${names.join(", ")} in ${label}`} />;
}

interface Given {
  names: string[];
  isTime: boolean;
  size: { width: number; height: number };
  few: boolean;
  format: ((value: number) => string) | undefined;
  isUtc: boolean;
  hasBands: boolean;
  onPoint: ((index: number | undefined) => void) | undefined;
}

function options(element: Element, given: Given): uPlot.Options {
  const { names, isTime, size, few, format, isUtc, hasBands, onPoint } = given;
  const style = getComputedStyle(element);
  const token = (name: string) => style.getPropertyValue(name).trim();
  const axis: uPlot.Axis = {
    stroke: token("--text-2"),
    font: `11px ${style.fontFamily}`,
    grid: { stroke: token("--line"), width: 1 },
    ticks: { stroke: token("--line"), width: 1, size: 4 },
  };
  const values: uPlot.Axis = format ? { values: (_, ticks) => ticks.map(format) } : {};
  const times: uPlot.Axis = format ? { values: (_, ticks) => clock(ticks), size: 30 } : {};
  return {
    ...size,
    ...(isUtc && { tzDate: (seconds: number) => uPlot.tzDate(new Date(seconds * 1000), "UTC") }),
    ...(onPoint && { hooks: { setCursor: [(plot: uPlot) => onPoint(plot.cursor.idx ?? undefined)] } }),
    legend: { show: false },
    cursor: { y: false, points: { size: 6 } },
    padding: [12, format ? 28 : 12, 4, 4],
    scales: {
      x: { time: isTime },
      ...(format && { y: { range: (_: uPlot, __: number, max: number): [number, number] => [0, max > 0 ? max * 1.1 : 1] } }),
    },
    axes: [{ ...axis, ...times }, { ...axis, size: 64, ...values }],
    series: [
      {},
      ...names.flatMap((label, at): uPlot.Series[] => {
        const stroke = token(`--curve-${at % MAX_CURVES}`);
        const curve = { label, stroke, width: 1.5, points: { show: few } };
        const edge = { stroke: "transparent", width: 0, points: { show: false } };
        return hasBands ? [curve, edge, edge] : [curve];
      }),
    ],
    ...(hasBands && {
      bands: names.map((_, at): uPlot.Band => ({
        series: [3 * at + 3, 3 * at + 2],
        fill: `${token(`--curve-${at % MAX_CURVES}`)}33`,
      })),
    }),
  };
}

/** Times of day, without seconds where all are whole minutes. */
function clock(ticks: number[]): string[] {
  const isWhole = ticks.every((time) => time % 60 === 0);
  return ticks.map((time) => timeOfDay(time * 1000).slice(0, isWhole ? 5 : 8));
}
