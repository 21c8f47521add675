// A resource with all ways to show it.

import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";

import { ChartView } from "./chart.tsx";
import { DiffView } from "./diff.tsx";
import { count, expiry, number, size, visible } from "./format.ts";
import { HexView } from "./hex.tsx";
import { ImageView } from "./image.tsx";
import { LogView } from "./log.tsx";
import { MarkdownView } from "./markdown.tsx";
import { PdfView } from "./pdf.tsx";
import { ordinal, usePlace } from "./place.ts";
import type { Info, Source, View } from "./source.ts";
import { TableView } from "./table.tsx";
import { TreeView } from "./tree.tsx";

const NAMES: { [view in View]: string } = {
  markdown: "Page",
  table: "Table",
  json: "Tree",
  log: "Text",
  image: "Image",
  pdf: "Pages",
  diff: "Changes",
  chart: "Chart",
  bytes: "Bytes",
};

interface Props {
  info: Info;
  source: Source;
  /** More buttons, at the end of the header. */
  actions?: ComponentChildren;
  /** Above the content: news about the resource. */
  notice?: ComponentChildren;
  /** Opens the content elsewhere, where that is possible. */
  download?: (() => void) | undefined;
  /** Another view, which this page alone has. */
  more?: { view: string; name: string; content: () => ComponentChildren } | undefined;
}

export function Viewer({ info, source, actions, notice, download, more }: Props) {
  const place = usePlace();
  const fitting: View[] = info.views.filter((view) => view !== "diff" || hasOther(info));
  const views: string[] = more ? [...fitting, more.view] : fitting;
  const wanted = place.get("view");
  const otherwise = fitting.includes(info.as) ? info.as : (fitting[0] ?? "bytes");
  // A line is one of the text, whatever is shown first.
  const first = ordinal(place.get("line")) !== undefined && fitting.includes("log") ? "log" : otherwise;
  const view = wanted !== undefined && views.includes(wanted) ? wanted : first;
  const choose = (one: string) => place.set({ view: one, line: undefined }, true);
  const now = useNow();
  const facts = [
    info.records && view !== "log" ? count(info.records.total, "record") : info.text ? count(info.lines, "line") : "",
    size(info.size),
    info.mimeType,
    info.revision > 1 ? `revision ${number(info.revision)}` : "",
    expiry(info.expires, now),
  ].filter((fact) => fact !== "");
  const title = info.title ?? info.name;
  return (
    <article class="viewer" aria-label={visible(title)}>
      <header class="top">
        <div class="about">
          <h1 dir="auto" title={visible(info.uri)}>
            {visible(title)}
          </h1>
          <ul class="about-facts">
            {facts.map((fact) => (
              <li key={fact}>{visible(fact)}</li>
            ))}
          </ul>
        </div>
        {views.length > 1 && (
          <div class="views" role="tablist" aria-label="Views">
            {views.map((one) => (
              <button
                key={one}
                id={`tab-${one}`}
                type="button"
                role="tab"
                aria-selected={one === view}
                aria-controls="view-panel"
                tabIndex={one === view ? 0 : -1}
                onClick={() => choose(one)}
                onKeyDown={(event) => {
                  const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
                  if (by === undefined) return;
                  const to = views[(views.indexOf(one) + by + views.length) % views.length] ?? one;
                  choose(to);
                  document.getElementById(`tab-${to}`)?.focus();
                }}
              >
                {more?.view === one ? more.name : NAMES[one as View]}
              </button>
            ))}
          </div>
        )}
        {actions && <div class="actions">{actions}</div>}
      </header>
      {notice}
      <div
        id="view-panel"
        class="panel"
        role={views.length > 1 ? "tabpanel" : undefined}
        aria-labelledby={views.length > 1 ? `tab-${view}` : undefined}
        key={`${info.uri} ${info.revision} ${view}`}
      >
        {more?.view === view ? more.content() : content(view as View, info, source, download)}
      </div>
    </article>
  );
}

const hasOther = (info: Info): boolean => info.against !== undefined || info.revisions.length > 1;

function content(view: View, info: Info, source: Source, download: Props["download"]) {
  const props = { info, source };
  switch (view) {
    case "markdown":
      return <MarkdownView {...props} />;
    case "table":
      return <TableView {...props} />;
    case "json":
      return <TreeView {...props} />;
    case "log":
      return <LogView {...props} />;
    case "image":
      return <ImageView {...props} />;
    case "chart":
      return <ChartView {...props} />;
    case "diff":
      return <DiffView {...props} />;
    case "pdf":
      return <PdfView {...props} download={download} />;
    case "bytes":
      return <HexView {...props} />;
  }
}

/** The time, which advances every half a minute. */
function useNow(): number {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    const timer = window.setInterval(() => setNow(Date.now()), 30_000);
    return () => window.clearInterval(timer);
  }, []);
  return now;
}
