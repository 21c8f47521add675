// Markdown as a page. `marked` finds its parts; each becomes an element made here, so no markup of the content is ever parsed:
// HTML in it is text, and nothing is loaded.

import { type ComponentChildren, createContext } from "preact";
import { type Token, type Tokens, lexer } from "marked";
import { useContext, useEffect, useState } from "preact/hooks";

import { Coloured } from "./coloured.tsx";
import { size } from "./format.ts";
import { language, lines } from "./language.ts";
import { type Info, type Source, readAll } from "./source.ts";
import { Empty, Loading, Problem } from "./states.tsx";

/** A longer text is not set as a page. */
const MAX_BYTES = 1_000_000;
/** More code has no colours. */
const MAX_COLOURED = 100_000;
/** Deeper parts are shown as their text. */
const MAX_DEPTH = 40;

/** Opens a link outside of the page, where the page must not do that itself. */
export const OpenLink = createContext<((url: string) => void) | undefined>(undefined);

export function MarkdownView({ info, source }: { info: Info; source: Source }) {
  const [tokens, setTokens] = useState<Token[]>();
  const [error, setError] = useState<Error>();
  const isTooLong = info.size > MAX_BYTES;
  useEffect(() => {
    if (isTooLong) return;
    let isCurrent = true;
    readAll(source, info.size)
      .then((bytes) => {
        const found = lexer(new TextDecoder().decode(bytes), { gfm: true });
        if (isCurrent) setTokens(found);
      })
      .catch((problem: unknown) => {
        if (isCurrent) setError(problem instanceof Error ? problem : new Error(String(problem)));
      });
    return () => {
      isCurrent = false;
    };
  }, [source, info.revision]);

  if (isTooLong) {
    return <Empty title="The text is too long for a page">{`${size(info.size)}; at most ${size(MAX_BYTES)}. The view Text shows all of it.`}</Empty>;
  }
  if (error) return <Problem error={new Error(`It cannot be set as a page (${error.message}). The view Text shows it.`)} />;
  if (!tokens) return <Loading label="Reading" />;
  return (
    <section class="view" aria-label="Page">
      <div class="prose" tabIndex={0} role="region" aria-label={`Text of ${info.name}`} dir="auto">
        <Blocks tokens={tokens} depth={0} />
      </div>
    </section>
  );
}

function Blocks({ tokens, depth }: { tokens: Token[]; depth: number }) {
  return (
    <>
      {tokens.map((token, at) => (
        <Block key={at} token={token} depth={depth} />
      ))}
    </>
  );
}

function Block({ token, depth }: { token: Token; depth: number }) {
  if (depth > MAX_DEPTH) return <p>{token.raw}</p>;
  const inside = (token as Tokens.Generic).tokens ?? [];
  switch (token.type) {
    case "space":
    case "def":
      return null;
    case "heading": {
      // The title of the resource is the first level.
      const Heading = `h${Math.min(6, (token as Tokens.Heading).depth + 1)}` as "h2";
      return (
        <Heading>
          <Words tokens={inside} depth={depth + 1} />
        </Heading>
      );
    }
    case "paragraph":
      return (
        <p>
          <Words tokens={inside} depth={depth + 1} />
        </p>
      );
    case "code":
      return <Code text={(token as Tokens.Code).text} name={(token as Tokens.Code).lang ?? ""} />;
    case "blockquote":
      return (
        <blockquote>
          <Blocks tokens={inside} depth={depth + 1} />
        </blockquote>
      );
    case "hr":
      return <hr />;
    case "list":
      return <List list={token as Tokens.List} depth={depth} />;
    case "table":
      return <Table table={token as Tokens.Table} depth={depth} />;
    case "html":
      return <pre class="markup">{(token as Tokens.HTML).text.trim()}</pre>;
    default:
      return <Words tokens={[token]} depth={depth + 1} />;
  }
}

function Code({ text, name }: { text: string; name: string }) {
  const known = text.length <= MAX_COLOURED ? language(name.split(/\s/)[0] ?? "") : undefined;
  return (
    <pre tabIndex={0} aria-label={name ? `Code, ${name}` : "Code"}>
      <code>
        {known === undefined
          ? text
          : lines(text, known).map((parts, at) => (
              <span key={at}>
                {at > 0 && "\n"}
                <Coloured parts={parts} />
              </span>
            ))}
      </code>
    </pre>
  );
}

