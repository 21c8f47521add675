// A JSON value as a tree, of which only open nodes are read.

import { useEffect, useMemo, useReducer, useRef } from "preact/hooks";

import { count, size, visible } from "./format.ts";
import { Icon } from "./icons.tsx";
import { Node } from "./node.ts";
import { usePlace } from "./place.ts";
import type { Info, Source } from "./source.ts";
import { Empty, Loading, Problem } from "./states.tsx";
import { type VirtualHandle, VirtualList } from "./virtual.tsx";

const ROW = 24;
const INDENT = 18;

export function TreeView({ info, source }: { info: Info; source: Source }) {
  const [, redraw] = useReducer((n: number) => n + 1, 0);
  const place = usePlace();
  const handle = useRef<VirtualHandle>(undefined);
  const root = useMemo(() => {
    const root = Node.root(source, () => redraw(0));
    void root.open();
    return root;
  }, [source, info.uri, info.revision]);
  // Short enough to be made for each change: what is closed is not in it.
  const rows = root.rows();
  const total = rows.length;
  const at = place.get("at") ?? "";
  const current = rows.find((node) => !node.isMore && node.pointer === at) ?? rows[0];
  const setActive = (index: number) => place.set({ at: rows[index]?.pointer || undefined });
  // The value of the URL, with all above it open.
  useEffect(() => {
    if (!root.isRead || at === "" || rows.some((node) => node.pointer === at)) return;
    void root.find(at).then((found) => {
      const index = found ? root.rows().indexOf(found) : -1;
      if (index >= 0) handle.current?.reveal(index, "center");
    });
  }, [root.isRead, at]);

  if (root.error) return <Problem error={root.error} retry={() => void root.open()} />;
  if (!root.isRead) return <Loading label="Reading" />;

  const toggle = (node: Node) => {
    if (node.isOpen) node.close();
    else void node.open();
  };
  const onKey = (event: KeyboardEvent) => {
    if (!current || event.target !== event.currentTarget) return;
    const at = rows.indexOf(current);
    if (event.key === "ArrowRight") {
      if (current.canOpen && !current.isOpen) void current.open();
      else if (current.isOpen && at + 1 < total) setActive(at + 1);
    } else if (event.key === "ArrowLeft") {
      if (current.isOpen) current.close();
      else if (current.parent && current.parent !== root) {
        const up = rows.indexOf(current.parent);
        setActive(up);
        handle.current?.reveal(up);
      }
    } else if (event.key === "Enter" || event.key === " ") {
      if (current.isMore) current.more();
      else if (current.canOpen) toggle(current);
    } else {
      return;
    }
    event.preventDefault();
  };

  const row = (index: number) => {
    const node = rows[index];
    if (!node) return null;
    return (
      <div
        key={node.id}
        id={node.id}
        role="treeitem"
        aria-level={node.depth}
        aria-expanded={node.canOpen ? node.isOpen : undefined}
        aria-selected={node === current}
        class={`node ${node === current ? "active" : ""}`}
        style={{ paddingInlineStart: `${(node.depth - 1) * INDENT + 8}px` }}
        onClick={() => {
          setActive(index);
          if (node.isMore) node.more();
          else if (node.canOpen) toggle(node);
        }}
      >
        <span class={`twist ${node.isOpen ? "open" : ""}`}>{node.canOpen && <Icon name="right" />}</span>
        <NodeText node={node} />
      </div>
    );
  };
  return (
    <section class="view" aria-label="JSON">
      <div class="bar">
        <output class="path code" dir="ltr" aria-label="JSON Pointer">
          {visible(current?.pointer || "/")}
        </output>
        <span class="grow" />
        <output class="facts">{root.describe()}</output>
      </div>
      {total === 0 ? (
        <Empty title={root.describe()}>There is nothing in it.</Empty>
      ) : (
        <VirtualList
          role="tree"
          className="tree code"
          label={`Values of ${info.name}`}
          total={total}
          rowHeight={ROW}
          row={row}
          active={current ? rows.indexOf(current) : 0}
          activeId={current?.id}
          onActive={setActive}
          onKey={onKey}
          onRange={(first, end) => rows.slice(first, end).forEach((node) => node.isMore && node.more())}
          handle={(given) => {
            handle.current = given;
          }}
        />
      )}
    </section>
  );
}

function NodeText({ node }: { node: Node }) {
  if (node.isMore) return <span class="none">{node.error ? node.error.message : "Reading…"}</span>;
  const key = node.key;
  return (
    <>
      {key !== undefined && (
        <>
          <span class={typeof key === "number" ? "ordinal" : "key"} dir="auto">
            {typeof key === "number" ? key : visible(key)}
          </span>
          <span class="colon">:</span>
        </>
      )}
      <span class={`value ${node.type}`} dir="auto">
        {visible(node.preview)}
      </span>
      {node.error ? (
        <span class="danger">{node.error.message}</span>
      ) : node.isReading ? (
        <span class="none">Reading…</span>
      ) : (
        node.size !== undefined && (
          <span class="badge">
            {node.type === "list"
              ? count(node.size, "item")
              : node.type === "object"
                ? count(node.size, "member")
                : size(node.size)}
          </span>
        )
      )}
    </>
  );
}
