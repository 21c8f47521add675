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
  done: () => void;
}

export function Many({ items, shell, clear, done }: Props) {
  const [isAsking, setAsking] = useState(false);
  const [removed, setRemoved] = useState<number>();
  const [problem, setProblem] = useState<string>();
  /** Each by itself: an error ends the rest, and the list shows what is left. */
  const remove = async () => {
    setProblem(undefined);
    let count = 0;
    try {
      for (const item of items) {
        setRemoved(count);
        await text("delete_resource", { uri: item.uri });
        count += 1;
      }
      done();
    } catch (error) {
      setRemoved(undefined);
      setProblem(shell.failed(error)?.message);
    }
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
            {removed !== undefined && <progress aria-label="Deleted" value={removed} max={items.length} />}
            <button type="button" class="button" onClick={() => setAsking(false)}>
              Cancel
            </button>
            <button type="button" class="button destructive" disabled={removed !== undefined} onClick={() => void remove()}>
              Delete
            </button>
          </div>
        </Dialog>
      )}
    </div>
  );
}
