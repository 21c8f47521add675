// Content for the scenarios, the same in each run.

const NAMES = ["Ada Lovelace", "Grace Hopper", "Alan Turing", "Katherine Johnson", "Edsger Dijkstra", "Barbara Liskov"];
const STATES = ["paid", "open", "shipped", "returned"];

export function orders(count) {
  const rows = ["id,placed,customer,state,items,total,express"];
  for (let n = 1; n <= count; n++) {
    const day = new Date(Date.UTC(2026, 0, 1) + n * 3_600_000).toISOString();
    const total = (100 + 80 * Math.sin(n / 9) + (n % 13)).toFixed(2);
    const name = n % 17 === 0 ? "" : NAMES[n % NAMES.length];
    rows.push(`${n},${day},${name},${STATES[(n * 7) % 4]},${1 + ((n * 5) % 9)},${total},${n % 3 === 0}`);
  }
  return `${rows.join("\n")}\n`;
}

export function log(count) {
  const lines = [];
  for (let n = 1; n <= count; n++) {
    const time = new Date(Date.UTC(2026, 0, 1) + n * 250).toISOString();
    const level = n % 97 === 0 ? "ERROR" : n % 31 === 0 ? "WARN " : "INFO ";
    const text =
      level === "ERROR"
        ? `upstream timed out after 30 s while reading /v1/orders/${n}`
        : level === "WARN "
          ? `retrying request ${n} (attempt 2 of 5)`
          : `GET /v1/orders/${n} 200 ${12 + (n % 40)} ms`;
    lines.push(`${time} ${level} http: ${text}`);
  }
  return `${lines.join("\n")}\n`;
}

export const tree = () => ({
  name: "larder",
  version: "1.4.0",
  private: true,
  license: null,
  keywords: ["mcp", "resources", "large results"],
  limits: { bytes: 268435456, ratio: 0.75, names: { "a/b": 1, "": 2, "ключ": 3 } },
  items: Array.from({ length: 3000 }, (_, n) => ({ id: n, tags: [n % 3, `t${n % 5}`], note: "x".repeat(n % 50) })),
});
