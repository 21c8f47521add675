// An official TypeScript client in sessions that several instances serve, while its streams are cut
// off. With any kind but "instances", a fault of an instance or of Redis occurs meanwhile.
//
//     node instances.mjs sdk|client instances|killed|restarted|emptied URL

import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { eventually, load, take } from './clients.mjs';

const [pkg, fault, url] = process.argv.slice(2);
const PATIENCE = 60_000;
const SESSIONS = 2;
// In each session: the number of calls, how many of them at once, and the long calls that run while
// the fault occurs.
const CALLS = 20, AT_ONCE = 4, LONG = 5;
// How long the calls of a killed instance may take to end, in milliseconds.
const SOON = 15_000;

const { make, Transport, method, callTool } = await load(pkg, false);

/** The HTTP status of an error. */
const status = error => error.status ?? error.code;

/** Whether the error is expected and the call can be repeated. The proxy answers 502 for a killed instance. */
const isTransient = error => fault !== 'instances' && status(error) !== 404
    && (error.message.includes('again') || status(error) === 502);

/** Repeats an attempt after transient errors. */
async function retrying(attempt, failed = () => {}) {
    for (;;) {
        try {
            return await attempt();
        } catch (error) {
            if (!isTransient(error)) throw error;
            failed(error);
        }
        await sleep(100);
    }
}

async function begin() {
    const client = make({ name: 'instances', version: '1' }, { capabilities: { elicitation: { form: {} } } });
    const session = { client, updated: [], gone: false, ending: false };
    client.setRequestHandler(method('elicitation/create'), () => ({ action: 'accept', content: { name: 'Ana' } }));
    client.setNotificationHandler(method('notifications/resources/updated'), n => session.updated.push(n.params.uri));
    // Calls whose streams cannot be resumed get no other error.
    client.onerror = error => {
        if (status(error) === 404 && !session.gone && !session.ending) {
            session.gone = true;
            client.close();
        }
    };
    session.transport = new Transport(new URL(url), {
        reconnectionOptions: {
            initialReconnectionDelay: 100, maxReconnectionDelay: 1000,
            reconnectionDelayGrowFactor: 1.5, maxRetries: 10,
        },
    });
    await client.connect(session.transport, { timeout: PATIENCE });
    return session;
}

// Promises, so that a lost session is replaced once, although several calls notice the loss.
const sessions = [];
let renewed = 0;

async function inSession(at, work) {
    for (;;) {
        const begun = sessions[at];
        const session = await begun;
        try {
            return await work(session);
        } catch (error) {
            if (!session.gone) throw error;
            assert.equal(fault, 'emptied', 'the session is lost');
        }
        if (sessions[at] === begun) {
            renewed += 1;
            sessions[at] = retrying(begin);
        }
    }
}

const inEach = work => Promise.all(sessions.map((_, at) => inSession(at, work)));

async function call({ client }, name, args, options = {}) {
    const result = await callTool(client, { name, arguments: args }, { timeout: PATIENCE, ...options });
    assert.ok(!result.isError, JSON.stringify(result));
    return result.content[0].text;
}

/** Counts, and checks that progress is complete, in order, and that of this call, however the call ends. */
async function count(session, to, every, onReport = () => {}) {
    const reported = [];
    const onprogress = ({ progress, total }) => {
        reported.push([progress, total]);
        onReport();
    };
    try {
        assert.equal(await call(session, 'count', { to, every }, { onprogress }), `counted to ${to}`);
        assert.equal(reported.length, to);
    } finally {
        assert.deepEqual(reported, reported.map((_, n) => [n + 1, to]), `counting to ${to}`);
    }
}

/** The calls of one session, each of which counts to another number. */
async function calls(at) {
    const numbers = Array.from({ length: CALLS }, (_, n) => n);
    await Promise.all(Array.from({ length: AT_ONCE }, async () => {
        while (numbers.length > 0) {
            const number = numbers.shift();
            const to = 4 + SESSIONS * number + at;
            await inSession(at, session => retrying(() => count(session, to, 5 * (number % 3))));
        }
    }));
}

const callInEach = () => Promise.all(sessions.map((_, at) => calls(at)));

async function callDuringFault() {
    const reporting = new Set(), failed = [];
    let since;
    const long = Array.from({ length: SESSIONS * LONG }, (_, n) => inSession(n % SESSIONS, session => retrying(
        () => count(session, 60 + n, 150, () => reporting.add(n)),
        error => failed.push({ error, after: Date.now() - since }),
    )));
    // Failures are awaited below.
    long.forEach(one => one.catch(() => {}));
    await eventually('all calls to run', () => reporting.size === long.length);
    since = Date.now();
    const requested = fetch(new URL('/fault', url), { method: 'POST' });
    await Promise.all([callInEach(), ...long]);
    assert.equal((await requested).status, 204);
    assert.equal(renewed, fault === 'emptied' ? SESSIONS : 0);
    if (fault === 'killed') {
        assert.ok(failed.length > 0 && failed.length < long.length, `${failed.length} of ${long.length} failed`);
    }
    for (const { error, after } of failed) {
        assert.equal(fault, 'killed', error);
        assert.equal(error.code, -32603, error);
        assert.ok(after < SOON, `${after} ms: ${error}`);
    }
}

const steps = {
    async connect() {
        for (let n = 0; n < SESSIONS; n += 1) sessions.push(begin());
        await Promise.all(sessions);
    },
    async [fault]() {
        await (fault === 'instances' ? callInEach() : callDuringFault());
    },
    async questions() {
        await inEach(async session => {
            for (let n = 0; n < 3; n += 1) assert.equal(await call(session, 'greet', {}), 'Hello, Ana.');
        });
    },
    async subscribe() {
        await inEach(async session => {
            const { client, updated } = session;
            const uri = await call(session, 'create_resource', { text: 'one' });
            await client.subscribeResource({ uri });
            await call(session, 'update_resource', { uri, text: 'two' });
            await eventually('an update', () => updated.includes(uri));
            assert.deepEqual(updated, [uri]);
            const { contents } = await client.readResource({ uri });
            assert.equal(contents[0].text, 'two');
        });
    },
    async close() {
        await inEach(async session => {
            // A stream that is cut now may be resumed in the deleted session, before the DELETE is answered.
            session.ending = true;
            await session.transport.terminateSession();
            await session.client.close();
        });
    },
};

await take(steps);
