// pdf.js, which is loaded only when there is a PDF. In a page of MCP Apps its script is text in this page, or in the page that has
// it; the console imports it as a file, because its policy lets no text become a script.

import { MAX_BYTES, type Source } from "./source.ts";

export type Pdf = typeof import("pdfjs-dist");

const PAGE = "ui://larder/pdf.html";
const ELEMENT = /<script id="pdf-code" type="text\/plain">([^<]+)<\/script>/;

let loading: Promise<Pdf> | undefined;

/** pdf.js, loaded once. */
export function loadPdf(source: Source): Promise<Pdf> {
  loading ??= source.pdf().catch((error: unknown) => {
    loading = undefined;
    throw error;
  });
  return loading;
}

/** Loads pdf.js from the text of a page, which `source` reads. */
export async function pdfOfPage(source: Source): Promise<Pdf> {
  const packed = document.getElementById("pdf-code")?.textContent || ELEMENT.exec(await read(source.at(PAGE)))?.[1];
  if (!packed) throw new Error("The part that draws PDF is missing.");
  const bytes = Uint8Array.from(atob(packed), (c) => c.charCodeAt(0));
  const unpacked = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const script = document.createElement("script");
  script.textContent = await new Response(unpacked).text();
  document.head.append(script);
  script.remove();
  return pdfOfScript("This host does not let the page draw PDF.");
}

/** What the script of pdf.js has left; an error with these words if it did not run. */
export function pdfOfScript(otherwise: string): Pdf {
  const pdf = (globalThis as { larderPdf?: Pdf }).larderPdf;
  if (!pdf) throw new Error(otherwise);
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
