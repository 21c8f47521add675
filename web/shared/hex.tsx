// Bytes in hexadecimal, sixteen to a row.

import { useEffect, useRef } from "preact/hooks";

import { size } from "./format.ts";
import { usePages } from "./pages.ts";
import { usePlace } from "./place.ts";
import type { Info, Source } from "./source.ts";
import { Empty, Problem } from "./states.tsx";
import { type VirtualHandle, VirtualList } from "./virtual.tsx";

const ROW = 20;
const WIDTH = 16;

export function HexView({ info, source }: { info: Info; source: Source }) {
  const place = usePlace();
  const offset = Number.parseInt(place.get("byte") ?? "", 16);
  const active = offset >= 0 && offset < info.size ? Math.floor(offset / WIDTH) : undefined;
  const setActive = (index: number) => place.set({ byte: (index * WIDTH).toString(16) });
  const handle = useRef<VirtualHandle>(undefined);
  const total = Math.ceil(info.size / WIDTH);
  const pages = usePages<Uint8Array>(`${info.uri} ${info.revision}`, async (offset, limit) => {
    const bytes = await source.bytes(offset * WIDTH, limit * WIDTH);
    const items = [];
    for (let at = 0; at < bytes.length; at += WIDTH) items.push(bytes.subarray(at, at + WIDTH));
    return { offset, items };
  });
  useEffect(() => {
    if (active !== undefined) handle.current?.reveal(active, "center");
  }, []);
  const digits = Math.max(6, info.size.toString(16).length);
  const row = (index: number) => {
    const bytes = pages.get(index);
    return (
      <div
        key={index}
        role="listitem"
        class={`line hex ${index === active ? "active" : ""}`}
        onClick={() => setActive(index)}
      >
        <span class="gutter">{(index * WIDTH).toString(16).padStart(digits, "0")}</span>
        <span class="text">{bytes ? hex(bytes) : ""}</span>
        <span class="ascii">{bytes ? ascii(bytes) : ""}</span>
      </div>
    );
  };
  if (pages.error) return <Problem error={pages.error} retry={() => pages.retry()} />;
  if (total === 0) return <Empty title="No bytes">The content is empty.</Empty>;
  return (
    <section class="view" aria-label="Bytes">
      <div class="bar">
        <span class="grow" />
        <output class="facts">{size(info.size)}</output>
      </div>
      <VirtualList
        role="list"
        className="log"
        label={`Bytes of ${info.name}`}
        total={total}
        rowHeight={ROW}
        row={row}
        active={active}
        onActive={setActive}
        onRange={(first, end) => pages.want(first, end)}
        handle={(given) => {
          handle.current = given;
        }}
      />
    </section>
  );
}

function hex(bytes: Uint8Array): string {
  const all = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0"));
  return `${all.slice(0, 8).join(" ")}  ${all.slice(8).join(" ")}`.padEnd(WIDTH * 3);
}

const ascii = (bytes: Uint8Array): string =>
  Array.from(bytes, (byte) => (byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : "·")).join("");
