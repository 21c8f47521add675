// Each kind of content in the console in Chromium, and what is seen in its URL: console_views.mjs, with {"chromium", "url", "mcp",
// "token"?, "screenshots"?, "built"?} on stdin. Writes what was seen to stdout.

import assert from "node:assert/strict";
import { text } from "node:stream/consumers";

import { log, orders, tree } from "../browser/content.mjs";
import { pdf } from "../browser/pdf.mjs";
import { Client } from "./console_client.mjs";
import { Stage } from "./console_stage.mjs";

const given = JSON.parse(await text(process.stdin));
const stage = await Stage.start(given);
const client = new Client(given);
const { seen } = stage;

const SVG = '<svg xmlns="http://www.w3.org/2000/svg" width="90" height="60"><circle cx="40" cy="30" r="20" fill="#1f5fbf"/></svg>';
const MARKDOWN = `# Report

Some *emphasis*, **weight**, \`code\`, a [link](https://example.com/a?b=1&c=2) and a [trap](javascript:alert(1)).
An entity: 3 &lt; 4 &amp; 5. <img src=x onerror="alert(5)">

| Region | Units |
|:-------|------:|
| north  |    12 |

- [x] done
- [ ] open

> quoted

\`\`\`rust
fn main() { println!("<b>hello</b>"); }
\`\`\`

<script>alert(6)</script>

![picture](https://larder.test/beacon.png)
`;
const RUST = `/* a comment\nover two lines */\nfn main() {\n    let text = "a string";\n}\n`;

const store = async () => {
  await client.store({ uri: "kinds://table", name: "orders.csv", text: orders(2_500), mime_type: "text/csv" });
  await client.store({ uri: "kinds://log", name: "gateway.log", text: log(3_000), mime_type: "text/plain" });
  await client.store({ uri: "kinds://tree", name: "tree.json", json: tree() });
  await client.store({ uri: "kinds://svg", name: "mark.svg", text: SVG, mime_type: "image/svg+xml" });
  await client.store({ uri: "kinds://pdf", name: "report.pdf", blob: pdf(5).toString("base64"), mime_type: "application/pdf" });
  await client.store({ uri: "kinds://bytes", name: "data.bin", blob: Buffer.from(orders(40)).toString("base64") });
  await client.store({ uri: "kinds://markdown", name: "report.md", text: MARKDOWN, mime_type: "text/markdown" });
  await client.store({ uri: "kinds://code", name: "main.rs", text: RUST, mime_type: "text/plain" });
  await client.store({ uri: "kinds://changes", name: "a.txt", text: "a\nb\nc\n", mime_type: "text/plain" });
  await client.call("update_resource", { uri: "kinds://changes", text: "a\nB\nc\n" });
  await client.store({ uri: "kinds://small", name: "small.csv", text: "a,b\n1,2\n3,4\n5,6\n", mime_type: "text/csv" });
};

const address = (uri, rest = "") => `${given.url}#/resource/${encodeURIComponent(uri)}${rest}`;
/** The URL follows what is typed a moment later. */
const urlHas = (page, pattern) => page.waitForFunction((text) => new RegExp(text).test(location.hash), pattern.source);
const open = async (page, uri, rest) => {
  await page.goto("about:blank");
  await page.goto(address(uri, rest));
  await page.getByRole("article").waitFor();
};
const tab = (page, name) => page.getByRole("tab", { name, selected: true }).waitFor();

/** What is drawn: dark points on white. */
const ink = (page) =>
  page.evaluate(() => {
    const canvas = document.querySelector(".paper-page canvas");
    if (!canvas?.width) return 0;
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    let dark = 0;
    for (let at = 0; at < data.length; at += 4) if (data[at] < 64 && data[at + 3] > 200) dark++;
    return dark;
  });

