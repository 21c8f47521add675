// What a person has chosen to see: view, order, filters, search, line. The console has it in its URL, a page of MCP Apps in memory.

import { createContext } from "preact";
import { useContext, useEffect, useReducer } from "preact/hooks";

/** Choices by name. One that is absent has its default. */
export type Choices = { [name: string]: string | undefined };

export interface Place {
  get(name: string): string | undefined;
  /** `step` adds a step to the history of the browser, if there is one. */
  set(choices: Choices, step?: boolean): void;
  /** Calls `changed` after each change, until the result is called. */
  follow(changed: () => void): () => void;
}

export class MemoryPlace implements Place {
  private choices = new Map<string, string>();
  private followers = new Set<() => void>();

  get(name: string): string | undefined {
    return this.choices.get(name);
  }

  set(choices: Choices): void {
    for (const [name, value] of Object.entries(choices)) {
      if (value === undefined) this.choices.delete(name);
      else this.choices.set(name, value);
    }
    for (const follower of this.followers) follower();
  }

  follow(changed: () => void): () => void {
    this.followers.add(changed);
    return () => this.followers.delete(changed);
  }
}

export const PlaceContext = createContext<Place>(new MemoryPlace());

/** The place, of which the component is drawn anew after each change. */
export function usePlace(): Place {
  const place = useContext(PlaceContext);
  const [, redraw] = useReducer((n: number) => n + 1, 0);
  useEffect(() => place.follow(() => redraw(0)), [place]);
  return place;
}

/** A text that is typed: its first letter is a step of the history, and further ones are the same step. */
export function type(place: Place, name: string, text: string, others: Choices = {}): void {
  place.set({ ...others, [name]: text || undefined }, (place.get(name) ?? "") === "" || text === "");
}

/** A value of JSON in a choice; `otherwise` if there is none. What comes from a URL may be anything, so `fits` checks it. */
export function parsed<T>(text: string | undefined, fits: (value: unknown) => value is T, otherwise: T): T {
  if (text === undefined) return otherwise;
  try {
    const value: unknown = JSON.parse(text);
    return fits(value) ? value : otherwise;
  } catch {
    return otherwise;
  }
}

/** A number from 1 on, as lines and rows are counted. */
export function ordinal(text: string | undefined): number | undefined {
  return text !== undefined && /^[1-9]\d{0,14}$/.test(text) ? Number(text) : undefined;
}
