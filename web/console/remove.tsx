// Asks before it deletes.

import { useState } from "preact/hooks";

import { visible } from "../shared/format.ts";
import { text } from "./api.ts";
import type { Shell } from "./app.tsx";
import { Dialog } from "./dialog.tsx";

interface Props {
  uri: string;
  name: string;
  shell: Shell;
  close: () => void;
  deleted: () => void;
}

export function Remove({ uri, name, shell, close, deleted }: Props) {
  const [problem, setProblem] = useState<string>();
  const [busy, setBusy] = useState(false);
  const remove = async () => {
    setBusy(true);
    try {
      await text("delete_resource", { uri });
      deleted();
    } catch (error) {
      setProblem(shell.failed(error)?.message);
      setBusy(false);
    }
  };
  return (
    <Dialog title="Delete this resource?" close={close}>
      <p>
        <strong>{visible(name)}</strong>
        <br />
        <span class="code wrap">{visible(uri)}</span>
      </p>
      <p class="hint">All its revisions are deleted, and links to it stop working. This cannot be undone.</p>
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
          Delete
        </button>
      </div>
    </Dialog>
  );
}
