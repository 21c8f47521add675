// The page: waits for the result of view_resource, shows the resource, follows its revisions.

import { useEffect, useMemo, useState } from "preact/hooks";

import { number } from "../shared/format.ts";
import { Icon } from "../shared/icons.tsx";
import { OpenLink } from "../shared/markdown.tsx";
import { MemoryPlace, PlaceContext } from "../shared/place.ts";
import type { Info } from "../shared/source.ts";
import { Empty, Loading, Problem } from "../shared/states.tsx";
import { Viewer } from "../shared/viewer.tsx";
import type { Bridge, HostContext } from "./bridge.ts";
import { type ToolSource, value } from "./source.ts";

/** What the page was given. */
export type State =
  | { kind: "waiting"; uri?: string }
  | { kind: "shown"; info: Info; source: ToolSource }
  | { kind: "cancelled"; reason?: string }
  | { kind: "failed"; error: Error }
  /** The host removes the page. */
  | { kind: "closed" };

interface Props {
  state: State;
  context: HostContext;
  bridge: Bridge;
  /** Shows another revision. */
  show: (info: Info) => void;
}

export function App({ state, context, bridge, show }: Props) {
  switch (state.kind) {
    case "waiting":
      return (
        <main class="viewer" aria-busy="true">
          <h1 class="hidden">Larder</h1>
          <Loading label={state.uri ? `Opening ${state.uri}` : "Opening"} />
        </main>
      );
    case "cancelled":
      return (
        <main class="viewer">
          <h1 class="hidden">Larder</h1>
          <Empty title="The call was cancelled">{state.reason}</Empty>
        </main>
      );
    case "failed":
      return (
        <main class="viewer">
          <h1 class="hidden">Larder</h1>
          <Problem error={state.error} />
        </main>
      );
    case "closed":
      return <main class="viewer" aria-label="Larder" />;
    case "shown":
      return <Shown key={state.info.uri} state={state} context={context} bridge={bridge} show={show} />;
  }
}

function Shown({ state, context, bridge, show }: Props & { state: Extract<State, { kind: "shown" }> }) {
  const { info, source } = state;
  const [problem, setProblem] = useState<string>();
  const latest = useLatest(source, info, setProblem);
  // Another revision is seen as the one before was.
  const place = useMemo(() => new MemoryPlace(), [info.uri]);
  const openLink = (url: string) => void bridge.open(url).catch(() => setProblem(`The host does not open ${url}.`));
  const isFull = context.displayMode === "fullscreen";
  const canResize = context.availableDisplayModes?.includes(isFull ? "inline" : "fullscreen");
  const reload = async () => {
    try {
      show(await source.at(info.uri).info());
    } catch (error) {
      setProblem(error instanceof Error ? error.message : String(error));
    }
  };
  const download = async () => {
    try {
      const answer = value(await bridge.call("download_url", { uri: info.uri }));
      await bridge.open(String((answer["download"] as { url?: string } | undefined)?.url));
    } catch (error) {
      setProblem(error instanceof Error ? error.message : String(error));
    }
  };
  return (
    <PlaceContext value={place}>
      <OpenLink value={openLink}>
        <main class="page">
          <Viewer
            info={info}
            source={source}
            download={bridge.capabilities.openLinks && (() => void download())}
            actions={
              canResize && (
                <button
                  type="button"
                  class="button bare"
                  aria-label={isFull ? "Leave full screen" : "Full screen"}
                  title={isFull ? "Leave full screen" : "Full screen"}
                  onClick={() => void bridge.display(isFull ? "inline" : "fullscreen").catch(() => undefined)}
                >
                  <Icon name={isFull ? "shrink" : "expand"} />
                </button>
              )
            }
            notice={
              problem !== undefined ? (
                <div class="notice warning" role="alert">
                  {problem}
                </div>
              ) : (
                latest !== undefined &&
                latest !== info.revision && (
                  <div class="notice" role="status">
                    Revision {number(latest)} is there.
                    <button type="button" class="button" onClick={() => void reload()}>
                      <Icon name="refresh" />
                      Show it
                    </button>
                  </div>
                )
              )
            }
          />
        </main>
      </OpenLink>
    </PlaceContext>
  );
}

/** The number of the latest revision: a page cannot subscribe, so it asks while it is seen. */
function useLatest(source: ToolSource, info: Info, gone: (problem: string | undefined) => void): number | undefined {
  const [latest, setLatest] = useState<number>();
  useEffect(() => {
    let timer: number;
    let isCurrent = true;
    const ask = async () => {
      if (document.visibilityState === "visible") {
        try {
          const found = await source.at(info.uri).latest();
          if (isCurrent) {
            setLatest(found);
            gone(undefined);
          }
        } catch (error) {
          if (isCurrent) gone(error instanceof Error ? error.message : String(error));
        }
      }
      if (isCurrent) timer = window.setTimeout(() => void ask(), info.poll * 1000);
    };
    timer = window.setTimeout(() => void ask(), info.poll * 1000);
    return () => {
      isCurrent = false;
      window.clearTimeout(timer);
    };
  }, [source, info.uri, info.revision, info.poll]);
  return latest;
}