async function kinds(page, look) {
  await open(page, "kinds://pdf");
  await page.getByText("1 of 5 pages").waitFor();
  await page.waitForFunction(() => document.querySelector(".paper-page canvas")?.width > 0);
  await page.getByText("This is page 1").first().waitFor({ state: "attached" });
  assert.ok((await ink(page)) > 500, "the first page is drawn");
  await look("kind-pdf");
  await page.getByRole("region", { name: "Pages of report.pdf" }).focus();
  await page.keyboard.press("End");
  await page.getByText("5 of 5 pages").waitFor();
  await urlHas(page, /page=5/);

  await open(page, "kinds://svg");
  await page.getByText("90 × 60 pixels").waitFor();
  await look("kind-image");
  await open(page, "kinds://bytes");
  await page.getByText("id,placed").first().waitFor();
  await look("kind-bytes");
  await open(page, "kinds://tree", "?view=json");
  await page.getByRole("treeitem").first().waitFor();
  await page.getByText("limits").click();
  await look("kind-tree");
  await open(page, "kinds://changes", "?view=diff");
  await page.getByText("B", { exact: true }).waitFor();
  await look("kind-changes");
}

async function words(page, look) {
  await open(page, "kinds://markdown");
  await tab(page, "Page");
  await page.getByRole("heading", { name: "Report", level: 2 }).waitFor();
  assert.equal(await page.getByRole("link", { name: "link", exact: true }).getAttribute("href"), "https://example.com/a?b=1&c=2");
  assert.equal(await page.getByRole("link", { name: "link", exact: true }).getAttribute("rel"), "noopener noreferrer");
  assert.equal(await page.getByRole("link", { name: "trap" }).count(), 0);
  await page.getByText("3 < 4 & 5").waitFor();
  await page.getByText('<img src=x onerror="alert(5)">').waitFor();
  await page.getByText("<script>alert(6)</script>").waitFor();
  assert.equal(await page.locator(".prose :is(img, script)").count(), 0);
  await page.getByRole("cell", { name: "north" }).waitFor();
  assert.ok(await page.getByRole("checkbox", { name: "Done" }).isChecked());
  assert.equal(await page.locator(".prose .ink-word").first().innerText(), "fn");
  await look("kind-markdown");

  await open(page, "kinds://code");
  await page.locator(".ink-string").first().waitFor();
  const comments = await page.locator(".ink-comment").allInnerTexts();
  assert.deepEqual(comments, ["/* a comment", "over two lines */"], "a comment over two lines has its colour on both");
  await look("kind-code");
}

/** Figures of all rows are those of SQL. */
async function charts(page, look) {
  await open(page, "kinds://table", "?view=chart");
  const figures = page.getByRole("region", { name: "Figures" });
  await figures.waitFor();
  const cells = async (name) => figures.getByRole("row").filter({ hasText: name }).getByRole("cell").allInnerTexts();
  const [[count, low, mean, high]] = await client.sql("kinds://table", "SELECT count(total), min(total), avg(total), max(total) FROM t");
  const shown = (await cells("total")).map((text) => Number(text.replaceAll(",", "")));
  assert.deepEqual([shown[0], shown[1], shown[3]], [count, low, high]);
  assert.ok(Math.abs(shown[2] - mean) < 1e-9, `${shown[2]} is ${mean}`);
  await page.getByText("Numbers of the curves").click();
  const buckets = page.getByRole("region", { name: "Numbers of the curves" });
  await buckets.waitFor();
  const counts = await buckets.locator("tbody tr td:nth-child(2)").allInnerTexts();
  assert.equal(counts.reduce((sum, text) => sum + Number(text), 0), 2_500, "each row is in a bucket");
  await page.getByText("Numbers of the curves").click();
  await look("chart-line");

  await page.getByRole("combobox", { name: "Chart" }).selectOption("bars");
  await page.getByRole("combobox", { name: "Groups" }).selectOption("state");
  await page.getByRole("combobox", { name: "Show" }).selectOption("sum");
  await page.getByRole("combobox", { name: "Values" }).selectOption("items");
  const bars = page.getByRole("region", { name: "Bars" });
  await bars.waitFor();
  const sums = await client.sql("kinds://table", "SELECT state, sum(items) FROM t GROUP BY state ORDER BY 2 DESC, 1");
  const drawn = await bars.locator("tbody tr").evaluateAll((rows) =>
    rows.map((row) => [row.querySelector("th").innerText, Number(row.querySelector(".amount").innerText.replaceAll(",", ""))]),
  );
  assert.deepEqual(drawn, sums);
  await page.getByRole("combobox", { name: "Groups" }).selectOption("customer");
  await page.getByRole("combobox", { name: "Show" }).selectOption("rows");
  await bars.getByRole("rowheader", { name: "none" }).waitFor();
  const lengths = await bars.locator("tbody tr").evaluateAll((rows) =>
    rows.map((row) => row.querySelector(".fill").getBoundingClientRect().width / Number(row.querySelector(".amount").innerText.replaceAll(",", ""))),
  );
  for (const length of lengths) assert.ok(Math.abs(length / lengths[0] - 1) < 0.02, `bars are as long as their values: ${lengths}`);
  await page.goBack();
  await page.goBack();
  await look("chart-bars");
  await urlHas(page, /view=chart.*chart=bars/);

  await page.getByRole("combobox", { name: "Chart" }).selectOption("histogram");
  await page.getByRole("combobox", { name: "Values" }).selectOption("items");
  const bins = page.getByRole("region", { name: "Bins" });
  await bins.waitFor();
  const counted = await client.sql("kinds://table", "SELECT items, count(*) FROM t GROUP BY items ORDER BY items");
  const seen = await bins.locator("tbody tr").evaluateAll((rows) =>
    rows.map((row) => [...row.children].map((cell) => Number(cell.innerText.replaceAll(",", "")))),
  );
  assert.deepEqual(seen, counted);
  await look("chart-histogram");

  // The filters of the table hold for its charts, too.
  await open(page, "kinds://table", `?view=chart&chart=bars&x=state&filter=${encodeURIComponent('[{"column":"state","op":"equals","value":"paid"}]')}`);
  await bars.waitFor();
  assert.deepEqual(await bars.locator("tbody th").allInnerTexts(), ["paid"]);
}

