// Changes on the server, as they happen.

import { useEffect, useRef } from "preact/hooks";

/** Several changes at once are one. */
const PAUSE = 250;
const RETRY = 5_000;

/** Calls `changed` after the list, or the resource of the URI, has changed. */
export function useChanges(uri: string | undefined, changed: () => void): void {
  const latest = useRef(changed);
  latest.current = changed;
  useEffect(() => {
    let timer: number | undefined;
    let source: EventSource;
    const report = () => {
      window.clearTimeout(timer);
      timer = window.setTimeout(() => latest.current(), PAUSE);
    };
    const open = () => {
      source = new EventSource(uri === undefined ? "events" : `events?${new URLSearchParams({ uri })}`);
      source.onmessage = (event) => {
        const message = JSON.parse(String(event.data)) as { method?: string };
        if (message.method?.startsWith("notifications/resources/")) report();
      };
      source.onerror = () => {
        // The browser connects again unless the server has refused. What was missed is read anew,
        // which also notices the end of the session.
        window.clearTimeout(timer);
        timer = window.setTimeout(() => {
          latest.current();
          if (source.readyState === EventSource.CLOSED) open();
        }, RETRY);
      };
    };
    open();
    return () => {
      window.clearTimeout(timer);
      source.close();
    };
  }, [uri]);
}
