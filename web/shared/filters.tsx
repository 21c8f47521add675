// A condition on a column.

import { useState } from "preact/hooks";

import { visible } from "./format.ts";
import type { Column, Filter, Op } from "./source.ts";

const WORDS: { [op in Op]: string } = {
  contains: "contains",
  equals: "is",
  not: "is not",
  less: "is less than",
  greater: "is greater than",
  empty: "is empty",
  filled: "is not empty",
};

/** As many as the server takes. */
const MAX_FILTERS = 16;

const needsValue = (op: Op): boolean => op !== "empty" && op !== "filled";

/** `level is error` */
export const describeFilter = (filter: Filter): string =>
  `${visible(filter.column)} ${WORDS[filter.op]}${needsValue(filter.op) ? ` ${visible(filter.value)}` : ""}`;

/** Whether a value is a list of conditions: it may come from a URL. */
export const isFilters = (value: unknown): value is Filter[] =>
  Array.isArray(value) &&
  value.length <= MAX_FILTERS &&
  value.every(
    (one: unknown) =>
      typeof one === "object" &&
      one !== null &&
      typeof (one as Filter).column === "string" &&
      typeof (one as Filter).value === "string" &&
      Object.hasOwn(WORDS, (one as Filter).op),
  );

interface Props {
  columns: Column[];
  onAdd: (filter: Filter) => void;
  onClose: () => void;
}

export function Filters({ columns, onAdd, onClose }: Props) {
  const [column, setColumn] = useState(columns[0]?.name ?? "");
  const [op, setOp] = useState<Op>("contains");
  const [value, setValue] = useState("");
  const isComplete = !needsValue(op) || value !== "";
  const add = () => {
    if (!isComplete) return;
    onAdd({ column, op, value: needsValue(op) ? value : "" });
    setValue("");
  };
  // No form: hosts that sandbox the page do not let it submit any.
  return (
    <div
      class="bar filters"
      role="group"
      aria-label="Add a filter"
      onKeyDown={(event) => {
        if (event.key === "Escape") onClose();
      }}
    >
      <select aria-label="Column" value={column} onChange={(event) => setColumn(event.currentTarget.value)}>
        {columns.map((one, at) => (
          <option key={at} value={one.name}>
            {visible(one.name)}
          </option>
        ))}
      </select>
      <select aria-label="Condition" value={op} onChange={(event) => setOp(event.currentTarget.value as Op)}>
        {Object.entries(WORDS).map(([name, words]) => (
          <option key={name} value={name}>
            {words}
          </option>
        ))}
      </select>
      {needsValue(op) && (
        <input
          type="text"
          aria-label="Value"
          placeholder="Value"
          value={value}
          onInput={(event) => setValue(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key === "Enter") add();
          }}
        />
      )}
      <button type="button" class="button primary" disabled={!isComplete} onClick={add}>
        Add
      </button>
    </div>
  );
}
