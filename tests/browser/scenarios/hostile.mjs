// Scripts in cells, keys, names, lines and URIs are characters.

import { assert } from "../assert.mjs";

const CORPUS = [
  "<script>fetch('http://larder.test/beacon')</script>",
  "<img src=http://larder.test/beacon onerror=alert(1)>",
  "\"><svg onload=alert(1)>",
  "javascript:alert(1)",
  "</style><script>alert(1)</script>",
  "<!--<script>alert(1)</script>",
  "{{constructor.constructor('alert(1)')()}}",
  "<iframe srcdoc='<script>alert(1)</script>'>",
  "${alert(1)}",
  "\u202e\u0000\u001b]8;;http://larder.test/beacon\u0007x",
  "__proto__",
  "<a href=\"http://larder.test/beacon\" autofocus onfocus=alert(1)>x</a>",
];

export default async function hostile(stage) {
  const quoted = (text) => `"${text.replaceAll('"', '""').replaceAll("\u0000", "")}"`;
  const csv = [CORPUS.map(quoted).join(","), CORPUS.map(quoted).join(","), CORPUS.map(quoted).join(",")].join("\n");
  const object = Object.fromEntries(CORPUS.map((text) => [text.replaceAll("\u0000", ""), text.replaceAll("\u0000", "")]));
  const name = CORPUS[1];
  await stage.store({ uri: "hostile:<script>alert(1)</script>".replace(/[<>]/g, (c) => encodeURIComponent(c)), name, text: csv, mime_type: "text/csv" });
  await stage.store({ uri: "hostile:json", name, json: { ...object, nested: [object] } });
  await stage.store({ uri: "hostile:html", name, text: `<html><body onload="alert(1)">${CORPUS.join("\n")}`, mime_type: "text/html" });
  await stage.store({ uri: "hostile:svg", name, text: `<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"><script>alert(1)</script><image href="http://larder.test/beacon"/></svg>`, mime_type: "image/svg+xml;x=\"onerror=alert(1)" });
  await stage.store({ uri: "hostile:diff", name, text: CORPUS.join("\n").replaceAll("\u0000", ""), mime_type: "text/plain" });
  await stage.update({ uri: "hostile:diff", text: [...CORPUS].reverse().join("\n").replaceAll("\u0000", "") });
  for (const [input, role] of [
    [{ uri: "hostile:%3Cscript%3Ealert(1)%3C%2Fscript%3E".replace("%2F", "/") }, "table"],
    [{ uri: "hostile:json", as: "json" }, "tree"],
    [{ uri: "hostile:html" }, "list"],
    [{ uri: "hostile:svg" }, "article"],
    [{ uri: "hostile:diff", against: "1" }, "article"],
    [{ uri: "hostile:<script>alert(1)</script>" }, "alert"],
  ]) {
    const view = await stage.open(input);
    await view.getByRole(role).first().waitFor();
    if (role === "table") {
      await view.locator('[aria-rowindex="2"]').dblclick({ position: { x: 100, y: 10 } });
      await view.getByRole("heading", { name: "Row 1" }).waitFor();
      await view.getByRole("button", { name: "Filter" }).click();
      await view.getByRole("searchbox").fill(CORPUS[1]);
      await view.getByText(/of \d+ rows/).waitFor();
    }
    if (role === "list") {
      await view.getByRole("searchbox").fill("script|onload");
      await view.getByText(/^1 of \d+ lines$/).waitFor();
    }
    const made = await stage.frame().evaluate(() => ({
      elements: document.querySelectorAll("#app script, #app iframe, #app a, #app object, #app svg[onload], #app [onerror], #app [onfocus]").length,
      polluted: ({}).polluted,
    }));
    assert.equal(made.elements, 0, JSON.stringify(input));
  }
  assert.deepEqual(stage.beacons, []);
  assert.deepEqual(stage.violations, []);
}
