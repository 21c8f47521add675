// pdf.js with its worker in the same script: pages of hosts may start no Worker.

import * as pdfjs from "pdfjs-dist/build/pdf.mjs";
import * as worker from "pdfjs-dist/build/pdf.worker.mjs";

Object.assign(globalThis, { pdfjsWorker: worker, larderPdf: pdfjs });
