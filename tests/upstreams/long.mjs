// An MCP server with a tool and a resource, whose long results it writes in pieces, over standard output or
// HTTP (--http=PORT, with --events as a stream of events), without any library.
import { existsSync, appendFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createInterface } from 'node:readline';

const flag = (name) => {
  const set = process.argv.find((argument) => argument === `--${name}` || argument.startsWith(`--${name}=`));
  return set?.slice(name.length + 3);
};

// A text of so many bytes in UTF-8, in numbered lines.
const textOf = (bytes) => {
  const lines = [];
  for (let n = 0; ; n += 1) {
    const line = `line ${n}: "é" \\ 🦀 ${'and so on '.repeat(8)}\n`;
    const size = Buffer.byteLength(line);
    if (size > bytes) return lines.join('') + 'x'.repeat(bytes);
    lines.push(line);
    bytes -= size;
  }
};
const rowsOf = (count) => Array.from({ length: count }, (_, id) => ({ id, name: `row "${id}"`, rate: id / 8 }));

// So many bytes in base64: `broken` at its end, or in lines.
const base64Of = (count, { broken, lines }) => {
  const bytes = Buffer.alloc(count);
  for (let i = 0; i < count; i += 1) bytes[i] = (i * 31 + (i >> 8) * 7) & 255;
  const base64 = bytes.toString('base64');
  if (lines) return base64.replace(/.{76}/g, '$&\n');
  return broken ? `${base64}!` : base64;
};
// A block of that type, with binary data.
const mediaOf = (type, count, options) => {
  const data = base64Of(count, options);
  if (type === 'blob') return { type: 'resource', resource: { uri: 'file:///a.zip', mimeType: 'application/zip', blob: data } };
  return { type, data, mimeType: type === 'image' ? 'image/png' : 'audio/wav' };
};

// A list as libraries send it: a text block for each item, between other blocks.
const itemsOf = ({ items, long, first, image, words, schema = 'result' }) => {
  const text = (n) => (n === long ? textOf(100_000) : `text of item ${n}: ${'and so on '.repeat(60)}`);
  const list = Array.from({ length: items }, (_, id) => (words ? text(id) : { id, title: `Item "${id}"`, text: text(id) }));
  const content = list.map((item) => ({ type: 'text', text: words ? item : JSON.stringify(item, null, 2) }));
  if (image) content.splice(items / 2, 0, mediaOf('image', 300, {}));
  if (first) content.unshift({ type: 'text', text: first });
  return { content, ...(schema && { structuredContent: { [schema]: list } }) };
};

const resultOf = (options) => (options.items ? itemsOf(options) : otherResultOf(options));
const otherResultOf = ({ bytes = 0, texts = 1, copy, rows = 0, resource, media, ...more }) => {
  if (media) {
    const content = [{ type: 'text', text: 'Here it is.' }, mediaOf(media, bytes, more)];
    return { content, ...(copy && { structuredContent: { result: content } }) };
  }
  if (rows) {
    const structuredContent = { rows: rowsOf(rows) };
    const text = JSON.stringify(structuredContent, null, copy === 'pretty' ? 2 : 0);
    return { content: [{ type: 'text', text }], structuredContent };
  }
  const text = textOf(bytes);
  if (resource) return { content: [{ type: 'resource', resource: { uri: resource, mimeType: 'text/x-log', text } }] };
  const result = { content: Array.from({ length: texts }, () => ({ type: 'text', text })) };
  if (copy === 'text') result.structuredContent = { content: text };
  if (copy === 'json') {
    result.structuredContent = { content: text };
    result.content = [{ type: 'text', text: JSON.stringify(result.structuredContent) }];
  }
  if (copy === 'other') result.structuredContent = { id: 7, log: [{ text: `other ${text}` }] };
  if (copy === 'member') result.structuredContent = { outcome: 'done', log: text };
  return result;
};

