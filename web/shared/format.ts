// Numbers, sizes and times as people read them.

const NUMBER = new Intl.NumberFormat("en-US");

export const number = (value: number): string => NUMBER.format(value);

export const count = (value: number, noun: string): string =>
  `${number(value)} ${value === 1 ? noun : noun.endsWith("h") ? `${noun}es` : `${noun}s`}`;

export function size(bytes: number): string {
  if (bytes < 1000) return count(bytes, "byte");
  const units = ["kB", "MB", "GB", "TB"];
  let value = bytes;
  let unit = -1;
  do {
    value /= 1000;
    unit += 1;
  } while (value >= 999.5 && unit < units.length - 1);
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`;
}

/** `expires in 23 h`, or `expired`. */
export function expiry(time: string, now: number): string {
  const seconds = (Date.parse(time) - now) / 1000;
  if (Number.isNaN(seconds)) return "";
  if (seconds <= 0) return "expired";
  if (seconds < 90) return `expires in ${Math.round(seconds)} s`;
  if (seconds < 90 * 60) return `expires in ${Math.round(seconds / 60)} min`;
  if (seconds < 48 * 3600) return `expires in ${Math.round(seconds / 3600)} h`;
  return `expires in ${Math.round(seconds / 86400)} days`;
}

/** `5 min ago`. */
export function age(time: string, now: number): string {
  const seconds = Math.max(0, (now - Date.parse(time)) / 1000);
  if (Number.isNaN(seconds)) return "";
  if (seconds < 90) return `${Math.round(seconds)} s ago`;
  if (seconds < 90 * 60) return `${Math.round(seconds / 60)} min ago`;
  if (seconds < 48 * 3600) return `${Math.round(seconds / 3600)} h ago`;
  return `${Math.round(seconds / 86400)} days ago`;
}

/** All digits of a number. An integer that JavaScript would round comes as a text. */
export function exact(value: number | string | null): string {
  if (value === null) return "–";
  if (typeof value === "string") return value.replace(/\B(?=(\d{3})+$)/g, ",");
  if (Number.isInteger(value) && Math.abs(value) < 1e21) return number(value);
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-6 || size >= 1e21)) return String(value);
  // A sum of decimals has digits behind the fifteenth that nobody has written.
  return Number(value.toPrecision(15)).toLocaleString("en-US", { maximumFractionDigits: 20 });
}

/** What a chart leaves out of the values of its columns; undefined if that is nothing. */
export function leftOut(values: number): string | undefined {
  return values > 0 ? `${count(values, "value")} no numbers, or too large` : undefined;
}

/** A moment in UTC, from seconds since 1970: `2026-01-31`, or with the time that it has. */
export function moment(seconds: number): string {
  const date = new Date(Math.round(seconds * 1000));
  if (Number.isNaN(date.getTime())) return exact(seconds);
  return date.toISOString().replace(/T00:00:00\.000Z$/, "").replace(/\.000Z$/, "Z").replace("T", " ");
}

/** `14:05:10`, where the person is. */
export const timeOfDay = (time: number): string => new Date(time).toLocaleTimeString("en-GB");

/** Text for one line: control characters made visible, ANSI colours removed. */
export function visible(text: string): string {
  return text
    .replace(/\u001b\[[0-9;?]*[ -/]*[@-~]/g, "")
    .replace(/[\u0000-\u0008\u000b-\u001f\u007f]/g, (c) =>
      c === "\u007f" ? "␡" : String.fromCharCode(0x2400 + c.charCodeAt(0)),
    );
}
