// The same requests to server-everything directly and through Larder, with an official TypeScript client.
//
//     node everything.mjs sdk|client legacy|modern LARDER_URL SCHEMAS_URL SERVER_COMMAND…
//
// SCHEMAS_URL is Larder in front of a server whose schemas clients refuse.
//
// By design these differ: Larder adds tools and templates of its own; an output schema also allows a
// preview; a tool that must run as a task is called like any other; what the process inherits of
// the environment; the name, version and instructions of the server. A tool that does not exist is
// an error of the protocol.

import assert from 'node:assert/strict';
import { eventually, load, take } from './clients.mjs';

const [pkg, era, larderUrl, schemasUrl, ...command] = process.argv.slice(2);
const PATIENCE = 20_000;
const { make, Transport, method, callTool } = await load(pkg, era === 'modern');
const direct = await load(pkg, false);
const { StdioClientTransport } = await import(
    pkg === 'sdk' ? '@modelcontextprotocol/sdk/client/stdio.js' : '@modelcontextprotocol/client/stdio');
// Without a session the server asks nothing.
const capabilities = era === 'modern' ? {} : { elicitation: { form: {} }, sampling: {}, roots: {} };

async function connected(client, transport) {
    const heard = { asked: [], updated: [] };
    if (capabilities.roots) {
        client.setRequestHandler(method('elicitation/create'), request => {
            heard.asked.push(request.params);
            return { action: 'accept', content: { name: 'Ana', check: true } };
        });
        client.setRequestHandler(method('sampling/createMessage'), request => {
            heard.asked.push(request.params);
            return { role: 'assistant', model: 'm', content: { type: 'text', text: 'from the model' } };
        });
        client.setRequestHandler(method('roots/list'), () => ({ roots: [{ uri: 'file:///a', name: 'a' }] }));
    }
    client.setNotificationHandler(method('notifications/resources/updated'), n => heard.updated.push(n.params.uri));
    await client.connect(transport, { timeout: PATIENCE });
    // A client validates the results of tools that it has listed.
    await client.listTools();
    return { client, transport, heard };
}

const info = { name: 'interop', version: '1' };
const server = await connected(
    direct.make(info, { capabilities }),
    new StdioClientTransport({ command: command[0], args: command.slice(1), stderr: 'ignore' }));
const larder = await connected(make(info, { capabilities }), new Transport(new URL(larderUrl)));

/** What both have in common: no time of day, and nothing of the protocol's era. */
function comparable(value) {
    const text = JSON.stringify(value, (key, item) => {
        const skipped = ['resultType', 'ttlMs', 'cacheScope', 'io.modelcontextprotocol/serverInfo'];
        if (skipped.includes(key)) return undefined;
        // A blob may be a text that has the time of day.
        if (key === 'blob') return Buffer.from(item, 'base64').toString('latin1');
        return key === '_meta' && !Object.keys(item).some(name => !skipped.includes(name)) ? undefined : item;
    });
    return JSON.parse(text.replace(/\d{1,2}:\d\d:\d\d( [AP]M)?/g, 'now'));
}

async function outcome(request, at) {
    try {
        return comparable(await request(at));
    } catch (error) {
        return { code: error.code, message: error.message };
    }
}

/** Checks that both do the same, and returns it. */
async function same(request) {
    const [expected, got] = [await outcome(request, server), await outcome(request, larder)];
    assert.deepEqual(got, expected);
    return got;
}

const call = (name, args = {}, options = {}) => ({ client }) =>
    callTool(client, { name, arguments: args }, { timeout: PATIENCE, ...options });
const read = uri => ({ client }) => client.readResource({ uri });
// An input schema without Larder's own argument, which it adds to each tool.
const withoutOwn = ({ properties: { _larder, ...properties } = {}, ...schema }) => ({ ...schema, properties });
// Larder's own template, for parts of any resource.
const own = '{+uri}{?lines,bytes,revision}';