/** What is seen is in the URL: another window with it sees the same, and the buttons of the browser go through it. */
async function addresses(page) {
  await open(page, "kinds://table");
  await page.getByRole("button", { name: "Sort by total" }).click();
  await page.getByRole("button", { name: "Filter" }).click();
  await page.getByLabel("Column", { exact: true }).selectOption("state");
  await page.getByLabel("Condition").selectOption("equals");
  await page.getByLabel("Value").fill("paid");
  await page.getByRole("button", { name: "Add" }).click();
  await page.getByRole("searchbox").fill("Ada");
  const [[fitting]] = await client.sql("kinds://table", "SELECT count(*) FROM t WHERE state = 'paid' AND customer LIKE '%Ada%'");
  const facts = `${fitting} of 2,500 rows`;
  await page.getByText(facts).waitFor();
  const first = await page.locator("[aria-rowindex='2'] [role=cell]").allInnerTexts();
  const other = await stage.open({ storageState: await page.context().storageState() });
  await other.goto(page.url());
  await other.getByText(facts).waitFor();
  await other.getByText("state is paid").waitFor();
  assert.equal(await other.getByRole("searchbox").inputValue(), "Ada");
  assert.equal(await other.getByRole("columnheader", { name: /total/ }).getAttribute("aria-sort"), "ascending");
  await other.locator("[aria-rowindex='2'] [role=cell]").first().waitFor();
  assert.deepEqual(await other.locator("[aria-rowindex='2'] [role=cell]").allInnerTexts(), first);
  await other.close();

  await page.goBack();
  await page.getByText("state is paid").waitFor();
  assert.equal(await page.getByRole("searchbox").inputValue(), "");
  await page.goBack();
  await page.getByText("2,500 rows", { exact: true }).waitFor();
  assert.equal(await page.getByText("state is paid").count(), 0);
  await page.goForward();
  await page.getByText("state is paid").waitFor();
  await page.getByRole("tab", { name: "Chart" }).click();
  await tab(page, "Chart");
  await page.reload();
  await tab(page, "Chart");
  await page.goBack();
  await tab(page, "Table");

  // A line, alone and with a search.
  await open(page, "kinds://log", "#L410");
  const active = page.locator(".line.active .gutter");
  await active.waitFor();
  assert.equal(await active.innerText(), "410");
  await page.getByText("/v1/orders/410 ").waitFor();
  await page.getByText("/v1/orders/412 ").click();
  await urlHas(page, /#L412$/);
  await page.getByRole("searchbox").fill("ERROR");
  await page.getByText(/^1 of \d+ lines$/).waitFor();
  await page.getByRole("button", { name: "Next" }).click();
  await page.getByText(/^2 of \d+ lines$/).waitFor();
  await urlHas(page, /search=ERROR.*#L194$/);
  await page.reload();
  await page.getByText(/^2 of \d+ lines$/).waitFor();
  assert.equal(await active.innerText(), "194");

  await open(page, "kinds://tree", "?view=json&at=/limits/names/a~1b");
  await page.locator(".node.active").filter({ hasText: "a/b" }).waitFor();
  await open(page, "kinds://table", "?row=1200");
  await page.getByRole("heading", { name: "Row 1,200" }).waitFor();

  // A URL that somebody has broken shows the resource all the same.
  await open(page, "kinds://table", "?view=nothing&filter={bad&sort=&row=-1&chart=pie#L0");
  await tab(page, "Table");
}

async function queries(page, look) {
  await open(page, "kinds://table");
  await page.getByRole("tab", { name: "Query" }).click();
  const box = page.getByRole("textbox", { name: "SQL" });
  await box.fill("SELECT state, count(*) AS n, avg(total) AS mean FROM t GROUP BY state ORDER BY state");
  await box.press("Control+Enter");
  const rows = page.getByRole("region", { name: "Rows of the result" });
  await rows.waitFor();
  assert.deepEqual(await rows.getByRole("columnheader").allInnerTexts(), ["state", "n", "mean"]);
  const expected = await client.sql("kinds://table", "SELECT state, count(*), avg(total) FROM t GROUP BY state ORDER BY state");
  const texts = await rows.locator("tbody tr").evaluateAll((all) => all.map((row) => [...row.children].map((cell) => cell.innerText)));
  assert.deepEqual(texts, expected.map((row) => row.map(String)));
  await look("query");
  await page.getByRole("button", { name: "Chart" }).click();
  await page.getByRole("region", { name: "Bars of n" }).waitFor();
  await look("query-chart");
  await page.getByRole("button", { name: "Table", exact: true }).click();
  await box.fill("SELECT 9007199254740993 AS n, '9007199254740993' AS text, -9223372036854775808 AS low, 0.5 AS part");
  await box.press("Control+Enter");
  await rows.getByText("-9223372036854775808").waitFor();
  assert.deepEqual(await rows.locator("td").allInnerTexts(), ["9007199254740993", "9007199254740993", "-9223372036854775808", "0.5"]);
  await page.goBack();
  await page.getByRole("button", { name: "Chart" }).click();
  await page.getByRole("region", { name: "Bars of n" }).waitFor();
  const other = await stage.open({ storageState: await page.context().storageState() });
  await other.goto(page.url());
  await other.getByRole("region", { name: "Bars of n" }).waitFor();
  await other.close();

  await page.getByLabel("URI of the whole result").fill("kinds://result");
  await page.getByRole("button", { name: "Store the whole result" }).click();
  await page.getByRole("link", { name: "kinds://result" }).click();
  await page.getByRole("article", { name: /result/ }).waitFor();
  await open(page, "kinds://table", "?view=query&query=SELECT%20absent%20FROM%20t");
  await page.getByRole("alert").filter({ hasText: "No column absent" }).waitFor();
  await open(page, "kinds://tree", `?view=query&engine=jq&query=${encodeURIComponent(".items | length")}`);
  await page.getByRole("cell", { name: "3000" }).waitFor();
}

async function lists(page, look) {
  await page.goto("about:blank");
  await page.goto(`${given.url}#/?folders=yes`);
  await page.getByRole("link", { name: "kinds://" }).click();
  await page.getByRole("link", { name: "orders.csv" }).waitFor();
  await look("folders");
  // What is no longer seen is not chosen any more.
  await page.getByRole("checkbox", { name: "Choose orders.csv" }).check();
  await page.getByRole("button", { name: "Delete chosen" }).waitFor();
  await page.goBack();
  await page.getByRole("button", { name: "Delete chosen" }).waitFor({ state: "detached" });
  await page.getByRole("link", { name: "kinds://" }).waitFor();
  await page.goForward();

  // Keys: to the search, and the list of them.
  await page.keyboard.press("?");
  await page.getByRole("dialog").getByText("to the search box").waitFor();
  await look("keys");
  await page.keyboard.press("Escape");
  await page.keyboard.press("/");
  // Slowly, so that a search begins while more is typed.
  await page.keyboard.type("retrying request", { delay: 60 });
  assert.equal(await page.getByRole("searchbox").inputValue(), "retrying request");
  const hit = page.getByRole("link", { name: /^\d+: .*retrying request/ }).first();
  await hit.waitFor();
  await look("search-hits");
  const line = (await hit.innerText()).split(":")[0];
  await hit.click();
  await page.locator(".line.active .gutter").waitFor();
  assert.equal(await page.locator(".line.active .gutter").innerText(), line);
  await page.goBack();
  await hit.waitFor();
  // A search follows what is stored.
  await client.store({ uri: "kinds://later", name: "later.txt", text: "retrying the request\n", mime_type: "text/plain" });
  await page.getByRole("link", { name: "later.txt" }).waitFor();

  await page.getByRole("searchbox").fill("kinds://");
  await page.getByRole("checkbox", { name: "Choose later.txt" }).check();
  await page.getByRole("checkbox", { name: "Choose small.csv" }).check();
  await look("chosen");
  await page.getByRole("button", { name: "Delete chosen" }).click();
  await page.getByRole("dialog").getByText("later.txt").waitFor();
  await look("delete-many");
  await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
  await page.getByRole("link", { name: "later.txt" }).waitFor({ state: "detached" });
  assert.equal(await page.getByRole("link", { name: "small.csv" }).count(), 0);
}

async function shares(page, look) {
  await open(page, "kinds://log");
  await page.getByRole("button", { name: "Share" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Share" }).click();
  const people = await page.getByLabel("Link for people").inputValue();
  assert.ok(people.startsWith(given.url), people);
  assert.equal(await page.getByLabel("Link to download").count(), 0, "nobody has asked for a link that nothing revokes");
  await page.getByRole("button", { name: "Make a link to download" }).click();
  const download = await page.getByLabel("Link to download").inputValue();
  const saved = await fetch(download);
  assert.deepEqual([saved.status, await saved.text()], [200, log(3_000)]);
  assert.match(await page.getByLabel("Link for models and tools").inputValue(), /^larder:\/\/shared\//);
  assert.doesNotMatch(await page.getByRole("dialog").innerText(), /Invalid/);
  await look("shared-links");
  await page.goto("about:blank");
  await page.goto(people);
  await page.getByText("GET /v1/orders/1 ").first().waitFor();
}

try {
  await store();
  const page = await stage.open({ colorScheme: "light" });
  await stage.logIn(page);
  const light = (name) => stage.look(page, name);
  for (const walk of [kinds, words, charts, addresses, queries, shares]) await walk(page, light);
  await open(page, "kinds://small");
  await page.getByText("3 rows").waitFor();
  const height = await page.locator(".panel .scroller").evaluate((one) => one.clientHeight);
  assert.ok(height < 160, `three rows are ${height} pixels high`);
  await lists(page, light);
  const storageState = await page.context().storageState();
  for (const [suffix, options] of [
    ["-dark", { colorScheme: "dark" }],
    ["-narrow", { viewport: { width: 390, height: 740 } }],
  ]) {
    stage.suffix = suffix;
    const other = await stage.open({ ...options, storageState });
    for (const [name, uri, rest, ready] of [
      ["chart-line", "kinds://table", "?view=chart", (view) => view.getByRole("region", { name: "Figures" })],
      ["chart-bars", "kinds://table", "?view=chart&chart=bars&x=customer", (view) => view.getByRole("region", { name: "Bars" })],
      ["chart-histogram", "kinds://table", "?view=chart&chart=histogram", (view) => view.getByRole("region", { name: "Bins" })],
      ["kind-markdown", "kinds://markdown", "", (view) => view.getByRole("cell", { name: "north" })],
      ["kind-code", "kinds://code", "", (view) => view.locator(".ink-string").first()],
      ["kind-pdf", "kinds://pdf", "", (view) => view.getByText("1 of 5 pages")],
      ["query", "kinds://table", "?view=query&query=SELECT%20*%20FROM%20t", (view) => view.getByRole("region", { name: "Rows of the result" })],
    ]) {
      await open(other, uri, rest);
      await ready(other).waitFor();
      await stage.look(other, name);
    }
    await other.goto(`${given.url}#/?folders=yes&prefix=kinds%3A%2F%2F`);
    await other.getByRole("link", { name: "orders.csv" }).waitFor();
    await stage.look(other, "folders");
  }
} catch (error) {
  seen.failed = String(error.stack ?? error);
} finally {
  console.log(JSON.stringify(seen));
  await stage.stop();
}
