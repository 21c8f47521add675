// Lines of code in colours.

import { useEffect, useState } from "preact/hooks";

import { visible } from "./format.ts";
import { type ColouredText, languageOf, lines } from "./language.ts";
import { type Info, type Source, readAll } from "./source.ts";

/** Longer texts have no colours: finding them would take longer than a person waits. */
const MAX_BYTES = 400_000;
/** Kinds of highlight.js that share a colour. Others have that of the text. */
const COLOURS: { [kind: string]: string } = {
  keyword: "word",
  literal: "word",
  built_in: "word",
  type: "word",
  tag: "word",
  "selector-tag": "word",
  string: "string",
  regexp: "string",
  char: "string",
  addition: "added",
  deletion: "removed",
  number: "number",
  symbol: "number",
  bullet: "number",
  link: "number",
  attr: "key",
  attribute: "key",
  property: "key",
  name: "key",
  title: "key",
  section: "key",
  variable: "key",
  "template-variable": "key",
  meta: "comment",
  comment: "comment",
  quote: "comment",
  doctag: "comment",
};

/** The lines of a short text of a known language, in parts. */
export function useColours(info: Info, source: Source): ColouredText[][] | undefined {
  const [found, setFound] = useState<ColouredText[][]>();
  const language = info.text && info.size <= MAX_BYTES ? languageOf(info) : undefined;
  useEffect(() => {
    let isCurrent = true;
    setFound(undefined);
    if (language === undefined) return;
    readAll(source, info.size).then(
      (bytes) => isCurrent && setFound(lines(new TextDecoder().decode(bytes).replace(/\r\n/g, "\n"), language)),
      // Without colours, the text is there all the same.
      () => undefined,
    );
    return () => {
      isCurrent = false;
    };
  }, [source, info.revision, language]);
  return found;
}

/** The parts in their colours. */
export function Coloured({ parts }: { parts: ColouredText[] }) {
  return (
    <>
      {parts.map(({ text, kind }, at) => {
        const colour = kind === undefined ? undefined : COLOURS[kind];
        return colour === undefined ? (
          visible(text)
        ) : (
          <span key={at} class={`ink-${colour}`}>
            {visible(text)}
          </span>
        );
      })}
    </>
  );
}
