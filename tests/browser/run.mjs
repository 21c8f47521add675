// Runs one scenario in Chromium: run.mjs SCENARIO, with {"url", "chromium", "screenshots"?} on stdin.

import { text } from "node:stream/consumers";

import { assert } from "./assert.mjs";
import { Stage } from "./stage.mjs";

const scenario = await import(`./scenarios/${process.argv[2]}.mjs`);
const stage = await Stage.start(JSON.parse(await text(process.stdin)));
try {
  await scenario.default(stage);
  assert.ok(stage.messages.seen.has("ui/initialize"), "the page has sent nothing");
  assert.deepEqual(stage.messages.problems, []);
} finally {
  await stage.stop();
}
