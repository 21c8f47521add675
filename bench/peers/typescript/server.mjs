// The official TypeScript server: node server.mjs stateless|sessions
import { createServer } from 'node:http';
import { randomUUID } from 'node:crypto';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { z } from 'zod';

function make() {
    const server = new McpServer({ name: 'bench', version: '1' });
    server.registerTool(
        'echo',
        { description: 'Returns its text.', inputSchema: { text: z.string() } },
        async ({ text }) => ({ content: [{ type: 'text', text }] }),
    );
    return server;
}

async function transport(options) {
    const made = new StreamableHTTPServerTransport({ enableJsonResponse: true, ...options });
    await make().connect(made);
    return made;
}

const sessions = new Map();
const modes = {
    // A server and a transport for each request, as the SDK's own example of it does.
    async stateless(request, response) {
        const once = await transport({ sessionIdGenerator: undefined });
        await once.handleRequest(request, response);
    },
    async sessions(request, response) {
        const known = sessions.get(request.headers['mcp-session-id']);
        const session = known ?? (await transport({
            sessionIdGenerator: randomUUID,
            onsessioninitialized: id => sessions.set(id, session),
        }));
        await session.handleRequest(request, response);
    },
};

const server = createServer(modes[process.argv[2]]);
server.keepAliveTimeout = 600_000;
server.listen(0, '127.0.0.1', () => {
    console.error(`typescript listening on http://127.0.0.1:${server.address().port}/mcp`);
});
