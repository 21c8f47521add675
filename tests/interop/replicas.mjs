// One of the official TypeScript clients in sessions that several servers serve, with its
// streams cut off; and in the middle, if not just "replicas" are asked for, trouble with a server
// or with Redis.
//
//     node replicas.mjs sdk|client replicas|killed|restarted|emptied URL

import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { eventually, load, take } from './clients.mjs';

const [pkg, trouble, url] = process.argv.slice(2);
const PATIENCE = 60_000;
const SESSIONS = 2;
// In each session: calls one after the other, so many at once, and those that the trouble meets.
const CALLS = 20, AT_ONCE = 4, LONG = 5;
// So soon the calls of a killed server end.
const SOON = 15_000;

const { make, Transport, method, callTool } = await load(pkg, false);

/** What an HTTP response was that an error is about. */
const status = error => error.status ?? error.code;

/** Whether whoever is told so may well try again. The proxy has no words for a server that dies. */
const passes = error => trouble !== 'replicas' && status(error) !== 404
    && (error.message.includes('again') || status(error) === 502);

async function patiently(attempt, failed = () => {}) {
    for (;;) {
        try {
            return await attempt();
        } catch (error) {
            if (!passes(error)) throw error;
            failed(error);
        }
        await sleep(100);
    }
}

async function begin() {
    const client = make({ name: 'replicas', version: '1' }, { capabilities: { elicitation: { form: {} } } });
    const session = { client, updated: [], gone: false, ending: false };
    client.setRequestHandler(method('elicitation/create'), () => ({ action: 'accept', content: { name: 'Ana' } }));
    client.setNotificationHandler(method('notifications/resources/updated'), n => session.updated.push(n.params.uri));
    // The calls whose streams cannot be resumed are told nothing else.
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

// Promises, so that a session begins anew once, whoever is the first to be told that it is gone.
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
            assert.equal(trouble, 'emptied', 'the session is gone');
        }
        if (sessions[at] === begun) {
            renewed += 1;
            sessions[at] = patiently(begin);
        }
    }
}

const inEach = work => Promise.all(sessions.map((_, at) => inSession(at, work)));

async function call({ client }, name, args, options = {}) {
    const result = await callTool(client, { name, arguments: args }, { timeout: PATIENCE, ...options });
    assert.ok(!result.isError, JSON.stringify(result));
    return result.content[0].text;
}

/** Whatever becomes of the call: of what is heard, nothing is missing, twice, or of another. */
async function count(session, to, every, heard = () => {}) {
    const told = [];
    const onprogress = ({ progress, total }) => {
        told.push([progress, total]);
        heard();
    };
    try {
        assert.equal(await call(session, 'count', { to, every }, { onprogress }), `counted to ${to}`);
        assert.equal(told.length, to);
    } finally {
        assert.deepEqual(told, told.map((_, n) => [n + 1, to]), `counting to ${to}`);
    }
}

/** Calls that count, each to a number of its own. */
async function calls(at) {
    const numbers = Array.from({ length: CALLS }, (_, n) => n);
    await Promise.all(Array.from({ length: AT_ONCE }, async () => {
        while (numbers.length > 0) {
            const number = numbers.shift();
            const to = 4 + SESSIONS * number + at;
            await inSession(at, session => patiently(() => count(session, to, 5 * (number % 3))));
        }
    }));
}

const callInEach = () => Promise.all(sessions.map((_, at) => calls(at)));

async function meetTrouble() {
    const heard = new Set(), ended = [];
    let since;
    const long = Array.from({ length: SESSIONS * LONG }, (_, n) => inSession(n % SESSIONS, session => patiently(
        () => count(session, 60 + n, 150, () => heard.add(n)),
        error => ended.push({ error, after: Date.now() - since }),
    )));
    // Whatever fails meanwhile is found below.
    long.forEach(one => one.catch(() => {}));
    await eventually('all calls to be under way', () => heard.size === long.length);
    since = Date.now();
    const asked = fetch(new URL('/trouble', url), { method: 'POST' });
    await Promise.all([callInEach(), ...long]);
    assert.equal((await asked).status, 204);
    assert.equal(renewed, trouble === 'emptied' ? SESSIONS : 0);
    if (trouble === 'killed') {
        assert.ok(ended.length > 0 && ended.length < long.length, `${ended.length} of ${long.length} ended`);
    }
    for (const { error, after } of ended) {
        assert.equal(trouble, 'killed', error);
        assert.equal(error.code, -32603, error);
        assert.ok(after < SOON, `${after} ms: ${error}`);
    }
}

const steps = {
    async connect() {
        for (let n = 0; n < SESSIONS; n += 1) sessions.push(begin());
        await Promise.all(sessions);
    },
    async [trouble]() {
        await (trouble === 'replicas' ? callInEach() : meetTrouble());
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
            // Its stream may be cut, and come back to a session that is ended, before the DELETE is answered.
            session.ending = true;
            await session.transport.terminateSession();
            await session.client.close();
        });
    },
};

await take(steps);
