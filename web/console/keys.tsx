// Keys of the console: `/` leads to the search, `?` lists the keys, `j` and `k` go through the rows of the list.

import { useEffect, useState } from "preact/hooks";

import { Dialog } from "./dialog.tsx";

const KEYS = {
  "/": "to the search box",
  "j, k": "the next and the previous resource of the list",
  Enter: "opens the resource, or the row of a table",
  "n, N": "the next and the previous line that matches, in a text",
  "arrows, Page Up, Page Down, Home, End": "through rows, lines and values",
  Escape: "closes a row, a dialog or the filter",
  "?": "shows these keys",
} as const;

export function Keys() {
  const [isOpen, setOpen] = useState(false);
  useEffect(() => {
    const follow = (event: KeyboardEvent) => {
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
      if (document.querySelector("dialog[open]")) return;
      if (event.key === "/") focus("input[type=search]");
      else if (event.key === "?") setOpen(true);
      else if (event.key === "j" || event.key === "k") step(event.key === "j" ? 1 : -1);
      else return;
      event.preventDefault();
    };
    document.addEventListener("keydown", follow);
    return () => document.removeEventListener("keydown", follow);
  }, []);
  if (!isOpen) return null;
  return (
    <Dialog title="Keys" close={() => setOpen(false)}>
      <dl class="keys-list">
        {Object.entries(KEYS).map(([key, what]) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
      <div class="choices">
        <button type="button" class="button primary" onClick={() => setOpen(false)}>
          Close
        </button>
      </div>
    </Dialog>
  );
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.matches("input, textarea, select, [contenteditable]");
}

function focus(selector: string): void {
  const field = document.querySelector<HTMLInputElement>(selector);
  field?.focus();
  field?.select();
}

function step(by: number): void {
  const links = Array.from(document.querySelectorAll<HTMLElement>(".resources .title a, .matches li > a"));
  const at = links.indexOf(document.activeElement as HTMLElement);
  const next = at < 0 ? (by > 0 ? 0 : links.length - 1) : Math.min(links.length - 1, Math.max(0, at + by));
  links[next]?.focus();
}
