// The official clients log in to Larder by discovery, with nothing but its URL:
// 401 -> metadata -> registration -> code with PKCE -> call -> step-up.
// First Larder accepts the tokens of a provider at which clients register. Then Larder is the
// authorization server, before a provider that knows no clients but Larder; clients register, or
// have a metadata document.
// Usage: node logins.mjs <larder> <python>
import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer as createEncrypted } from 'node:https';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { host } from './browser.mjs';

const here = dirname(fileURLToPath(import.meta.url));
const [larder, python] = process.argv.slice(2);
const folder = mkdtempSync(join(tmpdir(), 'larder-interop-'));
const children = [];
const CERTIFICATE = join(folder, 'certificate.pem');
const KEY = join(folder, 'key.pem');

function start(command, args, { env, ...options } = {}) {
  const environment = { ...process.env, ...env };
  const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'pipe'], env: environment, ...options });
  children.push(child);
  return child;
}

function line(stream, pick) {
  return new Promise((found, failed) => {
    const seen = [];
    const lines = createInterface({ input: stream });
    lines.on('line', (text) => {
      seen.push(text);
      const value = pick(text);
      if (value) found(value);
    });
    lines.on('close', () => failed(new Error(`the process ended before it was ready: ${seen.join('\n')}`)));
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

async function clients(url, document) {
  const rest = document ? [document] : [];
  await client('TypeScript', 'node', [join(here, 'login.mjs'), url, ...rest]);
  await client('Python', python, [join(here, 'login.py'), url, ...rest]);
}

async function provider(env) {
  const process = start('node', ['provider.mjs'], { cwd: join(here, '..', 'oidc'), env });
  return line(process.stdout, (text) => JSON.parse(text).issuer);
}

async function serve(port, auth, env) {
  const config = join(folder, `larder-${port}.toml`);
  writeFileSync(config, `
[server]
listen = "127.0.0.1:${port}"
public_url = "http://127.0.0.1:${port}/mcp"
${auth}
`);
  const server = start(larder, ['serve', '--config', config], { env });
  await line(server.stderr, (text) => text.startsWith('larder listening on'));
}

const SCOPES = `required_scopes = ["mcp:read"]
[auth.scopes]
create_resource = ["mcp:write"]
[auth.hierarchy]
"mcp:write" = ["mcp:read"]`;

// A client's metadata document, at the URL that is its identifier.
async function metadataDocument() {
  execFileSync('openssl', [
    'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2',
    '-subj', '/CN=interop', '-addext', 'subjectAltName=IP:127.0.0.1',
    '-addext', 'basicConstraints=critical,CA:FALSE', '-keyout', KEY, '-out', CERTIFICATE,
  ], { stdio: 'ignore' });
  let document;
  const answer = (_, response) => {
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ client_id: document, ...host().clientMetadata }));
  };
  const server = createEncrypted({ key: readFileSync(KEY), cert: readFileSync(CERTIFICATE) }, answer);
  await new Promise((ready) => server.listen(0, '127.0.0.1', ready));
  document = `https://127.0.0.1:${server.address().port}/client.json`;
  return document;
}

let failure;
try {
  const issuer = await provider({});
  const port = await freePort();
  await serve(port, `[auth]\nmode = "oauth"\n${SCOPES}\n[[auth.issuers]]\nissuer = "${issuer}"`);
  await clients(`http://127.0.0.1:${port}/mcp`);

  console.log('Larder as the authorization server:');
  const own = await freePort();
  const url = `http://127.0.0.1:${own}/mcp`;
  const closed = await provider({ REGISTRATION: 'off' });
  const document = await metadataDocument();
  await serve(own, `[auth]
mode = "login"
${SCOPES}
[auth.login]
issuer = "${closed}"
client_id = "larder"
client_secret_env = "TEST_CLIENT_SECRET"
allow = { domains = ["example.com"] }
allow_private_documents = true
[auth.login.grants]
"mcp:read" = ["*"]
"mcp:write" = ["email:alice@example.com"]`, { TEST_CLIENT_SECRET: 'a secret for tests only', SSL_CERT_FILE: CERTIFICATE });
  await clients(url);
  await clients(url, document);
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
