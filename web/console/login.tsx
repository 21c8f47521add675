// The login: at the authorization server, if the console has one, or by a token.

import { useEffect, useRef, useState } from "preact/hooks";

import { visible } from "../shared/format.ts";
import { beginLogin, logIn } from "./api.ts";

interface Props {
  notice?: string;
  /** The authorization server at which people log in, or its provider. */
  host?: string;
  /** Whether a token logs in. */
  takesTokens: boolean;
  done: () => void;
}

export function Login({ notice, host, takesTokens, done }: Props) {
  const [problem, setProblem] = useState<string>();
  const [busy, setBusy] = useState(false);
  const field = useRef<HTMLInputElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  useEffect(() => (button.current ?? field.current)?.focus(), []);
  const leave = async () => {
    setBusy(true);
    setProblem(undefined);
    try {
      location.assign(await beginLogin());
    } catch (error) {
      setProblem((error as Error).message);
      setBusy(false);
    }
  };
  const submit = async (token: string) => {
    setBusy(true);
    setProblem(undefined);
    try {
      await logIn(token);
      done();
    } catch (error) {
      setProblem((error as Error).message);
      setBusy(false);
      field.current?.select();
    }
  };
  return (
    <main class="viewer center">
      <form
        class="login"
        onSubmit={(event) => {
          event.preventDefault();
          void submit(field.current?.value ?? "");
        }}
      >
        <p class="brand">Larder</p>
        <h1>Log in</h1>
        {notice !== undefined && problem === undefined && <p role="status">{notice}</p>}
        {host !== undefined && (
          <>
            <button
              ref={button}
              type="button"
              class="button primary"
              disabled={busy}
              onClick={() => void leave()}
            >
              Log in at {visible(host)}
            </button>
            {takesTokens && <p class="hint">Or with a token:</p>}
            {!takesTokens && problem !== undefined && (
              <p class="danger" role="alert">
                {problem}
              </p>
            )}
          </>
        )}
        {takesTokens && (
          <>
            <label for="token">Access token</label>
            <input
              ref={field}
              id="token"
              type="password"
              name="token"
              autocomplete="off"
              spellcheck={false}
              required
              aria-invalid={problem !== undefined || undefined}
              aria-describedby={problem === undefined ? "token-hint" : "token-problem"}
            />
            {problem === undefined ? (
              <p id="token-hint" class="hint">
                The bearer token that your MCP client uses. The server keeps it sealed until you log out.
              </p>
            ) : (
              <p id="token-problem" class="danger" role="alert">
                {problem}
              </p>
            )}
            <button type="submit" class={host === undefined ? "button primary" : "button"} disabled={busy}>
              {busy ? "Logging in…" : host === undefined ? "Log in" : "Log in with the token"}
            </button>
          </>
        )}
      </form>
    </main>
  );
}
