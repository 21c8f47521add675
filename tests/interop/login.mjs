// The official TypeScript clients log in with nothing but the URL: node login.mjs <url> [<document>]
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { Client as OldClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as OldTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { run } from './browser.mjs';

const [url, document] = process.argv.slice(2);
await run('TypeScript 1', { Client: OldClient, StreamableHTTPClientTransport: OldTransport }, {}, url, document);
await run('TypeScript 2', { Client, StreamableHTTPClientTransport }, {}, url, document);
