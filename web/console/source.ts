// What the console reads from: the tools of the viewer, and pdf.js from a file of the server.

import { type Pdf, pdfOfScript } from "../shared/pdf-code.ts";
import { ToolSource } from "../view/source.ts";
import { call } from "./api.ts";

/** A resource, of which the latest revision is read by default. */
export const sourceOf = (uri: string, revision?: number): ToolSource => new ToolSource(call, uri, revision, importPdf);

async function importPdf(): Promise<Pdf> {
  const file = "./pdf.js";
  await import(file);
  return pdfOfScript("The part that draws PDF cannot be loaded.");
}
