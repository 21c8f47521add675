import "../shared/tokens.css";
import "../shared/viewer.css";
import "../shared/views.css";
import "../shared/media.css";
import "uplot/dist/uPlot.min.css";
import "./page.css";

import { render } from "preact";

import { applyTheme } from "../view/theme.ts";
import { App } from "./app.tsx";

applyTheme({});
window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => applyTheme({}));
render(<App />, document.getElementById("app") as HTMLElement);
