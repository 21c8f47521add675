// What operators see: the servers behind this one.

import { useCallback, useState } from "preact/hooks";

import { age, number, visible } from "../shared/format.ts";
import { Empty, Loading, Problem } from "../shared/states.tsx";
import { type Upstream, upstreams } from "./api.ts";
import type { Shell } from "./app.tsx";
import { useEvery } from "./every.ts";

/** How often the page asks again, in milliseconds. */
const PAUSE = 5000;

const STATES = {
  idle: "not used yet",
  no_access: "callers have no access",
  needs_login: "waits for a login",
  starting: "starting",
  down: "not reachable",
  up: "reachable",
  degraded: "reachable, in part",
} as const;

const ERRORS: { [kind: string]: string } = {
  start: "did not start, or ended by itself",
  ended: "ended during a call",
  timeout: "did not answer in time",
  too_long: "sent too long a message",
  no_room: "no room for its message",
};

export function Upstreams({ shell }: { shell: Shell }) {
  const [found, setFound] = useState<Upstream[] | Error>();
  const load = useCallback(async () => {
    try {
      setFound(await upstreams());
    } catch (error) {
      setFound((before) => shell.failed(error) ?? before);
    }
  }, [shell.failed]);
  useEvery(PAUSE, load);
  return (
    <main class="list" aria-labelledby="upstreams-title">
      <div class="heading">
        <h1 id="upstreams-title">Upstreams</h1>
      </div>
      <div class="sheet">
        {found === undefined ? (
          <Loading />
        ) : found instanceof Error ? (
          <Problem error={found} retry={() => void load()} />
        ) : found.length === 0 ? (
          <Empty title="There are no upstreams">
            Other MCP servers behind this one, which [[upstreams]] names, appear here.
          </Empty>
        ) : (
          <table class="resources upstreams">
            <thead>
              <tr>
                <th scope="col">Name</th>
                <th scope="col">State</th>
                <th scope="col" class="figure">
                  Tools
                </th>
                <th scope="col">Last error</th>
              </tr>
            </thead>
            <tbody>
              {found.map((upstream) => (
                <tr key={upstream.name}>
                  <td class="clip">{visible(upstream.name)}</td>
                  <td class={upstream.state === "down" ? "danger" : ""}>
                    {STATES[upstream.state]}
                    {upstream.degraded !== null && `: ${visible(upstream.degraded)}`}
                  </td>
                  <td class="figure">{upstream.tools === null ? "" : number(upstream.tools)}</td>
                  <td>{lastError(upstream)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
      </div>
    </main>
  );
}

function lastError({ last_error: kind, error_seconds_ago: seconds }: Upstream): string {
  if (kind === null) return "none";
  const now = Date.now();
  const time = new Date(now - (seconds ?? 0) * 1000).toISOString();
  return `${ERRORS[kind] ?? "another error"}, ${age(time, now)}`;
}
