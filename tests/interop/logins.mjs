// The official clients log in to Larder by discovery, with nothing but its URL:
// 401 -> metadata -> registration -> code with PKCE -> call -> step-up.
// Usage: node logins.mjs <larder> <python>
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
const [larder, python] = process.argv.slice(2);
const folder = mkdtempSync(join(tmpdir(), 'larder-interop-'));
const children = [];

function start(command, args, options = {}) {
  const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'pipe'], ...options });
  children.push(child);
  return child;
}

function line(stream, pick) {
  return new Promise((found, failed) => {
    const lines = createInterface({ input: stream });
    lines.on('line', (text) => { const value = pick(text); if (value) found(value); });
    lines.on('close', () => failed(new Error('the process ended before it was ready')));
  });
}

const freePort = () => new Promise((found) => {
  const server = createServer().listen(0, '127.0.0.1', () => {
    const { port } = server.address();
    server.close(() => found(port));
  });
});

async function client(label, command, args) {
  const child = start(command, args, { stdio: ['ignore', 'inherit', 'inherit'] });
  const code = await new Promise((ended) => { child.on('exit', ended); child.on('error', () => ended(-1)); });
  if (code !== 0) throw new Error(`${label} failed (${code})`);
}

let failure;
try {
  const provider = start('node', ['provider.mjs'], { cwd: join(here, '..', 'oidc') });
  const issuer = await line(provider.stdout, (text) => JSON.parse(text).issuer);
  const port = await freePort();
  const url = `http://127.0.0.1:${port}/mcp`;
  const config = join(folder, 'larder.toml');
  writeFileSync(config, `
[server]
listen = "127.0.0.1:${port}"
public_url = "${url}"
[auth]
mode = "oauth"
required_scopes = ["mcp:read"]
[auth.scopes]
create_resource = ["mcp:write"]
[[auth.issuers]]
issuer = "${issuer}"
`);
  const server = start(larder, ['serve', '--config', config]);
  await line(server.stderr, (text) => text.startsWith('larder listening on'));
  await client('TypeScript', 'node', [join(here, 'login.mjs'), url]);
  await client('Python', python, [join(here, 'login.py'), url]);
  console.log('All official clients logged in.');
} catch (error) {
  failure = error;
}
for (const child of children) child.kill();
rmSync(folder, { recursive: true });
if (failure) {
  console.error(failure.message);
  process.exit(1);
}
process.exit(0);
