// A tour of the servers with an official TypeScript client.
//
//     node tour.mjs sdk|client legacy|modern EXAMPLE_URL LARDER_URL

import assert from 'node:assert/strict';
import { eventually, load, take } from './clients.mjs';

const [pkg, era, exampleUrl, larderUrl] = process.argv.slice(2);
const modern = era === 'modern';
const PATIENCE = 20_000;

const { make, Transport, method, callTool } = await load(pkg, modern);

async function connected(url) {
    const heard = { logs: [], updated: [], tools: 0, asked: [] };
    const client = make({ name: 'interop', version: '1' }, {
        capabilities: { elicitation: { form: {} }, sampling: {}, roots: {} },
    });
    client.setRequestHandler(method('elicitation/create'), request => {
        heard.asked.push(request.params.message);
        const values = { username: 'ana', email: 'ana@example.com', name: 'Ana', color: 'blue' };
        const wanted = Object.keys(request.params.requestedSchema.properties);
        const content = Object.fromEntries(wanted.map(key => [key, values[key]]));
        return { action: 'accept', content };
    });
    client.setRequestHandler(method('sampling/createMessage'), () => ({
        role: 'assistant', model: 'm', content: { type: 'text', text: 'from the model' },
    }));
    client.setRequestHandler(method('roots/list'), () => ({ roots: [{ uri: 'file:///a' }] }));
    client.setNotificationHandler(method('notifications/message'), n => heard.logs.push(n.params.data));
    client.setNotificationHandler(method('notifications/resources/updated'), n => heard.updated.push(n.params.uri));
    client.setNotificationHandler(method('notifications/tools/list_changed'), () => { heard.tools += 1; });
    const transport = new Transport(new URL(url), {
        reconnectionOptions: {
            initialReconnectionDelay: 100, maxReconnectionDelay: 1000,
            reconnectionDelayGrowFactor: 1.5, maxRetries: 10,
        },
    });
    await client.connect(transport, { timeout: PATIENCE });
    return { client, heard, transport };
}

const example = await connected(exampleUrl);
const larder = await connected(larderUrl);
const text = result => {
    assert.ok(!result.isError, JSON.stringify(result));
    return result.content[0].text;
};
const call = async (at, name, args = {}, options = {}) =>
    text(await callTool(at.client, { name, arguments: args }, { timeout: PATIENCE, ...options }));

