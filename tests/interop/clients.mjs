// What the tours of the official TypeScript clients share.

import assert from 'node:assert/strict';

const PATIENCE = 20_000;

// The two packages differ in their modules and in how handlers are registered.
export async function load(pkg, modern) {
    if (pkg === 'client') {
        const { Client, StreamableHTTPClientTransport } = await import('@modelcontextprotocol/client');
        return {
            make: (info, options) => new Client(info, {
                ...options,
                versionNegotiation: { mode: modern ? { pin: '2026-07-28' } : 'legacy' },
            }),
            Transport: StreamableHTTPClientTransport,
            method: name => name,
            callTool: (client, params, options) => client.callTool(params, options),
        };
    }
    const { Client } = await import('@modelcontextprotocol/sdk/client/index.js');
    const { StreamableHTTPClientTransport } =
        await import('@modelcontextprotocol/sdk/client/streamableHttp.js');
    const types = await import('@modelcontextprotocol/sdk/types.js');
    const schemas = {
        'elicitation/create': types.ElicitRequestSchema,
        'sampling/createMessage': types.CreateMessageRequestSchema,
        'roots/list': types.ListRootsRequestSchema,
        'notifications/message': types.LoggingMessageNotificationSchema,
        'notifications/resources/updated': types.ResourceUpdatedNotificationSchema,
        'notifications/tools/list_changed': types.ToolListChangedNotificationSchema,
    };
    return {
        make: (info, options) => new Client(info, options),
        Transport: StreamableHTTPClientTransport,
        method: name => schemas[name],
        callTool: (client, params, options) => client.callTool(params, undefined, options),
    };
}

/** Waits until a condition holds, at most until a deadline. */
export async function eventually(what, holds) {
    const deadline = Date.now() + PATIENCE;
    while (!holds()) {
        assert.ok(Date.now() < deadline, `waited too long for ${what}`);
        await new Promise(resolve => setTimeout(resolve, 10));
    }
}

/** Runs the steps of a tour one after the other, and ends the process with the outcome. */
export async function take(steps) {
    for (const [name, step] of Object.entries(steps)) {
        try {
            await step();
            console.log(`ok    ${name}`);
        } catch (error) {
            console.log(`WRONG ${name}:`, error);
            process.exit(1);
        }
    }
    process.exit(0);
}
