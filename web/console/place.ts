// The address of what is seen: `#/resource/URI?view=log&search=error#L410`. It is behind the `#`, so no server, proxy or log
// gets it.

import type { Choices, Place } from "../shared/place.ts";

export interface Address {
  /** Such as `/`, `/owners` or `/resource/…`. */
  path: string;
  choices: URLSearchParams;
}

/** The address of a fragment. A line comes last, as `#L410`. */
export function read(hash: string): Address {
  const [, rest = "", line] = /^#?(.*?)(?:[#&?]L(\d+))?$/s.exec(hash) ?? [];
  const [path = "", query = ""] = split(rest, "?");
  const choices = new URLSearchParams(query);
  if (line !== undefined) choices.set("line", line);
  return { path: path || "/", choices };
}

export function written({ path, choices }: Address): string {
  const others = new URLSearchParams(choices);
  const line = others.get("line");
  others.delete("line");
  const query = others.toString();
  return `#${path}${query && `?${query}`}${line === null ? "" : `#L${line}`}`;
}

/** The address of a resource's page. */
export const resourceAddress = (uri: string, choices: { [name: string]: string } = {}): string =>
  written({ path: `/resource/${encodeURIComponent(uri)}`, choices: new URLSearchParams(choices) });

/** The address of the list of what is in a folder. */
export const folderAddress = (prefix: string): string =>
  written({ path: "/", choices: new URLSearchParams({ folders: "yes", ...(prefix && { prefix }) }) });

/** The URI of an address, if it is one of a resource. */
export function uriOf({ path }: Address): string | undefined {
  const encoded = /^\/resource\/(.+)$/s.exec(path)?.[1];
  try {
    return encoded === undefined ? undefined : decodeURIComponent(encoded);
  } catch {
    return undefined;
  }
}

/** How long the URL lags behind what is typed, in milliseconds. */
const WRITE_PAUSE = 300;

/** The choices in the address of the browser. */
export class AddressPlace implements Place {
  private followers = new Set<() => void>();
  /** What the URL will say shortly: browsers limit how often a page may change it, and a person types faster. */
  private later: { address: Address; from: string; timer: number } | undefined;

  constructor() {
    const tell = () => {
      this.drop();
      this.tell();
    };
    // A link in the page changes the fragment; the buttons of the browser go through the history.
    window.addEventListener("hashchange", tell);
    window.addEventListener("popstate", tell);
  }

  get address(): Address {
    return this.later?.address ?? read(location.hash);
  }

  get(name: string): string | undefined {
    return this.address.choices.get(name) ?? undefined;
  }

  set(changes: Choices, step = false): void {
    const before = this.address;
    const { path } = before;
    const choices = new URLSearchParams(before.choices);
    for (const [name, value] of Object.entries(changes)) {
      if (value === undefined) choices.delete(name);
      else choices.set(name, value);
    }
    const address = { path, choices };
    if (written(address) === written(before)) return;

    if (step) {
      this.write();
      change("pushState", address);
    } else {
      this.drop();
      this.later = { address, from: location.hash, timer: window.setTimeout(() => this.write(), WRITE_PAUSE) };
    }
    this.tell();
  }

  follow(changed: () => void): () => void {
    this.followers.add(changed);
    return () => this.followers.delete(changed);
  }

  /** Writes what is to be written later. */
  private write(): void {
    const later = this.later;
    this.drop();
    // A link may have led elsewhere meanwhile.
    if (later && later.from === location.hash) change("replaceState", later.address);
  }

  private drop(): void {
    window.clearTimeout(this.later?.timer);
    this.later = undefined;
  }

  private tell(): void {
    for (const follower of this.followers) follower();
  }
}

function change(by: "pushState" | "replaceState", address: Address): void {
  try {
    history[by](null, "", written(address));
  } catch {
    // A browser that refuses so many changes takes one with the fragment.
    location.hash = written(address);
  }
}

function split(text: string, at: string): [string, string] {
  const index = text.indexOf(at);
  return index < 0 ? [text, ""] : [text.slice(0, index), text.slice(index + 1)];
}
