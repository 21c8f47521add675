// Records as rows that the server sorts and filters.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";

import { Filters, describeFilter, isFilters } from "./filters.tsx";
import { count, number, visible } from "./format.ts";
import { Icon } from "./icons.tsx";
import { usePages } from "./pages.ts";
import { type Choices, ordinal, parsed, type, usePlace } from "./place.ts";
import { Record } from "./record.tsx";
import { Search } from "./search.tsx";
import type { Cell, Column, Filter, Info, Sort, Source } from "./source.ts";
import { Empty, Problem } from "./states.tsx";
import { type VirtualHandle, VirtualList } from "./virtual.tsx";

const ROW = 28;
const HEAD = 32;

export function TableView({ info, source }: { info: Info; source: Source }) {
  const place = usePlace();
  const column = place.get("sort");
  const sort: Sort | undefined = column === undefined ? undefined : { column, descending: place.get("order") === "descending" };
  const filter = parsed<Filter[]>(place.get("filter"), isFilters, []);
  const query = place.get("find") ?? "";
  const opened = ordinal(place.get("row"));
  const open = opened !== undefined;
  const [active, setActive] = useState(opened === undefined ? undefined : opened - 1);
  const [filtering, setFiltering] = useState(false);
  const handle = useRef<VirtualHandle>(undefined);
  const isFiltered = query !== "" || filter.length > 0;
  const key = JSON.stringify([info.uri, info.revision, sort, filter, query]);
  const found = useMemo(() => ({ total: isFiltered ? undefined : info.records?.total }), [key]);
  // Columns that only later records have come last.
  const columns = useMemo(() => [...(info.records?.columns ?? [])], [info]);

  const pages = usePages<Cell[]>(key, async (offset, limit) => {
    const part = await source.window({
      as: "table",
      offset,
      limit,
      ...(sort && { sort }),
      ...(filter.length > 0 && { filter }),
      ...(query && { query }),
    });
    found.total = part.total ?? found.total;
    return { offset, items: arrange(part.columns, part.rows, columns) };
  });
  const total = found.total ?? (isFiltered ? 0 : (info.records?.total ?? 0));
  const widths = useWidths(columns, pages.get(0), (index) => pages.get(index), total);
  const grid = { gridTemplateColumns: `${numberWidth(total)}ch ${widths.map((w) => `${w}ch`).join(" ")}` };
  if (isFiltered && found.total === undefined && !pages.isLoading && !pages.error) pages.want(0, 1);

  const openRow = (index: number | undefined) => place.set({ row: index === undefined ? undefined : String(index + 1) }, true);
  const change = (choices: Choices) => {
    place.set({ ...choices, row: undefined }, true);
    setActive(undefined);
    handle.current?.reveal(0);
  };
  const setFilter = (all: Filter[]) => change({ filter: all.length > 0 ? JSON.stringify(all) : undefined });
  const sortBy = (column: string) => {
    const isThird = sort?.column === column && sort.descending;
    const order = sort?.column === column && !isThird ? "descending" : undefined;
    change({ sort: isThird ? undefined : column, order });
  };
  // A row of the URL, and one that the buttons of the browser lead to.
  useEffect(() => {
    if (opened === undefined || opened > total) return;
    setActive(opened - 1);
    handle.current?.reveal(opened - 1, "nearest");
  }, [opened, total > 0]);

  const head = (
    <div role="rowgroup" class="head" style={{ height: `${HEAD}px` }}>
      <div role="row" class="row" style={grid} aria-rowindex={1}>
        <div role="columnheader" class="cell index">
          <span class="hidden">Row</span>
        </div>
        {columns.map((column) => {
          const order = sort?.column === column.name ? (sort.descending ? "descending" : "ascending") : undefined;
          return (
            <div
              key={column.name}
              role="columnheader"
              class={`cell ${column.type === "number" ? "end" : ""}`}
              aria-sort={order ?? "none"}
            >
              {info.sorts ? (
                <button
                  type="button"
                  class={`sort ${order ?? ""}`}
                  title={visible(column.name)}
                  aria-label={`Sort by ${visible(column.name)}`}
                  onClick={() => sortBy(column.name)}
                >
                  <span class="clip" dir="auto">
                    {visible(column.name) || "\u00a0"}
                  </span>
                  {order && <Icon name={sort?.descending ? "down" : "up"} />}
                </button>
              ) : (
                <span class="clip" dir="auto" title={visible(column.name)}>
                  {visible(column.name)}
                </span>
              )}
            </div>
          );
        })}
      </div>
    </div>
  );

  const row = (index: number) => {
    const cells = pages.get(index);
    return (
      <div
        key={index}
        role="row"
        aria-rowindex={index + 2}
        class={`row ${index === active ? "active" : ""} ${cells ? "" : "pending"}`}
        style={grid}
        onClick={() => setActive(index)}
        onDblClick={() => {
          setActive(index);
          openRow(index);
        }}
      >
        <div role="rowheader" class="cell index">
          {number(index + 1)}
        </div>
        {columns.map((column, at) => (
          <TableCell key={at} cell={cells ? (cells[at] ?? null) : undefined} type={column.type} />
        ))}
      </div>
    );
  };

  const openRecord = active === undefined ? undefined : pages.get(active);
  return (
    <section class="view" aria-label="Table">
      <div class="bar">
        {info.sorts && (
          <>
            <Search label="Find in all columns" value={query} onChange={(text) => {
                type(place, "find", text, { row: undefined });
                setActive(undefined);
                handle.current?.reveal(0);
              }}
            />
            <button
              type="button"
              class="button"
              aria-expanded={filtering}
              onClick={() => setFiltering((shown) => !shown)}
            >
              <Icon name="filter" />
              Filter
            </button>
          </>
        )}
        <ul class="chips" aria-label="Filters">
          {filter.map((one, at) => (
            <li key={at} class="chip">
              <span class="clip" dir="auto">
                {describeFilter(one)}
              </span>
              <button
                type="button"
                aria-label={`Remove the filter ${describeFilter(one)}`}
                onClick={() => setFilter(filter.filter((_, index) => index !== at))}
              >
                <Icon name="close" />
              </button>
            </li>
          ))}
        </ul>
        <output class="facts">
          {pages.error ? "" : isFiltered && found.total === undefined ? "Searching…" : facts(total, info, isFiltered)}
        </output>
      </div>
      {filtering && (
        <Filters
          columns={columns}
          onAdd={(one) => setFilter([...filter, one])}
          onClose={() => setFiltering(false)}
        />
      )}
      <div class="split">
        {pages.error ? (
          <Problem error={pages.error} retry={() => pages.retry()} />
        ) : total === 0 && !pages.isLoading ? (
          isFiltered ? (
            <Empty title="No row fits">Change the text or remove a filter.</Empty>
          ) : (
            <Empty title="No rows">The table has columns and no rows.</Empty>
          )
        ) : (
          <VirtualList
            role="table"
            className="table"
            label={`Rows of ${info.name}`}
            total={total}
            rowHeight={ROW}
            head={head}
            headHeight={HEAD}
            columns={columns.length + 1}
            row={row}
            active={active}
            onActive={(index) => {
              setActive(index);
              if (open) place.set({ row: String(index + 1) });
            }}
            onRange={(first, end) => pages.want(first, end)}
            onKey={(event) => {
              if (event.key === "Enter" && active !== undefined && event.target === event.currentTarget) openRow(active);
              if (event.key === "Escape" && open) openRow(undefined);
            }}
            handle={(given) => {
              handle.current = given;
            }}
          />
        )}
        {open && openRecord && active !== undefined && (
          <Record
            index={active}
            columns={columns}
            cells={openRecord}
            onClose={() => {
              openRow(undefined);
              handle.current?.focus();
            }}
          />
        )}
      </div>
    </section>
  );
}

