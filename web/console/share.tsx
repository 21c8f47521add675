// Shares a resource by a link.

import { useState } from "preact/hooks";

import { visible } from "../shared/format.ts";
import { data, here, text } from "./api.ts";
import type { Shell } from "./app.tsx";
import { Copy } from "./copy.tsx";
import { Dialog } from "./dialog.tsx";
import { resourceAddress } from "./place.ts";

type With = "everyone" | "group" | "scope";

/** How long a link to download works, in seconds, unless another time is chosen. */
const DOWNLOAD = 86_400;

const LIFETIMES = { "": "as long as the resource", "3600": "one hour", "86400": "one day" };

export function Share({ uri, shell, close }: { uri: string; shell: Shell; close: () => void }) {
  const [audience, setAudience] = useState<With>("everyone");
  const [name, setName] = useState("");
  const [ttl, setTtl] = useState("");
  const [link, setLink] = useState<string>();
  const [download, setDownload] = useState<{ url: string; expires: string }>();
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
  /** Who has this link needs no login, and nothing revokes it, so it is made when it is asked for. */
  const makeDownload = async () => {
    setProblem(undefined);
    try {
      setDownload(await downloadOf(uri, ttl === "" ? DOWNLOAD : Number(ttl)));
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
          <LinkField
            label="Link for people"
            hint="It opens this console. They log in, unless this server needs no login."
            value={location.origin + location.pathname + resourceAddress(link)}
          />
          <LinkField label="Link for models and tools" hint="They read it as a resource of this server." value={link} />
          <p class="hint">To revoke these, delete {visible(link)} in the list of resources.</p>
          {download ? (
            <LinkField
              label="Link to download"
              hint={`Without a login, for everyone who has it, until ${new Date(download.expires).toLocaleString()}. It cannot be revoked.`}
              value={download.url}
            />
          ) : (
            audience === "everyone" &&
            shell.tools.has("download_url") && (
              <p class="hint">
                For people without a login:{" "}
                <button type="button" class="button small" onClick={() => void makeDownload()}>
                  Make a link to download
                </button>
              </p>
            )
          )}
          {problem !== undefined && (
            <p class="danger" role="alert">
              {problem}
            </p>
          )}
          <div class="choices">
            <button type="button" class="button primary" onClick={close}>
              Done
            </button>
          </div>
        </div>
      )}
    </Dialog>
  );
}

/** A link in a field, and a button that copies it. */
function LinkField({ label, hint, value }: { label: string; hint: string; value: string }) {
  return (
    <div class="link-field">
      <label>
        {label}
        <input type="text" class="code" readOnly value={value} onFocus={(event) => event.currentTarget.select()} />
      </label>
      <Copy label="Copy" text={value} />
      <p class="hint">{hint}</p>
    </div>
  );
}

async function downloadOf(uri: string, expires: number): Promise<{ url: string; expires: string }> {
  const made = await data<{ download: { url: string; expiresAt: string } }>("download_url", { uri, expires });
  return { url: here(made.download.url), expires: made.download.expiresAt };
}