const steps = {
    async connect() {
        assert.equal(example.client.getServerVersion().name, 'larder-conformance');
        const expected = modern ? '2026-07-28' : '2025-11-25';
        const { client, transport } = example;
        const version = client.getNegotiatedProtocolVersion?.() ?? transport.protocolVersion;
        assert.equal(version, expected);
    },
    async list() {
        const { tools } = await example.client.listTools();
        assert.ok(tools.some(tool => tool.name === 'test_simple_text'));
        const { resources } = await example.client.listResources();
        assert.ok(resources.some(resource => resource.uri === 'test://static-text'));
        const { resourceTemplates } = await example.client.listResourceTemplates();
        assert.equal(resourceTemplates[0].uriTemplate, 'test://template/{id}/data');
    },
    async call() {
        assert.equal(
            await call(example, 'test_simple_text'), 'This is a simple text response for testing.');
        const failed = await callTool(example.client, { name: 'test_error_handling', arguments: {} });
        assert.equal(failed.isError, true);
        await assert.rejects(callTool(example.client, { name: 'nope', arguments: {} }), { code: -32602 });
    },
    async 'mirrored header'() {
        // The tools were listed, so a modern client knows which arguments to mirror.
        assert.equal(await call(example, 'test_custom_header', { value: 'Zürich' }), 'Zürich');
    },
    async progress() {
        const told = [];
        await call(example, 'test_tool_with_progress', {}, { onprogress: p => told.push(p.progress) });
        assert.deepEqual(told, [0, 50, 100]);
    },
    async logging() {
        if (modern) {
            const _meta = { 'io.modelcontextprotocol/logLevel': 'info' };
            text(await callTool(example.client, { name: 'test_tool_with_logging', arguments: {}, _meta }));
        } else {
            await example.client.setLoggingLevel('info');
            await call(example, 'test_tool_with_logging');
        }
        await eventually('three log messages', () => example.heard.logs.length === 3);
    },
    async elicit() {
        const said = await call(example, 'test_elicitation', { message: 'Who are you?' });
        assert.equal(said, 'User response: accept ana ana@example.com');
        assert.deepEqual(example.heard.asked, ['Who are you?']);
        const rounds = await call(example, 'test_input_required_result_multi_round');
        assert.equal(rounds, 'Hello, Ana, who likes blue!');
    },
    async sample() {
        const said = await call(example, 'test_sampling', { prompt: 'Say something.' });
        assert.equal(said, 'LLM response: from the model');
    },
    async roots() {
        const said = await call(example, 'test_input_required_result_list_roots');
        assert.equal(said, 'There are 1 roots.');
    },
    async prompts() {
        const { prompts } = await example.client.listPrompts();
        assert.ok(prompts.some(prompt => prompt.name === 'test_simple_prompt'));
        const params = { name: 'test_prompt_with_arguments', arguments: { arg1: '{a}', arg2: 'b' } };
        const got = await example.client.getPrompt(params);
        assert.equal(got.messages[0].content.text, "Prompt with arguments: arg1='{a}', arg2='b'");
        await assert.rejects(
            example.client.getPrompt({ name: 'test_prompt_with_arguments' }), { code: -32602 });
    },
    async completion() {
        const { completion } = await example.client.complete({
            ref: { type: 'ref/prompt', name: 'test_prompt_with_arguments' },
            argument: { name: 'arg1', value: 'test' },
        });
        assert.deepEqual(completion.values, ['test', 'testValue1', 'testing']);
    },
    async 'list changed'() {
        let subscription;
        if (modern) {
            subscription = await example.client.listen({ toolsListChanged: true });
            assert.equal(subscription.honoredFilter.toolsListChanged, true);
        }
        await call(example, 'test_trigger_tool_change');
        await eventually('a changed list', () => example.heard.tools > 0);
        await subscription?.close();
    },
    async subscribe() {
        const uri = await call(larder, 'create_resource', { text: 'one' });
        let subscription;
        if (modern) {
            subscription = await larder.client.listen({ resourceSubscriptions: [uri] });
        } else {
            await larder.client.subscribeResource({ uri });
        }
        await call(larder, 'update_resource', { uri, text: 'two' });
        await eventually('an update', () => larder.heard.updated.includes(uri));
        const { contents } = await larder.client.readResource({ uri });
        assert.equal(contents[0].text, 'two');
        await subscription?.close();
        if (!modern) await larder.client.unsubscribeResource({ uri });
    },
    async 'large resource'() {
        const line = n => `${n} événement «😀» "quoted"\t\\\n`;
        const large = Array.from({ length: 30_000 }, (_, n) => line(n)).join('');
        const uri = await call(larder, 'create_resource', { text: large });
        const { contents } = await larder.client.readResource({ uri });
        assert.equal(contents[0].text, large);
        const part = await call(larder, 'read_resource', { uri, offset: 29_999, limit: 1 });
        assert.match(part, /29999 événement/);
    },
    async 'missing resource'() {
        // The newer client maps the older error code to the newer one.
        const code = pkg === 'client' ? -32602 : -32002;
        await assert.rejects(example.client.readResource({ uri: 'test://nope' }), { code });
    },
    async resume() {
        // In a session, the server closes the connection during this call; in the modern era it does not.
        assert.equal(await call(example, 'test_reconnection'), 'The client came back for this.');
    },
    async cancel() {
        const abort = new AbortController();
        const slow = callTool(
            example.client, { name: 'slow_compute', arguments: { seconds: 60 } },
            { signal: abort.signal, timeout: PATIENCE });
        setTimeout(() => abort.abort('bored'), 300);
        await assert.rejects(slow);
        await call(example, 'test_simple_text');
    },
    async tasks() {
        // These clients do not declare tasks, so they get the result itself.
        const said = await call(example, 'slow_compute', { seconds: 0.1, label: 'it' });
        assert.equal(said, 'Computed it in 0.1 s.');
    },
    async close() {
        for (const { client, transport } of [example, larder]) {
            await transport.terminateSession?.();
            await client.close();
        }
    },
};

await take(steps);
