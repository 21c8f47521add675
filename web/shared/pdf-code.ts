// pdf.js, which is read only when there is a PDF: from this page, or from the page that has it.

import { MAX_BYTES, type Source } from "./source.ts";

type Pdf = typeof import("pdfjs-dist");

const PAGE = "ui://larder/pdf.html";
const ELEMENT = /<script id="pdf-code" type="text\/plain">([^<]+)<\/script>/;

let loading: Promise<Pdf> | undefined;

export function loadPdf(source: Source): Promise<Pdf> {
  loading ??= load(source).catch((error: unknown) => {
    loading = undefined;
    throw error;
  });
  return loading;
}

async function load(source: Source): Promise<Pdf> {
  const packed = document.getElementById("pdf-code")?.textContent || ELEMENT.exec(await read(source.at(PAGE)))?.[1];
  if (!packed) throw new Error("The part that draws PDF is missing.");
  const bytes = Uint8Array.from(atob(packed), (c) => c.charCodeAt(0));
  const unpacked = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const script = document.createElement("script");
  script.textContent = await new Response(unpacked).text();
  document.head.append(script);
  script.remove();
  const pdf = (globalThis as { larderPdf?: Pdf }).larderPdf;
  if (!pdf) throw new Error("This host does not let the page draw PDF.");
  return pdf;
}

async function read(source: Source): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  for (let at = 0; ; ) {
    const part = await source.bytes(at, MAX_BYTES);
    at += part.length;
    text += decoder.decode(part, { stream: true });
    if (part.length < MAX_BYTES) return text;
  }
}