// The contents of `long:?OPTIONS`, of which `contents` are the lengths of texts.
const contentsOf = (uri, { contents = [], blob, ...more }) => ({
  contents: [
    ...contents.map((bytes, n) => ({ uri: `${uri}#${n}`, mimeType: 'text/x-log', text: textOf(bytes), _meta: { n } })),
    ...(blob ? [{ uri, mimeType: 'application/zip', blob: base64Of(blob, more) }] : []),
  ],
});
const optionsOf = ({ method, params }) =>
  method === 'resources/read' ? JSON.parse(decodeURIComponent(params.uri.slice('long:?'.length))) : (params.arguments ?? {});

const later = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

// The response in pieces. `stop` is how much of it comes before the server dies, or waits for a file.
async function* responseTo({ id, method, params }) {
  const options = optionsOf({ method, params });
  const result = method === 'resources/read' ? contentsOf(params.uri, options) : resultOf(options);
  const message = options.late_id ? { result, jsonrpc: '2.0', id } : { jsonrpc: '2.0', id, result };
  let json = JSON.stringify(message);
  if (options.ascii) json = json.replace(/[^\x00-\x7f]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
  if (options.broken && !options.media) json = json.replace('line 5000', 'line \\x000');
  const bytes = Buffer.from(json);
  const stop = options.stop ?? bytes.length;
  const piece = options.piece ?? 1 << 16;
  for (let at = 0; at < stop; at += piece) yield bytes.subarray(at, Math.min(at + piece, stop));
  if (options.die) {
    await later(200);
    process.kill(process.pid, 'SIGKILL');
  }
  while (options.wait && !existsSync(options.wait)) await later(20);
  if (stop < bytes.length) yield bytes.subarray(stop);
}

const tool = { name: 'long', description: 'A long result.', inputSchema: { type: 'object' } };
const handle = {
  initialize: ({ params }) => ({ protocolVersion: params.protocolVersion, capabilities: { tools: {}, resources: {} }, serverInfo: { name: 'long', version: '1' } }),
  'tools/list': () => ({ tools: [tool, { ...tool, name: 'other' }] }),
  'resources/templates/list': () => ({ resourceTemplates: [{ name: 'long', uriTemplate: 'long:{?options}' }] }),
  'resources/list': () => ({ resources: [] }),
};
const small = ({ id, method, params }) => {
  const result = handle[method]?.({ params });
  const error = result ? undefined : { code: -32601, message: 'Method not found' };
  return JSON.stringify({ jsonrpc: '2.0', id, result, error });
};

const isLong = ({ method }) => method === 'tools/call' || method === 'resources/read';

const received = (message) => {
  if (flag('record')) appendFileSync(flag('record'), `${JSON.stringify(message)}\n`);
};

// Messages must not mix.
let writing = Promise.resolve();
if (flag('http')) {
  createServer(async (request, response) => {
    if (request.method !== 'POST') return response.writeHead(405).end();
    const parts = [];
    for await (const part of request) parts.push(part);
    const message = JSON.parse(Buffer.concat(parts).toString());
    received(message);
    if (message.id === undefined) return response.writeHead(202).end();
    const events = flag('events') !== undefined;
    response.writeHead(200, { 'content-type': events ? 'text/event-stream' : 'application/json' });
    if (events) response.write('data: ');
    if (isLong(message)) {
      for await (const piece of responseTo(message)) {
        if (!response.write(piece)) await new Promise((resolve) => response.once('drain', resolve));
      }
    } else {
      response.write(small(message));
    }
    response.end(events ? '\n\n' : '');
  }).listen(Number(flag('http')), '127.0.0.1');
} else {
  createInterface({ input: process.stdin }).on('line', (line) => {
    const message = JSON.parse(line);
    received(message);
    if (message.id === undefined) return;
    writing = writing.then(async () => {
      if (!isLong(message)) return process.stdout.write(`${small(message)}\n`);
      for await (const piece of responseTo(message)) {
        if (!process.stdout.write(piece)) await new Promise((resolve) => process.stdout.once('drain', resolve));
      }
      process.stdout.write('\n');
    });
  }).on('close', () => process.exit(0));
}
