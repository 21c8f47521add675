// An MCP server for tests of what goes wrong, without any library. Its tools and manners are
// chosen by flags; with --record=FILE it writes what it receives to a file, one message a line.
import { appendFileSync, existsSync, promises, readFileSync, writeFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

const flag = (name, otherwise) => {
  const set = process.argv.find((argument) => argument.startsWith(`--${name}=`));
  return set ? set.slice(name.length + 3) : otherwise;
};
const discover = flag('discover', 'refuse');
const tools = flag('tools', 'plain');
const record = flag('record');
if (flag('pid')) appendFileSync(flag('pid'), `${process.pid}\n`);
if (flag('stubborn')) process.on('SIGTERM', () => {});
if (flag('fail')) {
  console.error('odd: cannot open its data');
  process.exit(3);
}
if (flag('hang')) setInterval(() => {}, 1000);

const send = (message) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\n');
const object = (properties = {}) => ({ type: 'object', properties });
const text = (text) => ({ content: [{ type: 'text', text }] });
const draft07 = 'http://json-schema.org/draft-07/schema#';
const tool = (name, more = {}) => ({ name, description: `The tool ${name}.`, inputSchema: object(), ...more });

const lists = {
  plain: [[tool('echo'), tool('env'), tool('slow'), tool('mute'), tool('huge'), tool('die')],
    [tool('again', { annotations: { idempotentHint: true } }), tool('log'), tool('read_resource'), tool('grow')]],
  asking: [[tool('ask'), tool('ask_often'), tool('ask_and_exit'), tool('ask_too_late'), tool('pid')]],
  many: [Array.from({ length: 60 }, (_, number) => tool(`archive_${number}`, {
    description: `Archives ${flag('topic')}, form ${number}.`,
    inputSchema: object({ note: { type: 'string' }, fill: { type: 'number' }, size_of: { type: 'string' } }),
  }))],
  waiting: [[tool('echo'), tool('wait')]],
  living: [[tool('count'), tool('roots'), tool('env'), tool('mute'), tool('die_later')]],
  schemas: [[
    tool('tuple', {
      outputSchema: {
        $schema: draft07, type: 'object',
        properties: { pair: { type: 'array', items: [{ type: 'string' }, { type: 'number' }], additionalItems: false } },
        required: ['pair'],
      },
    }),
    tool('broken', { outputSchema: { type: 'object', properties: { a: { $ref: '#/definitions/missing' } } } }),
    tool('fine', { outputSchema: object({ a: { type: 'string' } }) }),
  ]],
};
const extra = [];
let rootsOfClient = null;
let locked = false;
let calls = 0;
let asked = 0;
const waiting = new Map();
const late = new Map();

// Asks the client for a name.
const ask = (number) => new Promise((answered) => {
  const id = `q${(asked += 1)}`;
  waiting.set(id, answered);
  const requestedSchema = { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] };
  send({ id, method: 'elicitation/create', params: { message: `Name ${number}?`, requestedSchema } });
});

// Asks for the roots, and takes as long to look at them as a server does that asks the file system.
const askRoots = async () => {
  const id = `r${(asked += 1)}`;
  const answered = new Promise((taken) => waiting.set(id, taken));
  send({ id, method: 'roots/list' });
  const patience = flag('patience');
  if (patience) {
    setTimeout(() => {
      if (!waiting.delete(id)) return;
      if (record) appendFileSync(record, '"gave up"\n');
      send({ method: 'notifications/cancelled', params: { requestId: id, reason: 'timeout' } });
    }, Number(patience));
  }
  const { result } = await answered;
  for (let step = 0; step < 4; step += 1) await promises.stat('/');
  rootsOfClient = result?.roots.map(({ uri }) => uri) ?? 'refused';
};

// Refuses a list as often as the file says.
const refuses = (method) => {
  const [listed, code, file] = flag('refuse', '').split(',');
  if (listed !== method) return undefined;
  if (file) {
    const left = existsSync(file) ? Number(readFileSync(file, 'utf8')) : 0;
    if (left <= 0) return undefined;
    writeFileSync(file, String(left - 1));
  }
  return { code: Number(code), message: `no ${method} now` };
};

