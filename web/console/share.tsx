// Shares a resource by a link.

import { useState } from "preact/hooks";

import { visible } from "../shared/format.ts";
import { text } from "./api.ts";
import type { Shell } from "./app.tsx";
import { Dialog } from "./dialog.tsx";

type With = "everyone" | "group" | "scope";

const LIFETIMES = { "": "as long as the resource", "3600": "one hour", "86400": "one day" };

export function Share({ uri, shell, close }: { uri: string; shell: Shell; close: () => void }) {
  const [audience, setAudience] = useState<With>("everyone");
  const [name, setName] = useState("");
  const [ttl, setTtl] = useState("");
  const [link, setLink] = useState<string>();
  const [copied, setCopied] = useState(false);
  const [problem, setProblem] = useState<string>();
  const share = async () => {
    setProblem(undefined);
    try {
      const shared = await text("share_resource", {
        uri,
        with: audience,
        ...(audience !== "everyone" && { name }),
        ...(ttl !== "" && { ttl: Number(ttl) }),
      });
      setLink(shared.split("\n")[0]);
    } catch (error) {
      setProblem(shell.failed(error)?.message);
    }
  };
  return (
    <Dialog title="Share" close={close}>
      {link === undefined ? (
        <form
          onSubmit={(event) => {
            event.preventDefault();
            void share();
          }}
        >
          <p class="hint">A link by which others on this server read {visible(uri)}. They cannot change it.</p>
          <label>
            With
            <select value={audience} onChange={(event) => setAudience(event.currentTarget.value as With)}>
              <option value="everyone">everyone who has the link</option>
              <option value="group">a group</option>
              <option value="scope">a scope</option>
            </select>
          </label>
          {audience !== "everyone" && (
            <label>
              Name of the {audience}
              <input type="text" required value={name} onInput={(event) => setName(event.currentTarget.value)} />
            </label>
          )}
          <label>
            For
            <select value={ttl} onChange={(event) => setTtl(event.currentTarget.value)}>
              {Object.entries(LIFETIMES).map(([value, label]) => (
                <option key={value} value={value}>
                  {label}
                </option>
              ))}
            </select>
          </label>
          {problem !== undefined && (
            <p class="danger" role="alert">
              {problem}
            </p>
          )}
          <div class="choices">
            <button type="button" class="button" onClick={close}>
              Cancel
            </button>
            <button type="submit" class="button primary">
              Share
            </button>
          </div>
        </form>
      ) : (
        <div>
          <p class="hint">To revoke the link, delete it in the list of resources or by delete_resource.</p>
          <label>
            Link
            <input type="text" class="code" readOnly value={link} onFocus={(event) => event.currentTarget.select()} />
          </label>
          <div class="choices">
            <span role="status">{copied ? "Copied." : ""}</span>
            <button
              type="button"
              class="button"
              onClick={() =>
                void navigator.clipboard.writeText(link).then(
                  () => setCopied(true),
                  () => undefined,
                )
              }
            >
              Copy
            </button>
            <button type="button" class="button primary" onClick={close}>
              Done
            </button>
          </div>
        </div>
      )}
    </Dialog>
  );
}
