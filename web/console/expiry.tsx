// Changes when a resource expires.

import { useState } from "preact/hooks";

import { expiry, visible } from "../shared/format.ts";
import { text } from "./api.ts";
import type { Shell } from "./app.tsx";
import { Dialog } from "./dialog.tsx";

const LIFETIMES = { "3600": "one hour", "86400": "one day", "604800": "seven days", "2592000": "30 days" };

interface Props {
  uri: string;
  expires: string;
  shell: Shell;
  close: () => void;
  changed: () => void;
}

export function Expiry({ uri, expires, shell, close, changed }: Props) {
  const [ttl, setTtl] = useState("604800");
  const [problem, setProblem] = useState<string>();
  const [busy, setBusy] = useState(false);
  const save = async () => {
    setBusy(true);
    setProblem(undefined);
    try {
      await text("update_resource", { uri, ttl: Number(ttl) });
      changed();
    } catch (error) {
      setProblem(shell.failed(error)?.message);
      setBusy(false);
    }
  };
  return (
    <Dialog title="Change the expiry" close={close}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void save();
        }}
      >
        <p>
          <span class="code wrap">{visible(uri)}</span> {expiry(expires, Date.now())}.
        </p>
        <label>
          Keep it from now for
          <select value={ttl} onChange={(event) => setTtl(event.currentTarget.value)}>
            {Object.entries(LIFETIMES).map(([value, label]) => (
              <option key={value} value={value}>
                {label}
              </option>
            ))}
          </select>
        </label>
        <p class="hint">The same content is stored as a new revision, so the oldest revision may go.</p>
        {problem !== undefined && (
          <p class="danger" role="alert">
            {problem}
          </p>
        )}
        <div class="choices">
          <button type="button" class="button" onClick={close}>
            Cancel
          </button>
          <button type="submit" class="button primary" disabled={busy}>
            Save
          </button>
        </div>
      </form>
    </Dialog>
  );
}
