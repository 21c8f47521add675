// The console: a login, then the list of resources or one of them.

import { useCallback, useEffect, useMemo, useReducer, useState } from "preact/hooks";

import { visible } from "../shared/format.ts";
import { PlaceContext } from "../shared/place.ts";
import { Loading, Problem } from "../shared/states.tsx";
import { LoggedOut, type Session, logOut, session as readSession, tools as readTools } from "./api.ts";
import { Keys } from "./keys.tsx";
import { List } from "./list.tsx";
import { Login } from "./login.tsx";
import { Owners } from "./owners.tsx";
import { AddressPlace, uriOf } from "./place.ts";
import { Resource } from "./resource.tsx";
import { Traffic } from "./traffic.tsx";
import { Upstreams } from "./upstreams.tsx";

type State =
  | { kind: "loading" }
  | { kind: "login"; notice?: string }
  | { kind: "failed"; error: Error }
  | { kind: "open"; session: Session; tools: Set<string> };

/** What every part of the page gets. */
export interface Shell {
  tools: Set<string>;
  /** Shows an error, or the login if the session has ended. */
  failed: (error: unknown) => Error | undefined;
}

export function App() {
  const [state, setState] = useState<State>({ kind: "loading" });
  const place = useMemo(() => new AddressPlace(), []);
  const [, redraw] = useReducer((n: number) => n + 1, 0);
  useEffect(() => place.follow(() => redraw(0)), [place]);
  const uri = uriOf(place.address);
  const operators = operatorsPage(place.address.path);
  /** The host of the authorization server at which people log in. */
  const [host, setHost] = useState<string>();
  const [takesTokens, setTakesTokens] = useState(true);
  const open = useCallback(async () => {
    try {
      const session = await readSession();
      setHost(session.oidc);
      setTakesTokens(session.tokens ?? true);
      if (session.user === undefined) setState({ kind: "login" });
      else setState({ kind: "open", session, tools: await readTools() });
    } catch (error) {
      setState({ kind: "failed", error: error as Error });
    }
  }, []);
  useEffect(() => void open(), []);
  const failed = useCallback((error: unknown) => {
    if (error instanceof LoggedOut) {
      setState({ kind: "login", notice: error.message });
      return undefined;
    }
    return error instanceof Error ? error : new Error(String(error));
  }, []);
  useEffect(() => {
    document.title = state.kind === "open" && uri !== undefined ? `${visible(uri)} · Larder` : "Larder";
  }, [state.kind, uri]);

  switch (state.kind) {
    case "loading":
      return (
        <main class="viewer center">
          <Loading />
        </main>
      );
    case "failed":
      return (
        <main class="viewer center">
          <Problem error={state.error} retry={() => void open()} />
        </main>
      );
    case "login":
      return (
        <Login
          {...(state.notice !== undefined && { notice: state.notice })}
          {...(host !== undefined && { host })}
          takesTokens={takesTokens}
          done={() => void open()}
        />
      );
    case "open": {
      const shell: Shell = { tools: state.tools, failed };
      return (
        <PlaceContext value={place}>
          <div class="viewer console">
            <header class="masthead">
              <a class="brand" href="#/">
                Larder
              </a>
              {state.session.operator && (
                <nav class="operators" aria-label="For operators">
                  <a href="#/owners" aria-current={operators === "owners" ? "page" : undefined}>
                    Owners
                  </a>
                  <a href="#/traffic" aria-current={operators === "traffic" ? "page" : undefined}>
                    Traffic
                  </a>
                  <a href="#/upstreams" aria-current={operators === "upstreams" ? "page" : undefined}>
                    Upstreams
                  </a>
                </nav>
              )}
              <span class="grow" />
              <span class="user clip" title={visible(state.session.user ?? "")}>
                {visible(state.session.user ?? "")}
              </span>
              {state.session.login && (
                <button
                  type="button"
                  class="button"
                  onClick={() =>
                    void logOut().then(
                      () => setState({ kind: "login", notice: "You are logged out." }),
                      (error: unknown) => setState({ kind: "failed", error: error as Error }),
                    )
                  }
                >
                  Log out
                </button>
              )}
            </header>
            {operators === "owners" ? (
              <Owners shell={shell} />
            ) : operators === "traffic" ? (
              <Traffic shell={shell} />
            ) : operators === "upstreams" ? (
              <Upstreams shell={shell} />
            ) : uri === undefined ? (
              <List shell={shell} />
            ) : (
              <Resource key={uri} uri={uri} shell={shell} />
            )}
            <Keys />
          </div>
        </PlaceContext>
      );
    }
  }
}

/** The page for operators at a path, if it is one. */
const operatorsPage = (path: string): string | undefined => /^\/(owners|traffic|upstreams)$/.exec(path)?.[1];
