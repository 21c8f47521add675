// One resource: its views, its revisions, and what can be done with it.

import { useCallback, useEffect, useState } from "preact/hooks";

import { number, visible } from "../shared/format.ts";
import type { Info } from "../shared/source.ts";
import { Empty, Loading, Problem } from "../shared/states.tsx";
import { Viewer } from "../shared/viewer.tsx";
import { ordinal, usePlace } from "../shared/place.ts";
import type { ToolSource } from "../view/source.ts";
import { data, here } from "./api.ts";
import type { Shell } from "./app.tsx";
import { useChanges } from "./changes.ts";
import { Expiry } from "./expiry.tsx";
import { Copy } from "./copy.tsx";
import { folderAddress } from "./place.ts";
import { QueryView } from "./query.tsx";
import { Remove } from "./remove.tsx";
import { Share } from "./share.tsx";
import { sourceOf } from "./source.ts";

type State = { kind: "loading" } | { kind: "failed"; error: Error } | { kind: "shown"; info: Info; source: ToolSource };

export function Resource({ uri, shell }: { uri: string; shell: Shell }) {
  const [state, setState] = useState<State>({ kind: "loading" });
  const place = usePlace();
  const revision = ordinal(place.get("revision"));
  const setRevision = (next: number | undefined) => place.set({ revision: next === undefined ? undefined : String(next) }, true);
  const [latest, setLatest] = useState<number>();
  const [open, setOpen] = useState<"share" | "expiry" | "delete">();
  const [problem, setProblem] = useState<string>();
  const failed = (error: unknown) => {
    const found = shell.failed(error);
    if (found) setState({ kind: "failed", error: found });
  };
  const load = useCallback(async () => {
    try {
      const info = await sourceOf(uri, revision).info();
      if (revision === undefined) setLatest(info.revision);
      setState({ kind: "shown", info, source: sourceOf(uri, info.revision) });
    } catch (error) {
      failed(error);
    }
  }, [uri, revision]);
  useEffect(() => {
    if (shell.tools.has("view_window")) void load();
  }, [load]);
  useChanges(uri, () => {
    sourceOf(uri).latest().then(setLatest, failed);
  });
  const download = async () => {
    try {
      const link = await data<{ download: { url: string } }>("download_url", { uri });
      location.assign(here(link.download.url));
    } catch (error) {
      setProblem(shell.failed(error)?.message);
    }
  };
  const close = () => setOpen(undefined);

  return (
    <main class="resource">
      <nav class="crumbs" aria-label="Breadcrumbs">
        <a href="#/">Resources</a>
        {folders(uri).map(([name, prefix]) => (
          <a key={prefix} href={folderAddress(prefix)} dir="auto">
            {visible(name)}
          </a>
        ))}
      </nav>
      {state.kind !== "shown" && <h1 class="missing clip">{visible(uri)}</h1>}
      {!shell.tools.has("view_window") ? (
        <Empty title="The viewer is off">Its operator can set apps.enabled, or your scopes do not allow it.</Empty>
      ) : state.kind === "loading" ? (
        <Loading />
      ) : state.kind === "failed" ? (
        <Problem error={state.error} retry={() => void load()} />
      ) : (
        <Viewer
          key={state.info.revision}
          more={
            shell.tools.has("query_resource") && state.info.text
              ? { view: "query", name: "Query", content: () => <QueryView info={state.info} shell={shell} /> }
              : undefined
          }
          info={state.info}
          source={state.source}
          notice={
            problem !== undefined ? (
              <div class="notice warning" role="alert">
                {problem}
              </div>
            ) : (
              latest !== undefined &&
              latest > state.info.revision && (
                <div class="notice" role="status">
                  {revision === undefined ? `Revision ${number(latest)} is there.` : "This is an earlier revision."}
                  <button
                    type="button"
                    class="button"
                    onClick={() => (revision === undefined ? void load() : setRevision(undefined))}
                  >
                    Show the latest
                  </button>
                </div>
              )
            )
          }
          actions={
            <>
              <Copy label="Copy URI" text={uri} />
              {state.info.revisions.length > 1 && (
                <select
                  aria-label="Revision"
                  value={String(state.info.revision)}
                  onChange={(event) => {
                    const chosen = Number(event.currentTarget.value);
                    setRevision(chosen === latest ? undefined : chosen);
                  }}
                >
                  {state.info.revisions.toReversed().map((one) => (
                    <option key={one} value={one}>
                      Revision {one}
                    </option>
                  ))}
                </select>
              )}
              {shell.tools.has("download_url") && (
                <button type="button" class="button" onClick={() => void download()}>
                  Download
                </button>
              )}
              {shell.tools.has("share_resource") && (
                <button type="button" class="button" onClick={() => setOpen("share")}>
                  Share
                </button>
              )}
              {shell.tools.has("update_resource") && revision === undefined && (
                <button type="button" class="button" onClick={() => setOpen("expiry")}>
                  Expiry
                </button>
              )}
              {shell.tools.has("delete_resource") && (
                <button type="button" class="button" onClick={() => setOpen("delete")}>
                  Delete
                </button>
              )}
            </>
          }
        />
      )}
      {open === "share" && <Share uri={uri} shell={shell} close={close} />}
      {open === "expiry" && state.kind === "shown" && (
        <Expiry
          uri={uri}
          expires={state.info.expires}
          shell={shell}
          close={close}
          changed={() => {
            close();
            void load();
          }}
        />
      )}
      {open === "delete" && state.kind === "shown" && (
        <Remove
          uri={uri}
          name={state.info.title ?? state.info.name}
          shell={shell}
          close={close}
          deleted={() => {
            location.hash = "#/";
          }}
        />
      )}
    </main>
  );
}

/** The folders of a URI, as the list has them: their names and prefixes. */
function folders(uri: string): [string, string][] {
  return [...uri.matchAll(/\/+(?=[^/])/g)].map((slash, at, all) => {
    const before = all[at - 1];
    const start = before ? before.index + before[0].length : 0;
    const end = slash.index + slash[0].length;
    return [uri.slice(start, end), uri.slice(0, end)];
  });
}
