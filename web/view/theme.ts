// The host's theme: its colours and fonts, if it gives any.

import type { HostContext } from "./bridge.ts";

/** Only variables of the specification: names that begin so. */
const VARIABLE = /^--(color|font|border|shadow)-[a-z0-9-]+$/;

export function applyTheme(context: HostContext): void {
  const root = document.documentElement;
  const prefersDark = window.matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset["theme"] = context.theme ?? (prefersDark ? "dark" : "light");
  for (const [name, value] of Object.entries(context.styles?.variables ?? {})) {
    if (value !== undefined && VARIABLE.test(name)) root.style.setProperty(name, value);
  }
  const insets = context.safeAreaInsets;
  if (insets) {
    root.style.setProperty("--inset", `${insets.top}px ${insets.right}px ${insets.bottom}px ${insets.left}px`);
  }
}
