// Work that repeats while somebody looks.

import { useEffect } from "preact/hooks";

/** Calls `load` now and after each pause, in milliseconds, while the page is visible. */
export function useEvery(pause: number, load: () => void): void {
  useEffect(() => {
    let timer: number | undefined;
    const follow = () => {
      window.clearInterval(timer);
      if (document.visibilityState === "hidden") return;
      load();
      timer = window.setInterval(load, pause);
    };
    follow();
    document.addEventListener("visibilitychange", follow);
    return () => {
      window.clearInterval(timer);
      document.removeEventListener("visibilitychange", follow);
    };
  }, [pause, load]);
}