function List({ list, depth }: { list: Tokens.List; depth: number }) {
  const items = list.items.map((item, at) => (
    <li key={at} class={item.task ? "task" : undefined}>
      {item.task && <input type="checkbox" disabled checked={item.checked ?? false} aria-label={item.checked ? "Done" : "Open"} />}
      <Blocks tokens={item.tokens.filter((token) => token.type !== "checkbox")} depth={depth + 1} />
    </li>
  ));
  return list.ordered ? <ol start={list.start === "" ? 1 : Number(list.start)}>{items}</ol> : <ul>{items}</ul>;
}

function Table({ table, depth }: { table: Tokens.Table; depth: number }) {
  const cell = (one: Tokens.TableCell, at: number, Cell: "th" | "td") => (
    <Cell key={at} class={one.align ? `align-${one.align}` : undefined}>
      <Words tokens={one.tokens} depth={depth + 1} />
    </Cell>
  );
  return (
    <div class="wide-table" tabIndex={0} role="region" aria-label="Table">
      <table>
        <thead>
          <tr>{table.header.map((one, at) => cell(one, at, "th"))}</tr>
        </thead>
        <tbody>
          {table.rows.map((row, index) => (
            <tr key={index}>{row.map((one, at) => cell(one, at, "td"))}</tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Words({ tokens, depth }: { tokens: Token[]; depth: number }): ComponentChildren {
  return tokens.map((token, at) => <Word key={at} token={token} depth={depth} />);
}

function Word({ token, depth }: { token: Token; depth: number }) {
  const inside = (token as Tokens.Generic).tokens;
  if (depth > MAX_DEPTH) return <>{token.raw}</>;
  const words = inside && <Words tokens={inside} depth={depth + 1} />;
  switch (token.type) {
    case "strong":
      return <strong>{words}</strong>;
    case "em":
      return <em>{words}</em>;
    case "del":
      return <del>{words}</del>;
    case "codespan":
      return <code>{(token as Tokens.Codespan).text}</code>;
    case "br":
      return <br />;
    case "link":
      return <Link url={decoded((token as Tokens.Link).href)}>{words}</Link>;
    case "image": {
      // A picture elsewhere would tell its server who looks.
      const { text, href } = token as Tokens.Image;
      return <Link url={decoded(href)}>{`[${decoded(text) || "picture"}]`}</Link>;
    }
    case "escape":
      return <>{(token as Tokens.Escape).text}</>;
    case "text":
      return <>{words ?? decoded((token as Tokens.Text).text)}</>;
    default:
      return <>{token.raw}</>;
  }
}

/** A link to the web or to a mail address; any other is its text, with the address behind it. */
function Link({ url, children }: { url: string; children: ComponentChildren }) {
  const open = useContext(OpenLink);
  if (!/^(https?:\/\/|mailto:)/i.test(url)) {
    return (
      <span class="nowhere" title={url}>
        {children}
      </span>
    );
  }
  return (
    <a
      href={url}
      target="_blank"
      rel="noopener noreferrer"
      onClick={(event) => {
        if (!open) return;
        event.preventDefault();
        open(url);
      }}
    >
      {children}
    </a>
  );
}

const ENTITIES: { [name: string]: string } = {
  amp: "&",
  lt: "<",
  gt: ">",
  quot: '"',
  apos: "'",
  nbsp: "\u00a0",
  copy: "©",
  reg: "®",
  trade: "™",
  hellip: "…",
  mdash: "—",
  ndash: "–",
  lsquo: "‘",
  rsquo: "’",
  ldquo: "“",
  rdquo: "”",
  times: "×",
  deg: "°",
  rarr: "→",
  larr: "←",
  middot: "·",
  bull: "•",
  euro: "€",
};

/** Text with the characters that entities stand for. */
function decoded(text: string): string {
  return text.replace(/&(?:#(\d{1,7})|#[xX]([0-9a-fA-F]{1,6})|([a-zA-Z]{2,8}));/g, (whole, decimal, hex, name) => {
    if (name !== undefined) return Object.hasOwn(ENTITIES, name) ? (ENTITIES[name] ?? whole) : whole;
    const code = decimal === undefined ? Number.parseInt(hex, 16) : Number(decimal);
    return code > 0 && code <= 0x10ffff && !(code >= 0xd800 && code <= 0xdfff) ? String.fromCodePoint(code) : "\ufffd";
  });
}