const run = {
  count: async () => text(String((calls += 100))),
  roots: async () => text(JSON.stringify(rootsOfClient)),
  die_later: async () => {
    setTimeout(() => process.kill(process.pid, 'SIGKILL'), 50);
    return text('soon');
  },
  echo: async (_, args) => text(JSON.stringify(args)),
  ask: async () => text(JSON.stringify({ pid: process.pid, answer: await ask(1) })),
  pid: async () => text(String(process.pid)),
  ask_often: async (_, { times }) => {
    const names = [];
    for (let number = 1; number <= times; number += 1) names.push((await ask(number)).result.content.name);
    return text(`${names.join(', ')} in call ${calls}`);
  },
  ask_and_exit: async () => {
    ask(1);
    process.exit(5);
  },
  ask_too_late: ({ id }) => new Promise(() => late.set(id, () => ask(1))),
  env: async () => text(JSON.stringify(process.env)),
  slow: async (request, { steps = 3 }) => {
    const progressToken = request.params._meta?.progressToken;
    for (let step = 1; step <= steps; step += 1) {
      if (progressToken !== undefined) {
        send({ method: 'notifications/progress', params: { progressToken, progress: step, total: steps, message: `step ${step}` } });
      }
    }
    return text('done');
  },
  mute: () => new Promise(() => {}),
  huge: async (_, { bytes, values }) => (values
    ? { content: [], structuredContent: { values: Array(values).fill(0) } }
    : text('x'.repeat(bytes))),
  wait: async (_, { file }) => {
    appendFileSync(`${file}.called`, 'x');
    while (!existsSync(file)) await new Promise((resolve) => setTimeout(resolve, 20));
    return text('waited');
  },
  die: async () => process.kill(process.pid, 'SIGKILL'),
  again: async () => {
    // Its first process does not survive the call.
    if (process.env.ONCE && appendOnce(process.env.ONCE)) process.kill(process.pid, 'SIGKILL');
    return text('survived');
  },
  log: async () => {
    send({ method: 'notifications/message', params: { level: 'warning', logger: 'odd', data: 'careful' } });
    return text('logged');
  },
  read_resource: async () => text('the read_resource of the upstream'),
  grow: async () => {
    extra.push(tool('grown'));
    send({ method: 'notifications/tools/list_changed' });
    return text('grown');
  },
  grown: async () => text('new'),
  tuple: async (_, { pair = ['a', 1], fill = 0 }) => ({ content: [], structuredContent: { pair: [pair[0] + 'y'.repeat(fill), pair[1]] } }),
  broken: async () => text('no structure'),
  fine: async () => ({ content: [], structuredContent: { a: 7 } }),
};

function appendOnce(file) {
  try {
    appendFileSync(file, 'x', { flag: 'ax' });
    return true;
  } catch {
    return false;
  }
}

const handle = {
  'server/discover': ({ id }) => {
    if (discover === 'exit') process.exit(1);
    if (discover === 'lock') locked = true;
    if (discover === 'silent') return;
    if (discover !== 'modern') return send({ id, error: { code: -32601, message: 'Method not found' } });
    send({ id, result: { resultType: 'complete', supportedVersions: ['2026-07-28'], capabilities: { tools: {} } } });
  },
  initialize: ({ id, params }) => {
    if (locked) return send({ id, error: { code: -32602, message: 'Received request before initialization was complete' } });
    if (flag('modern')) return send({ id, error: { code: -32601, message: 'Method not found' } });
    send({ id, result: { protocolVersion: params.protocolVersion, capabilities: { tools: {}, logging: {}, resources: {} }, serverInfo: { name: 'odd', version: '1' } } });
  },
  ping: ({ id }) => send({ id, result: {} }),
  'notifications/initialized': () => { if (flag('roots')) askRoots(); },
  'notifications/roots/list_changed': () => { if (flag('roots')) askRoots(); },
  'resources/list': ({ id }) => send({ id, result: { resources: [{ uri: 'odd://several', name: 'several' }] } }),
  'resources/templates/list': ({ id }) => send({ id, result: { resourceTemplates: [] } }),
  'resources/read': ({ id, params: { uri } }) => {
    if (uri !== 'odd://several') return send({ id, error: { code: -32002, message: 'Resource not found' } });
    const contents = [{ uri: 'odd://several/a', mimeType: 'text/plain', text: 'a' }, { uri: 'odd://several/b', blob: 'Yg==' }];
    send({ id, result: { contents } });
  },
  'logging/setLevel': ({ id }) => send({ id, result: {} }),
  'tools/list': ({ id, params }) => {
    const pages = lists[tools];
    const page = Number(params?.cursor ?? 0);
    const nextCursor = page + 1 < pages.length ? String(page + 1) : undefined;
    send({ id, result: { tools: nextCursor ? pages[page] : [...pages[page], ...extra], nextCursor } });
  },
  'tools/call': async (request) => {
    const { id, params } = request;
    calls += 1;
    if (tools === 'many') {
      const { fill, size_of } = params.arguments ?? {};
      const shown = size_of ? size_of.length : fill ? 'x'.repeat(fill) : JSON.stringify(params.arguments);
      return send({ id, result: text(`${params.name} ${shown}`) });
    }
    if (!run[params.name]) return send({ id, error: { code: -32602, message: `Tool ${params.name} not found` } });
    send({ id, result: await run[params.name](request, params.arguments ?? {}) });
  },
};

const listen = () => createInterface({ input: process.stdin }).on('line', (line) => {
  if (record) appendFileSync(record, line + '\n');
  if (flag('hang')) return;
  const message = JSON.parse(line);
  if (message.method === 'notifications/cancelled') late.get(message.params.requestId)?.();
  if (!message.method) {
    waiting.get(message.id)?.(message);
    waiting.delete(message.id);
  }
  const error = refuses(message.method);
  if (error) return send({ id: message.id, error });
  if (flag('hangs') === message.method) return;
  handle[message.method]?.(message);
}).on('close', () => {
  if (flag('stubborn')) return;
  if (!flag('flushes')) process.exit(0);
  setTimeout(() => { appendFileSync(flag('flushes'), 'flushed\n'); process.exit(0); }, 2000);
});
// As a server that npx has to install first.
setTimeout(listen, Number(flag('slow', 0)));
if (flag('stubborn')) setInterval(() => {}, 1000);