const steps = {
    async tools() {
        const list = async at => {
            const { tools } = await at.client.listTools();
            return tools.map(({ outputSchema, execution, ...tool }) =>
                ({ ...tool, inputSchema: withoutOwn(tool.inputSchema), structured: !!outputSchema }));
        };
        const [expected, got] = [await list(server), await list(larder)];
        const names = new Set(expected.map(tool => tool.name));
        assert.deepEqual(comparable(got.filter(tool => names.has(tool.name))), comparable(expected));
        assert.ok(expected.length > 10 && got.some(tool => tool.name === 'search_resource'));
    },
    async prompts() {
        const { prompts } = await same(({ client }) => client.listPrompts());
        assert.ok(prompts.length >= 4);
    },
    async resources() {
        const { resources } = await same(({ client }) => client.listResources());
        assert.ok(resources.length > 5);
        for (const { uri } of resources) await same(read(uri));
        await same(async ({ client }) => {
            const { resourceTemplates } = await client.listResourceTemplates();
            return resourceTemplates.filter(template => template.uriTemplate !== own);
        });
        await same(read('demo://resource/dynamic/text/7'));
        await same(read('demo://resource/dynamic/blob/7'));
    },
    async 'calls of tools'() {
        const calls = [
            ['echo', { message: 'Zürich "😀"' }],
            ['get-sum', { a: 2, b: 40 }],
            ['get-tiny-image'],
            ['get-resource-links', { count: 5 }],
            ['get-resource-reference', { resourceType: 'Text', resourceId: 3 }],
            ['get-resource-reference', { resourceType: 'Blob', resourceId: 3 }],
            ...['Chicago', 'New York', 'Los Angeles'].map(location => ['get-structured-content', { location }]),
            ...['error', 'success', 'debug'].flatMap(messageType => [true, false].map(
                includeImage => ['get-annotated-message', { messageType, includeImage }])),
            // What the server says about wrong arguments.
            ['get-sum', { a: 'x' }],
            ['get-resource-reference', { resourceType: 'Text', resourceId: -1 }],
            ['gzip-file-as-resource', { name: 'a.gz', data: 'data:text/plain,abc', outputType: 'resource' }],
            ['gzip-file-as-resource', { name: 'a.gz', data: 'data:text/plain,abc' }],
        ];
        for (const [name, args] of calls) {
            const { content } = await same(call(name, args));
            assert.ok(content.length > 0, name);
        }
        // What a tool has added in this session.
        const { contents } = await same(read('demo://resource/session/a.gz'));
        assert.ok(contents[0].blob);
    },
    async progress() {
        const told = async at => {
            const steps = [];
            const options = { onprogress: ({ progress, total }) => steps.push([progress, total]) };
            await call('trigger-long-running-operation', { duration: 0.2, steps: 4 }, options)(at);
            return steps;
        };
        const all = [[1, 4], [2, 4], [3, 4], [4, 4]];
        assert.deepEqual(await told(larder), all);
        // The client drops what comes together with the result, as over standard input and output.
        assert.deepEqual((await told(server)).slice(0, 3), all.slice(0, 3));
    },
    async cancel() {
        await same(async at => {
            const abort = new AbortController();
            const slow = call('trigger-long-running-operation', { duration: 60, steps: 1 }, { signal: abort.signal })(at);
            setTimeout(() => abort.abort('bored'), 100);
            await assert.rejects(slow);
            return call('echo', { message: 'still there' })(at);
        });
    },
    async 'prompts with arguments'() {
        for (const [name, args] of [
            ['simple-prompt', undefined],
            ['args-prompt', { city: 'Bern', state: 'BE' }],
            ['completable-prompt', { department: 'Sales', name: 'David' }],
            ['resource-prompt', { resourceType: 'Text', resourceId: '2' }],
        ]) {
            const { messages } = await same(({ client }) => client.getPrompt({ name, arguments: args }));
            assert.ok(messages.length > 0, name);
        }
        const missing = await outcome(({ client }) => client.getPrompt({ name: 'args-prompt' }), larder);
        assert.equal(missing.code, -32602);
    },
    async completions() {
        const prompt = { type: 'ref/prompt', name: 'completable-prompt' };
        const template = { type: 'ref/resource', uri: 'demo://resource/dynamic/text/{resourceId}' };
        for (const params of [
            { ref: prompt, argument: { name: 'department', value: 'S' } },
            { ref: prompt, argument: { name: 'name', value: '' }, context: { arguments: { department: 'Sales' } } },
            { ref: template, argument: { name: 'resourceId', value: '4' } },
        ]) {
            const { completion } = await same(({ client }) => client.complete(params));
            assert.ok(completion.values.length > 0, JSON.stringify(params));
        }
    },
    async errors() {
        const unknown = await outcome(call('nope'), larder);
        assert.equal(unknown.code, -32602);
        const missing = await outcome(read('demo://nope'), larder);
        const direct = await outcome(read('demo://nope'), server);
        assert.ok([-32002, -32602].includes(missing.code) && [-32002, -32602].includes(direct.code), JSON.stringify([missing, direct]));
    },
    async questions() {
        if (era === 'modern') return;
        for (const [name, args] of [
            ['trigger-elicitation-request'],
            ['trigger-sampling-request', { prompt: 'Say something.', maxTokens: 10 }],
            ['get-roots-list'],
        ]) {
            const { isError, content } = await same(call(name, args));
            assert.ok(!isError && content.length > 0, name);
        }
        assert.equal(server.heard.asked.length, 2);
        assert.deepEqual(larder.heard.asked.map(comparable), server.heard.asked.map(comparable));
    },
    async subscribe() {
        const uri = 'demo://resource/dynamic/text/1';
        let subscription;
        if (era === 'modern') {
            subscription = await larder.client.listen({ resourceSubscriptions: [uri] });
        } else {
            await larder.client.subscribeResource({ uri });
        }
        await server.client.subscribeResource({ uri });
        await same(async at => {
            const begun = await call('toggle-subscriber-updates')(at);
            await eventually('an update', () => at.heard.updated.includes(uri));
            await call('toggle-subscriber-updates')(at);
            return begun.content[0].text.replace(/session \S+/, '');
        });
        await subscription?.close();
        if (era !== 'modern') await same(({ client }) => client.unsubscribeResource({ uri }));
    },
    async 'a task'() {
        const params = { name: 'simulate-research-query', arguments: { topic: 'tests' } };
        const { content } = await callTool(larder.client, params, { timeout: PATIENCE });
        assert.match(content[0].text, /^# Research Report: tests/);
    },
    async 'schemas that clients refuse'() {
        const schemas = await connected(make(info, { capabilities }), new Transport(new URL(schemasUrl)));
        const { tools } = await schemas.client.listTools();
        for (const name of ['tuple', 'broken', 'fine']) {
            assert.ok(tools.some(tool => tool.name === name), name);
        }
        const small = await call('tuple')(schemas);
        assert.deepEqual(small.structuredContent, { pair: ['a', 1] });
        const stored = await call('tuple', { fill: 100_000 })(schemas);
        assert.equal(stored.structuredContent.spilled.complete, false);
        const broken = await call('broken')(schemas);
        assert.equal(broken.content[0].text, 'no structure');
        await schemas.client.close();
    },
    async close() {
        for (const { client, transport } of [server, larder]) {
            await transport.terminateSession?.();
            await client.close();
        }
    },
};

await take(steps);
