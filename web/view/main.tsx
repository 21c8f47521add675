import "../shared/tokens.css";
import "../shared/viewer.css";
import "../shared/views.css";
import "../shared/media.css";
import "uplot/dist/uPlot.min.css";
import "./page.css";

import { render } from "preact";

import type { Info } from "../shared/source.ts";
import { App, type State } from "./app.tsx";
import { Bridge, type HostContext, type ToolResult } from "./bridge.ts";
import { ToolSource, value } from "./source.ts";
import { applyTheme } from "./theme.ts";

const place = document.getElementById("app") as HTMLElement;
let state: State = { kind: "waiting" };
let context: HostContext = {};

const bridge = new Bridge(window.parent, {
  input(args) {
    if (typeof args["uri"] === "string") set({ kind: "waiting", uri: args["uri"] });
  },
  result(result) {
    set(opened(result));
  },
  cancelled(reason) {
    set({ kind: "cancelled", ...(reason !== undefined && { reason }) });
  },
  closed() {
    set({ kind: "closed" });
  },
  context(next) {
    context = next;
    applyTheme(next);
    draw();
  },
});

function opened(result: ToolResult): State {
  try {
    return shown(value(result) as unknown as Info);
  } catch (error) {
    return { kind: "failed", error: error as Error };
  }
}

/** A page shows one revision, whatever is written meanwhile. */
function shown(info: Info): State {
  const source = new ToolSource((name, args) => bridge.call(name, args), info.uri, info.revision);
  return { kind: "shown", info, source };
}

function set(next: State): void {
  state = next;
  draw();
}

function draw(): void {
  document.documentElement.dataset["mode"] = context.displayMode ?? "inline";
  const show = (info: Info) => set(shown(info));
  render(<App state={state} context={context} bridge={bridge} show={show} />, place);
}

/** Inline, the page asks for as much height as its content is worth. */
function followHeight(): void {
  let reported = 0;
  const report = () => {
    const height = Math.ceil(document.documentElement.getBoundingClientRect().height);
    if (height === reported) return;
    reported = height;
    bridge.resized(height);
  };
  new ResizeObserver(report).observe(document.documentElement);
  report();
}

applyTheme(context);
draw();
bridge.start().then(followHeight, (error: unknown) => {
  set({ kind: "failed", error: error instanceof Error ? error : new Error(String(error)) });
});
