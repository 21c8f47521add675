// One of the official TypeScript clients in a session that several servers serve, with its
// streams cut off.
//
//     node replicas.mjs sdk|client URL

import assert from 'node:assert/strict';
import { eventually, load, take } from './clients.mjs';

const [pkg, url] = process.argv.slice(2);
const PATIENCE = 60_000;
const CALLS = 40, AT_ONCE = 8, TO = 6;

const { make, Transport, method, callTool } = await load(pkg, false);
const updated = [];
const client = make({ name: 'replicas', version: '1' }, { capabilities: { elicitation: { form: {} } } });
client.setRequestHandler(method('elicitation/create'), () => ({ action: 'accept', content: { name: 'Ana' } }));
client.setNotificationHandler(method('notifications/resources/updated'), n => updated.push(n.params.uri));
const transport = new Transport(new URL(url), {
    reconnectionOptions: {
        initialReconnectionDelay: 100, maxReconnectionDelay: 1000,
        reconnectionDelayGrowFactor: 1.5, maxRetries: 10,
    },
});

const call = async (name, args, options = {}) => {
    const result = await callTool(client, { name, arguments: args }, { timeout: PATIENCE, ...options });
    assert.ok(!result.isError, JSON.stringify(result));
    return result.content[0].text;
};

async function count(number) {
    const told = [];
    const said = await call('count', { to: TO, every: 5 * (number % 4) }, {
        onprogress: progress => told.push(progress.progress),
    });
    assert.equal(said, `counted to ${TO}`);
    assert.deepEqual(told, Array.from({ length: TO }, (_, n) => n + 1), `call ${number}`);
}

const steps = {
    async connect() {
        await client.connect(transport, { timeout: PATIENCE });
    },
    async calls() {
        const numbers = Array.from({ length: CALLS }, (_, n) => n);
        await Promise.all(Array.from({ length: AT_ONCE }, async () => {
            while (numbers.length > 0) await count(numbers.shift());
        }));
    },
    async questions() {
        for (let n = 0; n < 5; n += 1) assert.equal(await call('greet', {}), 'Hello, Ana.');
    },
    async subscribe() {
        const uri = await call('create_resource', { text: 'one' });
        await client.subscribeResource({ uri });
        await call('update_resource', { uri, text: 'two' });
        await eventually('an update', () => updated.includes(uri));
        assert.deepEqual(updated, [uri]);
        const { contents } = await client.readResource({ uri });
        assert.equal(contents[0].text, 'two');
    },
    async close() {
        await transport.terminateSession();
        await client.close();
    },
};

await take(steps);
