// Large results of other servers, read with an official TypeScript client through Larder.
//
//     node large.mjs sdk|client legacy|modern FILES_URL OTHER_URL FOLDER
//
// FILES_URL is Larder in front of the filesystem server, which may use FOLDER; OTHER_URL is Larder in
// front of another server, which tells Larder's own tools.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { load, take } from './clients.mjs';

const [pkg, era, filesUrl, otherUrl, folder] = process.argv.slice(2);
const PATIENCE = 60_000;
const { make, Transport, callTool } = await load(pkg, era === 'modern');

async function connected(url) {
    const client = make({ name: 'interop', version: '1' }, { capabilities: {} });
    await client.connect(new Transport(new URL(url)), { timeout: PATIENCE });
    // A client validates the results of tools that it has listed.
    const { tools } = await client.listTools();
    return { client, tools: new Map(tools.map(tool => [tool.name, tool])) };
}

const files = await connected(filesUrl);
const other = await connected(otherUrl);
const path = name => join(folder, name);
const sha256 = text => createHash('sha256').update(text).digest('hex');
const call = async (name, args) => {
    const result = await callTool(files.client, { name, arguments: args }, { timeout: PATIENCE });
    assert.ok(!result.isError, JSON.stringify(result).slice(0, 1000));
    return result;
};
const text = result => result.content[0].text;

/** The URI under which a previewed result is stored. */
function stored(result) {
    assert.match(text(result), /^PREVIEW ONLY/);
    assert.equal(result.structuredContent.spilled.complete, false);
    assert.ok(JSON.stringify(result).length < 40_000);
    return result.content.findLast(block => block.type === 'resource_link').uri;
}

const content = async uri => (await files.client.readResource({ uri }, { timeout: PATIENCE })).contents[0].text;

const line = n => {
    const what = n === 90_000 ? 'ERROR the disk is full' : 'INFO all is well';
    return `2026-11-22T12:00:00Z host service[${String(n).padStart(8, '0')}]: ${what} and so it goes on\n`;
};
const log = Array.from({ length: 120_000 }, (_, n) => line(n)).join('');
const rows = Array.from({ length: 50_000 }, (_, id) => ({
    id, name: `Ünïcode «${id}» "quoted" \\ 😀`, value: id / 7, tags: ['a', 'b', null, true],
}));
const json = JSON.stringify(rows, null, 1);
let uri;

const steps = {
    async 'a log of 9 MB is previewed'() {
        assert.ok(Buffer.byteLength(log) > 9_000_000);
        writeFileSync(path('app.log'), log);
        uri = stored(await call('read_text_file', { path: path('app.log') }));
    },
    async 'and searched'() {
        const found = text(await call('search_resource', { uri, query: 'disk is full' }));
        assert.match(found, /service\[00090000\]: ERROR the disk is full/);
    },
    async 'and read in part'() {
        assert.match(text(await call('read_resource', { uri, offset: 90_000, limit: 1 })), /ERROR the disk is full/);
    },
    async 'and written elsewhere by reference'() {
        const range = { path: path('part.log'), content: `{{${uri}?lines=90001-90002}}` };
        assert.ok(JSON.stringify(range).length < 1000);
        await call('write_file', range);
        assert.equal(readFileSync(path('part.log'), 'utf8'), line(90_000) + line(90_001));
        // The limit of a call's references is 8 MiB.
        const lines = { path: path('most.log'), content: `{{${uri}?lines=1-100000}}` };
        await call('write_file', lines);
        const most = Array.from({ length: 100_000 }, (_, n) => line(n)).join('');
        assert.equal(sha256(readFileSync(path('most.log'))), sha256(most));
    },
    async 'JSON of 5 MB is stored as it is'() {
        assert.ok(Buffer.byteLength(json) > 5_300_000, Buffer.byteLength(json));
        writeFileSync(path('rows.json'), json);
        const rowsUri = stored(await call('read_text_file', { path: path('rows.json') }));
        assert.equal(sha256(await content(rowsUri)), sha256(json));
    },
    async 'and written elsewhere by reference, whole and in part'() {
        const rowsUri = stored(await call('read_text_file', { path: path('rows.json') }));
        await call('write_file', { path: path('copy.json'), content: `{{${rowsUri}}}` });
        assert.equal(sha256(readFileSync(path('copy.json'))), sha256(json));
        const name = { $larder: rowsUri, select: '/49999/name' };
        await call('write_file', { path: path('name.txt'), content: name });
        assert.equal(readFileSync(path('name.txt'), 'utf8'), rows[49_999].name);
    },
    async 'every tool has valid results, small and stored'() {
        writeFileSync(path('small.txt'), 'one\ntwo\n');
        writeFileSync(path('large.txt'), 'line\n'.repeat(20_000));
        const wide = word => `${`${word} `.repeat(50)}\n`.repeat(300);
        writeFileSync(path('wide.txt'), wide('old'));
        writeFileSync(path('image.png'), Buffer.from([137, 80, 78, 71, 13, 10, 26, 10, 0, 1, 2]));
        writeFileSync(path('large.png'), Buffer.alloc(300_000, 7));
        mkdirSync(path('many'));
        for (let n = 0; n < 1500; n += 1) {
            writeFileSync(path(`many/a file with a rather long name ${String(n).padStart(6, '0')}`), 'x');
        }
        const calls = [
            ['read_file', { path: path('small.txt') }, 'small'],
            ['read_file', { path: path('large.txt') }, 'stored'],
            ['read_text_file', { path: path('small.txt') }, 'small'],
            ['read_text_file', { path: path('large.txt') }, 'stored'],
            ['read_media_file', { path: path('image.png') }, 'small'],
            ['read_media_file', { path: path('large.png') }, 'stored'],
            ['read_multiple_files', { paths: [path('small.txt')] }, 'small'],
            ['read_multiple_files', { paths: [path('small.txt'), path('large.txt')] }, 'stored'],
            ['write_file', { path: path('new.txt'), content: 'new' }, 'small'],
            ['edit_file', { path: path('small.txt'), edits: [{ oldText: 'two', newText: '2' }] }, 'small'],
            ['edit_file', { path: path('wide.txt'), edits: [{ oldText: wide('old'), newText: wide('new') }] }, 'stored'],
            ['create_directory', { path: path('made') }, 'small'],
            ['list_directory', { path: path('made') }, 'small'],
            ['list_directory', { path: path('many') }, 'stored'],
            ['list_directory_with_sizes', { path: path('made') }, 'small'],
            ['list_directory_with_sizes', { path: path('many') }, 'stored'],
            ['directory_tree', { path: path('made') }, 'small'],
            ['directory_tree', { path: path('many') }, 'stored'],
            ['move_file', { source: path('new.txt'), destination: path('moved.txt') }, 'small'],
            ['search_files', { path: folder, pattern: 'small.txt' }, 'small'],
            ['search_files', { path: folder, pattern: '**/*name*' }, 'stored'],
            ['get_file_info', { path: path('small.txt') }, 'small'],
            ['list_allowed_directories', {}, 'small'],
        ];
        for (const [name, args, size] of calls) {
            assert.ok(files.tools.get(name).outputSchema, name);
            const result = await call(name, args);
            assert.equal(result.structuredContent.spilled ? 'stored' : 'small', size, name);
        }
        // The other server lists Larder's own tools, too.
        const called = new Set(calls.map(([name]) => name));
        const missed = [...files.tools.keys()].filter(name => !other.tools.has(name) && !called.has(name));
        assert.deepEqual(missed, []);
    },
    async close() {
        await files.client.close();
        await other.client.close();
    },
};

await take(steps);
