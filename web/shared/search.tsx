// A search box that reports what was typed after a pause.

import { useEffect, useRef, useState } from "preact/hooks";

import { Icon } from "./icons.tsx";

const PAUSE = 250;

interface Props {
  label: string;
  value: string;
  onChange: (text: string) => void;
  onKey?: (event: KeyboardEvent) => void;
  invalid?: boolean;
}

export function Search({ label, value, onChange, onKey, invalid }: Props) {
  const [text, setText] = useState(value);
  const timer = useRef<number>(undefined);
  // What was reported comes back as the value, maybe after more was typed. Any other value is a new one.
  const reported = useRef(value);
  useEffect(() => {
    if (value === reported.current) return;
    reported.current = value;
    setText(value);
  }, [value]);
  useEffect(() => () => window.clearTimeout(timer.current), []);
  const report = (text: string) => {
    window.clearTimeout(timer.current);
    if (text === value) return;
    reported.current = text;
    onChange(text);
  };
  return (
    <div class={`search ${invalid ? "invalid" : ""}`}>
      <Icon name="search" />
      <input
        type="search"
        aria-label={label}
        placeholder={label}
        autocomplete="off"
        spellcheck={false}
        value={text}
        aria-invalid={invalid || undefined}
        onInput={(event) => {
          const next = event.currentTarget.value;
          setText(next);
          window.clearTimeout(timer.current);
          timer.current = window.setTimeout(() => report(next), PAUSE);
        }}
        onKeyDown={(event) => {
          if (event.key === "Enter" && text !== value) {
            report(text);
            return;
          }
          onKey?.(event);
        }}
      />
    </div>
  );
}