function facts(total: number, info: Info, isFiltered: boolean): string {
  const all = info.records?.total ?? total;
  return isFiltered ? `${number(total)} of ${count(all, "row")}` : count(total, "row");
}

function TableCell({ cell, type }: { cell: Cell | undefined; type: Column["type"] }) {
  if (cell === undefined) return <div role="cell" class="cell" />;
  if (cell === null) {
    return (
      <div role="cell" class={`cell none ${type === "number" ? "end" : ""}`}>
        <span aria-hidden="true">–</span>
      </div>
    );
  }
  return (
    <div role="cell" class={`cell ${type === "number" ? "end" : ""} ${type === "json" ? "code" : ""}`}>
      <span class="clip" dir={type === "number" ? undefined : "auto"}>
        {visible(cell)}
      </span>
    </div>
  );
}

/** The cells in the order of the known columns, to which new ones are added. */
export function arrange(given: Column[], rows: Cell[][], columns: Column[]): Cell[][] {
  const isSame = given.length <= columns.length && given.every((column, at) => column.name === columns[at]?.name);
  if (isSame) return rows;
  const names = new Map(columns.map((column, at) => [column.name, at]));
  const places = given.map((column) => {
    const known = names.get(column.name);
    if (known !== undefined) return known;
    columns.push(column);
    names.set(column.name, columns.length - 1);
    return columns.length - 1;
  });
  return rows.map((row) => {
    const arranged: Cell[] = new Array(columns.length).fill(null);
    row.forEach((cell, at) => {
      const place = places[at];
      if (place !== undefined) arranged[place] = cell;
    });
    return arranged;
  });
}

const numberWidth = (total: number): number => Math.max(4, number(total).length + 2);

/** Widths in characters, by what the first rows have; they stay as they are then. */
function useWidths(
  columns: Column[],
  first: Cell[] | undefined,
  get: (index: number) => Cell[] | undefined,
  total: number,
): number[] {
  return useMemo(
    () =>
      columns.map((column, at) => {
        let longest = column.name.length + 3;
        for (let index = 0; index < Math.min(total, 100); index++) {
          longest = Math.max(longest, get(index)?.[at]?.length ?? 0);
        }
        return Math.min(42, Math.max(7, longest + 3));
      }),
    [columns, columns.length, first !== undefined],
  );
}
