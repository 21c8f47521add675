// The functions of a script. A script that changes them changes only itself: the server counts and
// checks what arrives.
(function (host, start) {
  "use strict";
  const { parse, stringify } = JSON;
  const calls = new Map();

  // Without a clock and without random numbers, the same code with the same answers does the same.
  const refuse = (what) => () => {
    throw new TypeError(`The code has no ${what}: pass it as a value.`);
  };
  const GivenDate = Date;
  const now = refuse("clock");
  globalThis.Date = function Date(...given) {
    if (!new.target || given.length === 0) now();
    return Reflect.construct(GivenDate, given);
  };
  Date.prototype = GivenDate.prototype;
  Date.prototype.constructor = Date;
  Object.assign(Date, { now, parse: GivenDate.parse, UTC: GivenDate.UTC });
  Math.random = refuse("random numbers");
  delete globalThis.performance;

  class ToolError extends Error {
    constructor(message, value) {
      super(message);
      this.value = value;
    }
    get name() {
      return "ToolError";
    }
  }

  const request = (message) =>
    new Promise((resolve, reject) => {
      const id = host.send(message);
      calls.set(id, [resolve, reject]);
    });
  const operate = (kind, members) => request(["handle", stringify({ [kind]: members })]);
  const range = (given) => {
    const { offset = 0, limit = null } = given ?? {};
    return { offset, limit };
  };

  class Handle {
    constructor(facts) {
      Object.assign(this, facts);
      Object.freeze(this);
    }
    value() {
      return operate("value", { uri: this.uri });
    }
    text(given) {
      return operate("text", { uri: this.uri, range: range(given) });
    }
    lines(given) {
      return operate("lines", { uri: this.uri, range: range(given) });
    }
    records(given) {
      return operate("records", { uri: this.uri, range: range(given) });
    }
    jq(filter) {
      return operate("jq", { uri: this.uri, filter: String(filter) });
    }
    sql(statement) {
      return operate("sql", { from: this.uri, statement: String(statement) });
    }
    search(pattern) {
      return operate("search", { uri: this.uri, pattern: String(pattern) });
    }
  }

  // A handle within arguments is a reference: the server puts the content in its place.
  const call = (tool, given = {}) => {
    let handles = 0;
    const json = stringify(given, (_, value) => {
      if (!(value instanceof Handle)) return value;
      handles += 1;
      return { $larder: value.uri };
    });
    return request(["call", String(tool), json ?? "{}", handles]);
  };

  const larder = {
    open: (uri) => operate("open", { uri: String(uri) }),
    sql: (tables, statement) => {
      const from = {};
      for (const [name, table] of Object.entries(tables)) from[name] = table.uri ?? table;
      return operate("sql", { from, statement: String(statement) });
    },
    store: (value, { uri = null, name = null, ttl = null } = {}) =>
      operate("store", { value: value ?? null, uri, name, ttl }),
  };

  const text = (value) => (typeof value === "string" ? value : (stringify(value) ?? String(value)));
  const log = (...values) => host.log(values.map(text).join(" "));
  const console = { log, info: log, warn: log, error: log, debug: log };

  const given = { call, larder, console, ToolError };
  for (const tool of start.tools) {
    const use = (values) => call(tool, values);
    const at = tool.indexOf("__");
    if (at > 0) {
      const server = tool.slice(0, at);
      given[server] ??= {};
      if (typeof given[server] === "object") given[server][tool.slice(at + 2)] = use;
    }
    given[tool] ??= use;
  }
  for (const [name, value] of Object.entries(given)) {
    if (!(name in globalThis)) globalThis[name] = value;
  }

  const inputs = {};
  for (const { name, handle } of start.inputs) inputs[name] = new Handle(handle);

  const answer = (json) => {
    const { id, outcome } = parse(json);
    const [resolve, reject] = calls.get(id);
    calls.delete(id);
    if ("handle" in outcome) resolve(new Handle(outcome.handle));
    else if ("error" in outcome) reject(new ToolError(outcome.error.message, outcome.error.value));
    else resolve(outcome.value);
  };

  const failed = (error) => {
    const isError = error instanceof Error;
    const message = isError ? `${error.name}: ${error.message}` : `Thrown: ${text(error)}`;
    host.failed(message, isError ? String(error.stack) : "");
  };
  const run = (code) => {
    code(inputs).then((value) => host.done(stringify(value) ?? "null")).catch(failed);
  };
  return { answer, run };
});
