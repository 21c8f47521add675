// An MCP server that answers with the bytes that a test chooses, in base64: --METHOD=BYTES for a
// method, or the request itself brings them. $ID in them is the id of the request.
import { createInterface } from 'node:readline';

const chosen = new Map(process.argv.slice(2).map((argument) => {
  const [, method, bytes] = argument.match(/^--([^=]+)=(.*)$/s);
  return [method, bytes];
}));
const capabilities = { tools: {}, prompts: {}, resources: {}, completions: {} };
const usual = {
  initialize: { protocolVersion: '2025-11-25', capabilities, serverInfo: { name: 'any', version: '1' } },
  ping: {},
  'tools/list': { tools: [{ name: 'say', inputSchema: { type: 'object' } }] },
  'prompts/list': { prompts: [{ name: 'say', arguments: [{ name: 'bytes' }] }] },
  'resources/list': { resources: [{ uri: 'any://none', name: 'none' }] },
  'resources/templates/list': { resourceTemplates: [{ uriTemplate: 'any://{bytes}', name: 'any' }] },
};
const brought = {
  'tools/call': ({ arguments: { bytes } = {} }) => bytes,
  'prompts/get': ({ arguments: { bytes } = {} }) => bytes,
  'resources/read': ({ uri }) => uri.slice('any://'.length),
  'completion/complete': ({ argument }) => argument.value,
};

// The id of the call that ends when its question is answered.
let asking;
createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params = {}, error } = JSON.parse(line);
  if (!method) {
    // The answer to a question of a call that waits for it.
    const content = [{ type: 'text', text: `${id}: ${error?.message}` }];
    console.log(JSON.stringify({ jsonrpc: '2.0', id: asking, result: { content } }));
    return;
  }
  if (params.arguments?.then === 'wait') asking = id;
  const bytes = chosen.get(method) ?? brought[method]?.(params);
  if (bytes !== undefined) {
    const text = Buffer.from(bytes, 'base64').toString('latin1').replaceAll('$ID', id);
    process.stdout.write(Buffer.from(`${text}\n`, 'latin1'), () => {
      if (params.arguments?.then === 'exit') process.exit(0);
    });
  } else if (usual[method]) {
    console.log(JSON.stringify({ jsonrpc: '2.0', id, result: usual[method] }));
  } else if (id !== undefined) {
    console.log(JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32601, message: 'Method not found' } }));
  }
}).on('close', () => process.exit(0));
