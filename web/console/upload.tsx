// Stores a file of the person: the browser streams it to a link that the server has made for it.

import { useRef, useState } from "preact/hooks";

import { visible } from "../shared/format.ts";
import { data, here } from "./api.ts";
import type { Shell } from "./app.tsx";

interface Uploadable {
  file: { uri: string };
  upload: { url: string };
}

export function Upload({ shell, stored }: { shell: Shell; stored: () => void }) {
  const field = useRef<HTMLInputElement>(null);
  const [state, setState] = useState<{ text: string; failed?: boolean; part?: number }>();
  const upload = async (file: File) => {
    try {
      setState({ text: `Uploading ${file.name}`, part: 0 });
      const { upload } = await data<Uploadable>("upload_url", {
        name: file.name,
        size: file.size,
        ...(file.type && { mime_type: file.type }),
      });
      await send(file, here(upload.url), (part) => setState({ text: `Uploading ${file.name}`, part }));
      setState({ text: `Stored ${file.name}.` });
      stored();
    } catch (error) {
      const found = shell.failed(error);
      if (found) setState({ text: found.message, failed: true });
    }
    if (field.current) field.current.value = "";
  };
  return (
    <>
      {state && (
        <span class={`facts clip ${state.failed ? "danger" : ""}`} role={state.failed ? "alert" : "status"}>
          {visible(state.text)}
          {state.part !== undefined && <progress aria-label="Upload" value={state.part} />}
        </span>
      )}
      <input
        ref={field}
        type="file"
        class="hidden"
        tabIndex={-1}
        aria-label="File to upload"
        onChange={(event) => {
          const file = event.currentTarget.files?.[0];
          if (file) void upload(file);
        }}
      />
      <button
        type="button"
        class="button primary"
        disabled={state?.part !== undefined}
        onClick={() => field.current?.click()}
      >
        Upload
      </button>
    </>
  );
}

/** `fetch` does not tell how much was sent. */
function send(file: File, url: string, progress: (part: number) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("PUT", url);
    if (file.type) request.setRequestHeader("content-type", file.type);
    request.upload.onprogress = (event) => {
      if (event.lengthComputable) progress(event.loaded / event.total);
    };
    request.onerror = () => reject(new Error("The connection was lost. Upload the file again."));
    request.onload = () => {
      if (request.status < 300) resolve();
      else reject(new Error(problemOf(request)));
    };
    request.send(file);
  });
}

function problemOf(request: XMLHttpRequest): string {
  try {
    const problem = JSON.parse(request.responseText) as { detail?: string; title?: string };
    return problem.detail ?? problem.title ?? `The server responds with ${request.status}.`;
  } catch {
    return `The server responds with ${request.status}.`;
  }
}
