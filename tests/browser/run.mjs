// Runs one scenario in Chromium: run.mjs SCENARIO, with {"url", "chromium", "screenshots"?} on stdin.

import { text } from "node:stream/consumers";

import { Stage } from "./stage.mjs";

const scenario = await import(`./scenarios/${process.argv[2]}.mjs`);
const stage = await Stage.start(JSON.parse(await text(process.stdin)));
try {
  await scenario.default(stage);
} finally {
  await stage.stop();
}
