// Colours of code: highlight.js finds the parts, which stay text.

import bash from "highlight.js/lib/languages/bash";
import c from "highlight.js/lib/languages/c";
import cpp from "highlight.js/lib/languages/cpp";
import css from "highlight.js/lib/languages/css";
import diff from "highlight.js/lib/languages/diff";
import go from "highlight.js/lib/languages/go";
import ini from "highlight.js/lib/languages/ini";
import java from "highlight.js/lib/languages/java";
import javascript from "highlight.js/lib/languages/javascript";
import json from "highlight.js/lib/languages/json";
import markdown from "highlight.js/lib/languages/markdown";
import python from "highlight.js/lib/languages/python";
import rust from "highlight.js/lib/languages/rust";
import sql from "highlight.js/lib/languages/sql";
import typescript from "highlight.js/lib/languages/typescript";
import xml from "highlight.js/lib/languages/xml";
import yaml from "highlight.js/lib/languages/yaml";
import { createLowlight } from "lowlight";

const low = createLowlight({
  bash, c, cpp, css, diff, go, ini, java, javascript, json, markdown, python, rust, sql, typescript, xml, yaml,
});

/** Names of files and media types whose language is called otherwise. */
const ALIASES: { [name: string]: string } = {
  "x-sh": "bash",
  "x-shellscript": "bash",
  "x-python": "python",
  "x-rust": "rust",
  "x-yaml": "yaml",
  "x-toml": "ini",
  "x-diff": "diff",
  "x-patch": "diff",
  "x-c": "c",
  "x-go": "go",
  "x-java": "java",
  "x-sql": "sql",
  "svg+xml": "xml",
  conf: "ini",
  h: "c",
  hpp: "cpp",
  htm: "xml",
  mts: "typescript",
  patch: "diff",
};

/** A part of a line; `kind` is the end of a class, such as `keyword`. */
export interface ColouredText {
  text: string;
  kind?: string;
}

/** The language of a name such as `rs`, `python` or the end of a media type, if it is known. */
export function language(name: string): string | undefined {
  const lower = name.trim().toLowerCase();
  const known = ALIASES[lower] ?? lower;
  return known !== "" && low.registered(known) ? known : undefined;
}

/** The language of a resource, by its media type or the end of its name. */
export function languageOf({ mimeType, name, uri }: { mimeType: string; name: string; uri: string }): string | undefined {
  const subtype = mimeType.split(";")[0]?.trim().split("/")[1] ?? "";
  const ending = (text: string) => /\.([A-Za-z0-9]+)$/.exec(text)?.[1] ?? "";
  const suffix = subtype.includes("+") ? (subtype.split("+")[1] ?? "") : "";
  // `text/plain` says nothing, and lines of NDJSON are JSON.
  for (const one of [subtype.replace(/^x-ndjson$|^jsonl$/, "json"), ending(name), ending(uri), suffix]) {
    const found = language(one);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** The lines of a text in their parts. */
export function lines(text: string, language: string): ColouredText[][] {
  const all: ColouredText[][] = [[]];
  const add = (text: string, kind: string | undefined) => {
    text.split("\n").forEach((line, at) => {
      if (at > 0) all.push([]);
      if (line !== "") all.at(-1)?.push(kind === undefined ? { text: line } : { text: line, kind });
    });
  };
  const walk = (nodes: readonly HastNode[], kind?: string) => {
    for (const node of nodes) {
      if (node.type === "text") add(node.value ?? "", kind);
      else walk(node.children ?? [], className(node) ?? kind);
    }
  };
  walk(low.highlight(language, text).children as HastNode[]);
  return all;
}

interface HastNode {
  type: string;
  value?: string;
  children?: HastNode[];
  properties?: { className?: unknown };
}

function className(node: HastNode): string | undefined {
  const first: unknown = Array.isArray(node.properties?.className) ? node.properties.className[0] : undefined;
  return typeof first === "string" ? first.replace(/^hljs-/, "") : undefined;
}
