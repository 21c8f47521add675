// An MCP server for the simulation of tests/it/upstreams, without any library: FILE has its mood, as
// JSON, which it reads again whenever it starts or is asked for its tools:
// { "era": "legacy" | "modern", "start": how it starts, "list": how it lists }. It writes its
// process ID, and that of a child, to PIDS, one a line.
import { spawn } from 'node:child_process';
import { appendFileSync, readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

const [file, pids] = process.argv.slice(2);
const mood = () => JSON.parse(readFileSync(file, 'utf8'));
const { era, start } = mood();
appendFileSync(pids, `${process.pid}\n`);
if (start === 'dies') process.exit(3);

const child = spawn('sleep', ['1000'], { stdio: 'ignore' });
appendFileSync(pids, `${child.pid}\n`);

const write = (text) => process.stdout.write(`${text}\n`);
const send = (message) => write(JSON.stringify({ jsonrpc: '2.0', ...message }));
const text = (text) => ({ content: [{ type: 'text', text }] });
const unknown = (id) => send({ id, error: { code: -32601, message: 'Method not found' } });
const die = () => process.kill(process.pid, 'SIGKILL');
let tools = 1;

const acts = {
  answer: (id) => send({ id, result: text('done') }),
  long: (id) => send({ id, result: text('a long line of a text\n'.repeat(20_000)) }),
  refuse: (id) => send({ id, error: { code: -32000, message: 'not now' } }),
  silent: () => {},
  garble: (id) => write(`{"jsonrpc":"2.0","id":${id},"result":{"content":[{"type":"te`),
  mistake: (id) => send({ id, result: 5 }),
  twice: (id) => [1, 2].forEach(() => send({ id, result: text('done') })),
  stranger: (id) => {
    send({ id: 1_000_000, result: text('for nobody') });
    send({ id, result: text('done') });
  },
  change: (id) => {
    tools += 1;
    send({ method: 'notifications/tools/list_changed' });
    send({ id, result: text('changed') });
  },
  die,
  answer_and_die: (id) => {
    send({ id, result: text('done') });
    setTimeout(die, 5);
  },
  end: () => process.exit(0),
};

const lists = {
  well: (id) => {
    const tool = (number) => ({ name: `act${number || ''}`, inputSchema: { type: 'object' } });
    send({ id, result: { tools: Array.from({ length: tools }, (_, number) => tool(number)) } });
  },
  refuses: (id) => send({ id, error: { code: -32603, message: 'no tools now' } }),
  mistakes: (id) => send({ id, result: { tools: 'none' } }),
  silent: () => {},
  dies: die,
};

const capabilities = { tools: { listChanged: true } };
const handle = {
  'server/discover': ({ id }) => {
    if (era === 'legacy') return unknown(id);
    send({ id, result: { resultType: 'complete', supportedVersions: ['2026-07-28'], capabilities } });
  },
  initialize: ({ id, params: { protocolVersion } }) => {
    if (era === 'modern') return unknown(id);
    send({ id, result: { protocolVersion, capabilities, serverInfo: { name: 'moody', version: '1' } } });
  },
  ping: ({ id }) => send({ id, result: {} }),
  'tools/list': ({ id }) => lists[mood().list](id),
  'tools/call': ({ id, params }) => acts[params.arguments.does](id),
};

createInterface({ input: process.stdin })
  .on('line', (line) => {
    if (start === 'silent') return;
    const message = JSON.parse(line);
    if (handle[message.method]) handle[message.method](message);
    else if (message.id !== undefined && message.method) unknown(message.id);
  })
  .on('close', () => process.exit(0));
