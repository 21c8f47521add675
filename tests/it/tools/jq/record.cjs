// Records the answers of jq 1.7.1 to the filters of answers.ndjson, and to those of its arguments, over the
// inputs of inputs.ndjson:
//
//     npm install --no-save jq-wasm@1.1.0-jq-1.7.1 && node record.cjs '.new | filter' > new.ndjson
//
// Each line has a filter and its outputs in compact form for each input, or for all if they agree; "error"
// if it fails. A filter that does not compile is left out.
const { readFileSync } = require('node:fs');
const { join } = require('node:path');
const jq = require('jq-wasm');

const text = (name) => readFileSync(join(__dirname, name), 'utf8');

(async () => {
  const known = text('answers.ndjson').trimEnd().split('\n').map((line) => JSON.parse(line).filter);
  for (const filter of new Set([...known, ...process.argv.slice(2)])) {
    const program = `[try [${filter}\n] catch "error"]`;
    const { stdout, exitCode } = await jq.raw(text('inputs.ndjson'), program, ['-c']);
    if (exitCode !== 0) continue;

    const all = stdout.trimEnd().split('\n');
    const answers = new Set(all).size === 1 ? all[0] : all;
    process.stdout.write(`${JSON.stringify({ filter, answers })}\n`);
  }
})();
