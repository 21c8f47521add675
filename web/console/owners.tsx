// The owners who have stored something, and what they use, for operators.

import { useCallback, useEffect, useRef, useState } from "preact/hooks";

import { count, number, size, visible } from "../shared/format.ts";
import { Empty, Loading, Problem } from "../shared/states.tsx";
import { type OwnerPage, type Use, owners, purge } from "./api.ts";
import type { Shell } from "./app.tsx";
import { Dialog } from "./dialog.tsx";

type Owner = OwnerPage["owners"][number];

export function Owners({ shell }: { shell: Shell }) {
  /** Where the pages so far begin; the last one is shown. */
  const [starts, setStarts] = useState<string[]>([""]);
  const [shown, setShown] = useState<OwnerPage | Error>();
  const [purging, setPurging] = useState<Owner>();
  const [notice, setNotice] = useState("");
  const turn = useRef(0);
  const after = starts[starts.length - 1] ?? "";
  const load = useCallback(async () => {
    const mine = ++turn.current;
    try {
      const page = await owners(after);
      if (mine === turn.current) setShown(page);
    } catch (error) {
      const found = shell.failed(error);
      if (found && mine === turn.current) setShown(found);
    }
  }, [after, shell.failed]);
  useEffect(() => void load(), [load]);
  const page = shown instanceof Error ? undefined : shown;
  return (
    <main class="list" aria-labelledby="owners-title">
      <div class="heading">
        <h1 id="owners-title">Owners</h1>
        {page && (
          <p class="usage">
            <span>All together: {size(page.total.bytes)}</span>
            <span>{count(page.total.resources, "resource")}</span>
          </p>
        )}
      </div>
      {notice !== "" && (
        <p class="notice" role="status">
          {notice}
        </p>
      )}
      <div class="sheet" aria-busy={shown === undefined || undefined}>
        {shown === undefined ? (
          <Loading />
        ) : shown instanceof Error ? (
          <Problem error={shown} retry={() => void load()} />
        ) : shown.owners.length === 0 ? (
          <Empty title={starts.length > 1 ? "There are no more owners" : "Nobody has stored anything"}>
            Everyone for whom something is stored appears here until it expires.
          </Empty>
        ) : (
          <table class="resources owners">
            <thead>
              <tr>
                <th scope="col">Owner</th>
                <th scope="col" class="figure">
                  Resources
                </th>
                <th scope="col" class="figure">
                  Stored
                </th>
                <th scope="col" class="wide">
                  Quota used
                </th>
                <th scope="col">
                  <span class="hidden">Actions</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {shown.owners.map((owner) => (
                <tr key={owner.owner}>
                  <td class="title" title={visible(owner.owner)}>
                    {owner.name && <strong class="clip">{visible(owner.name)}</strong>}
                    <span class="code clip">{visible(owner.owner)}</span>
                  </td>
                  <td class="figure">{number(owner.resources)}</td>
                  <td class="figure">{size(owner.bytes)}</td>
                  <td class="wide">
                    <Part use={owner} quota={shown.quota} />
                  </td>
                  <td class="tools">
                    <button
                      type="button"
                      class="button small"
                      aria-label={`Delete all of ${visible(owner.owner)}`}
                      onClick={() => setPurging(owner)}
                    >
                      Delete
                    </button>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
      </div>
      {page && (starts.length > 1 || page.next !== null) && (
        <nav class="pager" aria-label="Pages">
          <span class="facts">Page {number(starts.length)}</span>
          <button
            type="button"
            class="button"
            disabled={starts.length < 2}
            onClick={() => setStarts(starts.slice(0, -1))}
          >
            Previous
          </button>
          <button
            type="button"
            class="button"
            disabled={page.next === null}
            onClick={() => setStarts([...starts, page.next ?? ""])}
          >
            Next
          </button>
        </nav>
      )}
      {purging && (
        <Purge
          owner={purging}
          shell={shell}
          close={() => setPurging(undefined)}
          done={(deleted) => {
            setPurging(undefined);
            setNotice(`Deleted ${count(deleted, "resource")} of ${visible(purging.name ?? purging.owner)}.`);
            void load();
          }}
        />
      )}
    </main>
  );
}

/** How much of the quota an owner uses: the larger part of both. */
function Part({ use, quota }: { use: Use; quota: Use }) {
  const part = Math.max(use.bytes / quota.bytes, use.resources / quota.resources);
  return (
    <span class="usage">
      <meter aria-label="Quota used" min={0} max={1} high={0.85} value={Math.min(1, part)} />
      <span>{part > 0 && part < 0.01 ? "< 1" : Math.floor(part * 100)} %</span>
    </span>
  );
}

/** Asks before it deletes all that an owner has stored. */
function Purge(props: {
  owner: Owner;
  shell: Shell;
  close: () => void;
  done: (deleted: number) => void;
}) {
  const { owner, shell, close, done } = props;
  const [problem, setProblem] = useState<string>();
  const [busy, setBusy] = useState(false);
  const remove = async () => {
    setBusy(true);
    try {
      done(await purge(owner.owner));
    } catch (error) {
      setProblem(shell.failed(error)?.message);
      setBusy(false);
    }
  };
  return (
    <Dialog title="Delete all that this owner has stored?" close={close}>
      <p>
        <strong class="wrap">{visible(owner.owner)}</strong>
        <br />
        {count(owner.resources, "resource")}, {size(owner.bytes)}
      </p>
      <p class="hint">
        All revisions are deleted, and links to them stop working. What the owner stores meanwhile may stay. This
        cannot be undone.
      </p>
      {problem !== undefined && (
        <p class="danger" role="alert">
          {problem}
        </p>
      )}
      <div class="choices">
        <button type="button" class="button" onClick={close}>
          Cancel
        </button>
        <button type="button" class="button destructive" disabled={busy} onClick={() => void remove()}>
          Delete all
        </button>
      </div>
    </Dialog>
  );
}
