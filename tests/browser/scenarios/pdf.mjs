// Fifty pages, of which those in view are drawn, without a Worker.

import { assert, eventually } from "../assert.mjs";
import { pdf } from "../pdf.mjs";
import { STRICT_POLICY } from "../stage.mjs";

export default async function pages(stage) {
  stage.policy = STRICT_POLICY;
  await stage.store({ uri: "pdf:1", name: "report.pdf", blob: pdf(50).toString("base64"), mime_type: "application/pdf" });
  await stage.window();
  const workers = [];
  stage.tab.on("worker", (worker) => workers.push(worker.url()));
  const view = await stage.open({ uri: "pdf:1" });
  await view.getByText("1 of 50 pages").waitFor();
  // What is drawn: dark points on white.
  const ink = () =>
    stage.frame().evaluate(() => {
      const canvas = document.querySelector(".paper-page canvas");
      if (!canvas?.width) return 0;
      const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
      let dark = 0;
      for (let at = 0; at < data.length; at += 4) if (data[at] < 64 && data[at + 3] > 200) dark++;
      return dark;
    });
  await eventually("the first page is drawn", ink, (dark) => dark > 500);
  await view.getByText("This is page 1", { exact: false }).first().waitFor({ state: "attached" });
  await stage.shot("pdf-light");
  await view.getByRole("button", { name: "Next" }).click();
  await view.getByText("2 of 50 pages").waitFor();
  await view.getByRole("region", { name: "Pages of report.pdf" }).focus();
  await stage.tab.keyboard.press("End");
  await view.getByText("50 of 50 pages").waitFor();
  await view.getByText("This is page 50").waitFor({ state: "attached" });
  const canvases = await stage.frame().evaluate(() => document.querySelectorAll("canvas").length);
  assert.ok(canvases < 8, `${canvases} pages are drawn`);
  await view.getByRole("button", { name: "Larger" }).click();
  await view.getByText("125 %").waitFor();
  assert.deepEqual(workers, []);
  assert.deepEqual(stage.violations, []);

  await stage.store({ uri: "pdf:2", name: "broken.pdf", blob: Buffer.from("%PDF-1.4 no").toString("base64"), mime_type: "application/pdf" });
  const broken = await stage.open({ uri: "pdf:2" });
  await broken.getByRole("alert").waitFor();
  await broken.getByRole("button", { name: "Download" }).waitFor();
}
