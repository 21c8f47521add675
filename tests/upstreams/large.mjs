// An MCP server that is too large: its lists, its answers, and what it starts. What it does is chosen by
// flags.
import { spawn } from 'node:child_process';
import { appendFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

const flag = (name, otherwise) => {
  const set = process.argv.find((argument) => argument.startsWith(`--${name}=`));
  return set ? set.slice(name.length + 3) : otherwise;
};
const list = flag('list', 'short');
const size = Number(flag('size', 100));

if (flag('pids')) {
  appendFileSync(flag('pids'), `${process.pid}\n`);
  // A daemon in a session of its own, which ignores what ends the others.
  const script = 'trap "" TERM HUP; while :; do sleep 1; done';
  const daemon = spawn('sh', ['-c', script], { detached: true, stdio: 'ignore' });
  appendFileSync(flag('pids'), `${daemon.pid}\n`);
  daemon.unref();
}
const isStubborn = flag('stubborn') !== undefined;
if (isStubborn) {
  process.on('SIGTERM', () => {});
  setInterval(() => {}, 1000);
}

const send = (message) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\n');
const tool = (name) => ({ name, description: 'x'.repeat(size), inputSchema: { type: 'object' } });
const items = (from, count) => Array.from({ length: count }, (_, n) => tool(`t${from + n}`));

let page = 0;
const pages = {
  short: () => ({ tools: ['echo', 'rows', 'drip'].map(tool) }),
  // Always another page.
  endless: () => ({ tools: items((page += 1) * 64, 64), nextCursor: `page ${page}` }),
  long: () => ({ tools: items(0, Number(flag('items', 1000))) }),
};

const run = {
  echo: async () => ({ content: [{ type: 'text', text: 'echo' }] }),
  // Rows that only fit into memory.
  rows: async ({ bytes, file }) => {
    if (file) appendFileSync(file, 'x\n');
    return { content: [], structuredContent: { rows: Array(Math.ceil(bytes / 100)).fill('x'.repeat(97)) } };
  },
  // The beginning of a message that never ends.
  drip: ({ bytes, file }, id) => new Promise(() => {
    const begun = `{"jsonrpc":"2.0","id":${id},"result":{"content":[],"structuredContent":{"rows":[`;
    process.stdout.write(begun + `"${'x'.repeat(97)}",`.repeat(Math.ceil(bytes / 100)), () => appendFileSync(file, 'x\n'));
  }),
};

const handle = {
  'server/discover': ({ id }) => send({ id, error: { code: -32601, message: 'Method not found' } }),
  initialize: ({ id, params }) =>
    send({ id, result: { protocolVersion: params.protocolVersion, capabilities: { tools: {}, prompts: {}, completions: {} }, serverInfo: { name: 'large', version: '1' } } }),
  'tools/list': ({ id }) => send({ id, result: pages[list]() }),
  'prompts/list': ({ id }) => send({ id, result: { prompts: [{ name: 'words', arguments: [{ name: 'word' }] }] } }),
  // Words of so many bytes together.
  'completion/complete': ({ id, params }) => {
    const values = Array(100).fill('w'.repeat(Number(params.argument.value) / 100));
    send({ id, result: { completion: { values } } });
  },
  'tools/call': async ({ id, params }) => send({ id, result: await (run[params.name] ?? run.echo)(params.arguments ?? {}, id) }),
};

createInterface({ input: process.stdin })
  .on('line', (line) => {
    const message = JSON.parse(line);
    handle[message.method]?.(message);
  })
  .on('close', () => { if (!isStubborn) process.exit(0); });
