// What is shown where there is nothing to show.

import type { ComponentChildren } from "preact";

export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="state" role="status">
      <p class="state-title">{title}</p>
      {children && <p class="state-text">{children}</p>}
    </div>
  );
}

export function Problem({ error, retry }: { error: Error; retry?: () => void }) {
  return (
    <div class="state" role="alert">
      <p class="state-title">This cannot be shown</p>
      <p class="state-text">{error.message}</p>
      {retry && (
        <button type="button" class="button" onClick={retry}>
          Try again
        </button>
      )}
    </div>
  );
}

export function Loading({ label = "Loading" }: { label?: string }) {
  return (
    <div class="state" role="status">
      <span class="spinner" aria-hidden="true" />
      <p class="state-text">{label}…</p>
    </div>
  );
}
