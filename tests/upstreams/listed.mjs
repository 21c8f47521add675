// An MCP server that lists the tools that a file has for a server of another name:
// FILE NAME. The file is a list of servers with their tools.
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

const [file, name] = process.argv.slice(2);
const { tools } = JSON.parse(readFileSync(file, 'utf8')).find((server) => server.name === name);
const answers = {
  initialize: () => ({
    protocolVersion: '2025-11-25',
    capabilities: { tools: {} },
    serverInfo: { name, version: '1' },
  }),
  ping: () => ({}),
  'tools/list': () => ({ tools }),
  'tools/call': ({ name }) => ({ content: [{ type: 'text', text: name }] }),
};

createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined || !method) return;
  const answer = answers[method];
  const error = { code: -32601, message: 'Method not found' };
  console.log(JSON.stringify({ jsonrpc: '2.0', id, ...(answer ? { result: answer(params) } : { error }) }));
}).on('close', () => process.exit(0));
