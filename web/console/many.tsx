// What can be done with several resources at once.

import { useState } from "preact/hooks";

import { count, visible } from "../shared/format.ts";
import { text } from "./api.ts";
import type { Shell } from "./app.tsx";
import { Copy } from "./copy.tsx";
import { Dialog } from "./dialog.tsx";
import type { Item } from "./list.tsx";

/** As many names as a question shows. */
const SHOWN = 8;

interface Props {
  items: Item[];
  shell: Shell;
  clear: () => void;
  /** A resource has been deleted. */
  removed: (uri: string) => void;
  /** Some have been deleted, and the list is to be read again. */
  done: () => void;
}

export function Many({ items, shell, clear, removed, done }: Props) {
  const [isAsking, setAsking] = useState(false);
  /** How many of how many are deleted, while that runs. */
  const [progress, setProgress] = useState<{ done: number; of: number }>();
  const [problem, setProblem] = useState<string>();
  /** Each by itself: an error ends the rest, and the list shows what is left. */
  const remove = async () => {
    setProblem(undefined);
    let count = 0;
    try {
      for (const item of items) {
        setProgress({ done: count, of: items.length });
        await removeOne(item.uri);
        removed(item.uri);
        count += 1;
      }
    } catch (error) {
      setProblem(shell.failed(error)?.message);
    }
    setProgress(undefined);
    done();
  };
  return (
    <div class="many" role="group" aria-label="Chosen resources">
      <span class="facts" role="status">
        {count(items.length, "resource")} chosen
      </span>
      <Copy label="Copy URIs" text={items.map((item) => item.uri).join("\n")} />
      {shell.tools.has("delete_resource") && (
        <button type="button" class="button" onClick={() => setAsking(true)}>
          Delete chosen
        </button>
      )}
      <button type="button" class="button" onClick={clear}>
        Choose none
      </button>
      {isAsking && (
        <Dialog title={`Delete ${count(items.length, "resource")}?`} close={() => setAsking(false)}>
          <ul class="names">
            {items.slice(0, SHOWN).map((item) => (
              <li key={item.uri} class="clip">
                <strong>{visible(item.name)}</strong> <span class="code">{visible(item.uri)}</span>
              </li>
            ))}
            {items.length > SHOWN && <li>and {count(items.length - SHOWN, "more resource")}</li>}
          </ul>
          <p class="hint">All their revisions are deleted, and links to them stop working. This cannot be undone.</p>
          {problem !== undefined && (
            <p class="danger" role="alert">
              {problem}
            </p>
          )}
          <div class="choices">
            {progress !== undefined && <progress aria-label="Deleted" value={progress.done} max={progress.of} />}
            <button type="button" class="button" onClick={() => setAsking(false)}>
              Cancel
            </button>
            <button type="button" class="button destructive" disabled={progress !== undefined} onClick={() => void remove()}>
              Delete
            </button>
          </div>
        </Dialog>
      )}
    </div>
  );
}

/** Deletes a resource. One that is gone already, by its expiry or by somebody else, is deleted. */
async function removeOne(uri: string): Promise<void> {
  try {
    await text("delete_resource", { uri });
  } catch (error) {
    if (!(error instanceof Error && /^Resource (not found|expired):/.test(error.message))) throw error;
  }
}
