// Pages of a PDF, drawn when they come into view.

import type { PDFDocumentProxy } from "pdfjs-dist";
import { useEffect, useRef, useState } from "preact/hooks";

import { count, number, size } from "./format.ts";
import { Icon } from "./icons.tsx";
import { loadPdf } from "./pdf-code.ts";
import { ordinal, usePlace } from "./place.ts";
import { type Info, type Source, readAll } from "./source.ts";
import { Empty, Loading, Problem } from "./states.tsx";

/** A larger document is not opened here. */
const MAX_PDF = 50_000_000;
const ZOOMS = [0.5, 0.75, 1, 1.25, 1.5, 2, 3];

interface Props {
  info: Info;
  source: Source;
  /** Opens the document elsewhere, where that is possible. */
  download?: (() => void) | undefined;
}

export function PdfView({ info, source, download }: Props) {
  const [pdf, setPdf] = useState<PDFDocumentProxy>();
  const [ratio, setRatio] = useState(1.414);
  const [error, setError] = useState<Error>();
  const [read, setRead] = useState(0);
  const place = usePlace();
  const wantedZoom = Number(place.get("zoom") ?? 1);
  const zoom = ZOOMS.includes(wantedZoom) ? wantedZoom : 1;
  const setZoom = (next: number) => place.set({ zoom: next === 1 ? undefined : String(next) });
  const page = ordinal(place.get("page")) ?? 1;
  const setPage = (next: number) => place.set({ page: next === 1 ? undefined : String(next) });
  const pages = useRef<HTMLDivElement>(null);
  const isTooLarge = info.size > MAX_PDF;
  useEffect(() => {
    if (isTooLarge) return;
    let isCurrent = true;
    let opened: PDFDocumentProxy | undefined;
    const open = async () => {
      const [pdfjs, data] = await Promise.all([
        loadPdf(source),
        readAll(source, info.size, (bytes) => isCurrent && setRead(bytes)),
      ]);
      opened = await pdfjs.getDocument({
        data,
        isEvalSupported: false,
        useWorkerFetch: false,
        useWasm: false,
        isOffscreenCanvasSupported: false,
        isImageDecoderSupported: false,
        enableXfa: false,
        stopAtErrors: false,
      }).promise;
      const first = (await opened.getPage(1)).getViewport({ scale: 1 });
      if (!isCurrent) return;
      setRatio(first.height / first.width);
      setPdf(opened);
    };
    open().catch((problem: unknown) => {
      if (isCurrent) setError(problem instanceof Error ? problem : new Error(String(problem)));
    });
    return () => {
      isCurrent = false;
      void opened?.destroy();
    };
  }, [source, info.revision]);

  // The page of the URL.
  useEffect(() => {
    if (!pdf || page <= 1) return;
    const sheet = pages.current?.children[Math.min(page, pdf.numPages) - 1];
    if (pages.current && sheet instanceof HTMLElement) pages.current.scrollTop = sheet.offsetTop - 12;
  }, [pdf]);

  const button = download && (
    <button type="button" class="button" onClick={download}>
      Download
    </button>
  );
  if (isTooLarge) {
    return <Empty title="The document is too large">{`${size(info.size)}; at most ${size(MAX_PDF)} are shown here.`} {button}</Empty>;
  }
  if (error) {
    return (
      <div class="state">
        <Problem error={error} />
        {button}
      </div>
    );
  }
  if (!pdf) return <Loading label={`Reading ${size(read)} of ${size(info.size)}`} />;
  const go = (to: number) => {
    const wanted = Math.min(pdf.numPages, Math.max(1, to));
    setPage(wanted);
    const [paper, sheet] = [pages.current, pages.current?.children[wanted - 1]];
    if (paper && sheet instanceof HTMLElement) paper.scrollTop = sheet.offsetTop - 12;
  };
  const at = ZOOMS.indexOf(zoom);
  return (
    <section class="view" aria-label="Pages">
      <div class="bar">
        <button type="button" class="button bare" aria-label="Previous" disabled={page <= 1} onClick={() => go(page - 1)}>
          <Icon name="up" />
        </button>
        <button type="button" class="button bare" aria-label="Next" disabled={page >= pdf.numPages} onClick={() => go(page + 1)}>
          <Icon name="down" />
        </button>
        <output class="facts">
          {number(page)} of {count(pdf.numPages, "page")}
        </output>
        <span class="grow" />
        <button type="button" class="button bare" aria-label="Smaller" disabled={at <= 0} onClick={() => setZoom(ZOOMS[at - 1] ?? zoom)}>
          −
        </button>
        <output class="facts">{Math.round(zoom * 100)} %</output>
        <button type="button" class="button bare" aria-label="Larger" disabled={at >= ZOOMS.length - 1} onClick={() => setZoom(ZOOMS[at + 1] ?? zoom)}>
          +
        </button>
        {button}
      </div>
      <div
        class="paper"
        tabIndex={0}
        role="region"
        aria-label={`Pages of ${info.name}`}
        ref={pages}
        onScroll={(event) => {
          const top = event.currentTarget.scrollTop + event.currentTarget.clientHeight / 3;
          const all = Array.from(event.currentTarget.children) as HTMLElement[];
          const seen = all.findLastIndex((one) => one.offsetTop <= top);
          if (seen >= 0) setPage(seen + 1);
        }}
      >
        {Array.from({ length: pdf.numPages }, (_, index) => (
          <Page key={index} pdf={pdf} at={index + 1} zoom={zoom} ratio={ratio} />
        ))}
      </div>
    </section>
  );
}

/** A page, which is drawn while it is near the view. */
function Page({ pdf, at, zoom, ratio }: { pdf: PDFDocumentProxy; at: number; zoom: number; ratio: number }) {
  const place = useRef<HTMLDivElement>(null);
  const [isNear, setNear] = useState(false);
  const [text, setText] = useState("");
  const [error, setError] = useState(false);
  const canvas = useRef<HTMLCanvasElement>(null);
  const width = Math.round(720 * zoom);
  useEffect(() => {
    const element = place.current;
    if (!element) return;
    const observer = new IntersectionObserver(([entry]) => setNear(entry?.isIntersecting ?? false), {
      root: element.parentElement,
      rootMargin: "60% 0px",
    });
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  useEffect(() => {
    const target = canvas.current;
    if (!isNear || !target) return;
    let cancel = () => {};
    let isCurrent = true;
    const draw = async () => {
      const page = await pdf.getPage(at);
      const scale = (width / page.getViewport({ scale: 1 }).width) * Math.min(2, window.devicePixelRatio || 1);
      const viewport = page.getViewport({ scale });
      if (!isCurrent) return;
      target.width = viewport.width;
      target.height = viewport.height;
      const task = page.render({ canvas: target, viewport });
      cancel = () => task.cancel();
      await task.promise;
      const content = await page.getTextContent();
      if (isCurrent) setText(content.items.map((item) => ("str" in item ? item.str : "")).join(" "));
    };
    draw().catch((problem: unknown) => {
      if (isCurrent && (problem as Error).name !== "RenderingCancelledException") setError(true);
    });
    return () => {
      isCurrent = false;
      cancel();
    };
  }, [isNear, width, pdf, at]);
  return (
    <div ref={place} class="paper-page" style={{ width: `${width}px`, height: `${Math.round(width * ratio)}px` }}>
      {isNear && <canvas ref={canvas} aria-hidden="true" />}
      <p class="hidden">
        Page {number(at)}. {text}
      </p>
      {error && <p class="danger">This page cannot be drawn.</p>}
    </div>
  );
}
