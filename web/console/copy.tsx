// Copies a text, and says so.

import { useEffect, useState } from "preact/hooks";

export function Copy({ label, text, small }: { label: string; text: string; small?: boolean }) {
  const [said, setSaid] = useState<string>();
  useEffect(() => {
    if (said === undefined) return;
    const timer = window.setTimeout(() => setSaid(undefined), 2000);
    return () => window.clearTimeout(timer);
  }, [said]);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setSaid("Copied");
    } catch {
      setSaid("The browser does not allow it");
    }
  };
  return (
    <button type="button" class={`button ${small ? "small" : ""}`} title={text} onClick={() => void copy()}>
      <span role="status">{said ?? label}</span>
    </button>
  );
}
