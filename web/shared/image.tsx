// A picture, as a data URL: hosts may forbid blob URLs.

import { useEffect, useState } from "preact/hooks";

import { number, size } from "./format.ts";
import { type Info, type Source, readAll } from "./source.ts";
import { Empty, Loading, Problem } from "./states.tsx";

/** A larger picture is not decoded here. */
const MAX_IMAGE = 20_000_000;

export function ImageView({ info, source }: { info: Info; source: Source }) {
  const [url, setUrl] = useState<string>();
  const [read, setRead] = useState(0);
  const [error, setError] = useState<Error>();
  const [isActual, setActual] = useState(false);
  const [dimensions, setDimensions] = useState<{ width: number; height: number }>();
  const isTooLarge = info.size > MAX_IMAGE;
  useEffect(() => {
    if (isTooLarge) return;
    let isCurrent = true;
    setUrl(undefined);
    readAll(source, info.size, (bytes) => isCurrent && setRead(bytes))
      .then((bytes) => isCurrent && setUrl(`data:${mediaType(info.mimeType)};base64,${base64(bytes)}`))
      .catch((problem: unknown) => isCurrent && setError(problem instanceof Error ? problem : new Error(String(problem))));
    return () => {
      isCurrent = false;
    };
  }, [source, info.revision]);
  if (isTooLarge) {
    return <Empty title="The picture is too large">{size(info.size)}; at most {size(MAX_IMAGE)} are shown here.</Empty>;
  }
  if (error) return <Problem error={error} />;
  if (!url) return <Loading label={`Reading ${size(read)} of ${size(info.size)}`} />;
  return (
    <section class="view" aria-label="Image">
      <div class="bar">
        <button type="button" class="toggle" aria-pressed={isActual} onClick={() => setActual(!isActual)}>
          Actual size
        </button>
        <span class="grow" />
        <output class="facts">
          {dimensions && `${number(dimensions.width)} × ${number(dimensions.height)} pixels`}
        </output>
      </div>
      <div class={`picture ${isActual ? "actual" : ""}`} tabIndex={0} role="region" aria-label="Picture">
        <img
          src={url}
          alt={info.description ?? info.title ?? info.name}
          onLoad={(event) => {
            const { naturalWidth: width, naturalHeight: height } = event.currentTarget;
            setDimensions({ width, height });
          }}
          onError={() => setError(new Error(`This is no picture that can be shown (${info.mimeType}).`))}
        />
      </div>
    </section>
  );
}

/** The type without parameters, if it is one of a picture: nothing else becomes a URL. */
function mediaType(given: string): string {
  const type = given.split(";")[0]?.trim().toLowerCase() ?? "";
  return /^image\/[a-z0-9.+-]+$/.test(type) ? type : "image/png";
}

export function base64(bytes: Uint8Array): string {
  let text = "";
  for (let at = 0; at < bytes.length; at += 0x8000) {
    text += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  }
  return btoa(text);
}
