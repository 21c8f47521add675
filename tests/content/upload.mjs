// Sends a file with tus-js-client: upload.mjs ENDPOINT FILE URI

import fs from "node:fs";
import * as tus from "tus-js-client";

const [endpoint, file, uri] = process.argv.slice(2);
const upload = new tus.Upload(fs.createReadStream(file), {
  endpoint,
  chunkSize: 4 << 20,
  uploadSize: fs.statSync(file).size,
  retryDelays: [0, 100, 500, 1000, 2000],
  metadata: { uri, filename: "tus.bin", filetype: "application/octet-stream" },
  onError(error) {
    console.error(String(error));
    process.exit(1);
  },
  onSuccess() {
    console.log(upload.url);
  },
});
upload.start();
