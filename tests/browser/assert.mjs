// What scenarios wait for and compare.

import assert from "node:assert/strict";

export { assert };

/** Waits until `read` gives a value that `fits`; polls with a deadline. */
export async function eventually(what, read, fits, deadline = 60_000) {
  const end = Date.now() + deadline;
  let last;
  for (;;) {
    last = await read();
    if (fits(last)) return last;
    if (Date.now() > end) throw new Error(`${what}: ${JSON.stringify(last)}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
