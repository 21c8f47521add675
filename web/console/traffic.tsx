// The traffic of the instance that answers, for operators: totals, curves of the last hour, and a table of the same numbers.

import type { ComponentChildren } from "preact";
import { useCallback, useMemo, useRef, useState } from "preact/hooks";

import { age, number, size, timeOfDay, visible } from "../shared/format.ts";
import { Plot } from "../shared/plot.tsx";
import { Empty, Loading, Problem } from "../shared/states.tsx";
import { type Caller, type Sample, type Samples, traffic } from "./api.ts";
import type { Shell } from "./app.tsx";
import { useEvery } from "./every.ts";

/** How often the page asks again, in milliseconds. */
const PAUSE = 5000;

/** The numbers between two samples, at the time of the later one. */
interface Step {
  time: number;
  calls: number;
  errors: number;
  running: number;
  streams: number;
  keptOut: number;
  returned: number;
}

interface Curve {
  name: string;
  of: (step: Step) => number;
}

const rate = (value: number): string => value.toLocaleString("en-US", { maximumFractionDigits: value < 10 ? 2 : 0 });
const whole = (value: number): string => (Number.isInteger(value) ? number(value) : "");
const bytes = (value: number): string => (value < 1 ? "0" : size(Math.round(value)));

const CHARTS: { title: string; curves: Curve[]; format: (value: number) => string }[] = [
  {
    title: "Bytes a second",
    curves: [
      { name: "Kept out of context", of: (step) => step.keptOut },
      { name: "Returned", of: (step) => step.returned },
    ],
    format: bytes,
  },
  {
    title: "Calls a second",
    curves: [
      { name: "Calls", of: (step) => step.calls },
      { name: "Errors", of: (step) => step.errors },
    ],
    format: rate,
  },
  {
    title: "Calls and streams in progress",
    curves: [
      { name: "Running calls", of: (step) => step.running },
      { name: "Open streams", of: (step) => step.streams },
    ],
    format: whole,
  },
];

export function Traffic({ shell }: { shell: Shell }) {
  const [found, setFound] = useState<Samples | Error>();
  const turn = useRef(0);
  const load = useCallback(async () => {
    const mine = ++turn.current;
    try {
      const samples = await traffic();
      if (mine === turn.current) setFound(samples);
    } catch (error) {
      const problem = shell.failed(error);
      if (problem && mine === turn.current) setFound(problem);
    }
  }, [shell.failed]);
  useEvery(PAUSE, load);
  return (
    <main class="list" aria-labelledby="traffic-title">
      <div class="heading">
        <h1 id="traffic-title">Traffic</h1>
        {found && !(found instanceof Error) && (
          <p class="usage">
            Of the instance that answers, which started {age(new Date(found.started).toISOString(), found.now.time)}
          </p>
        )}
      </div>
      <div class="sheet">
        {found === undefined ? (
          <Loading />
        ) : found instanceof Error ? (
          <Problem error={found} retry={() => void load()} />
        ) : (
          <Found {...found} />
        )}
      </div>
    </main>
  );
}

function Found({ samples, now, callers, others }: Samples) {
  const steps = useMemo(() => between(samples), [samples]);
  return (
    <>
      <dl class="totals">
        <Total label="Kept out of context">{bytes(now.kept_out_bytes)}</Total>
        <Total label="Returned by tools">{bytes(now.returned_bytes)}</Total>
        <Total label="Calls">{number(now.calls)}</Total>
        <Total label="Errors">{number(now.errors)}</Total>
        <Total label="Running calls">{number(now.running)}</Total>
        <Total label="Open streams">{number(now.streams)}</Total>
      </dl>
      {steps.length === 0 ? (
        <Empty title="There are no curves yet">
          The server has just started. They begin after ten seconds and show the last hour.
        </Empty>
      ) : (
        <>
          <div class="charts">
            {CHARTS.map(({ title, curves, format }) => (
              <Chart key={title} title={title} curves={curves} format={format} steps={steps} />
            ))}
          </div>
          <Table steps={steps} />
        </>
      )}
      {callers.length > 0 && <Callers callers={callers} others={others} />}
    </>
  );
}

/** Who has called, the most calls first. The sums are the totals above. */
function Callers({ callers, others }: { callers: Caller[]; others: Caller }) {
  const all = others.calls > 0 ? [...callers, { ...others, name: "all others" }] : callers;
  return (
    <section class="top-callers">
      <h2>Callers since the start</h2>
      <div class="figures" tabIndex={0} role="region" aria-label="Callers">
        <table>
          <thead>
            <tr>
              {["Caller", "Calls", "Errors", "Received", "Stored"].map((name) => (
                <th key={name} scope="col">
                  {name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {all.map((caller) => (
              <tr key={caller.name}>
                <th scope="row" dir="auto">
                  {visible(caller.name)}
                </th>
                <td>{number(caller.calls)}</td>
                <td>{number(caller.errors)}</td>
                <td>{bytes(caller.received_bytes)}</td>
                <td>{bytes(caller.stored_bytes)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function Total({ label, children }: { label: string; children: ComponentChildren }) {
  return (
    <div>
      <dt>{label}</dt>
      <dd>{children}</dd>
    </div>
  );
}

function Chart(props: { title: string; curves: Curve[]; format: (value: number) => string; steps: Step[] }) {
  const { title, curves, format, steps } = props;
  const data = useMemo<[number[], ...number[][]]>(
    () => [steps.map((step) => step.time / 1000), ...curves.map((curve) => steps.map(curve.of))],
    [steps, curves],
  );
  return (
    <section class="chart">
      <h2>{title}</h2>
      <p class="keys">
        {curves.map((curve, at) => (
          <span key={curve.name}>
            <span class={`swatch curve-${at}`} aria-hidden="true" />
            {curve.name}
          </span>
        ))}
      </p>
      <Plot data={data} names={curves.map((curve) => curve.name)} isTime label={title.toLowerCase()} format={format} />
    </section>
  );
}

/** The same numbers, for those who do not see the curves. */
function Table({ steps }: { steps: Step[] }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <details class="samples" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>Numbers of the curves</summary>
      {isOpen && (
        <div class="figures" tabIndex={0} role="region" aria-label="Numbers of the curves">
          <table>
            <thead>
              <tr>
                <th scope="col">Time</th>
                {CHARTS.flatMap(({ title, curves }) =>
                  curves.map(({ name }) => (
                    <th key={name} scope="col">
                      {title.endsWith("a second") ? `${name}, a second` : name}
                    </th>
                  )),
                )}
              </tr>
            </thead>
            <tbody>
              {steps.toReversed().map((step) => (
                <tr key={step.time}>
                  <th scope="row">{timeOfDay(step.time)}</th>
                  {CHARTS.flatMap(({ curves, format }) =>
                    curves.map((curve) => <td key={curve.name}>{format(curve.of(step))}</td>),
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

function between(samples: Sample[]): Step[] {
  return samples.slice(1).flatMap((sample, index) => {
    const before = samples[index] ?? sample;
    const seconds = (sample.time - before.time) / 1000;
    // The clock was set back.
    if (seconds <= 0) return [];
    return {
      time: sample.time,
      calls: (sample.calls - before.calls) / seconds,
      errors: (sample.errors - before.errors) / seconds,
      running: sample.running,
      streams: sample.streams,
      keptOut: (sample.kept_out_bytes - before.kept_out_bytes) / seconds,
      returned: (sample.returned_bytes - before.returned_bytes) / seconds,
    };
  });
}
