// A browser: it keeps cookies, follows redirects and allows what it is asked, until a redirect leads
// back to the client. The authorization server of the tests needs no user interaction.
export const CALLBACK = 'http://127.0.0.1/callback';

export async function follow(url) {
  const cookies = new Map();
  let form;
  for (let hops = 0; hops < 20; hops += 1) {
    if (url.href.startsWith(CALLBACK)) return url.searchParams;
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    const headers = { cookie, ...(form && { origin: url.origin }) };
    const method = form ? 'POST' : 'GET';
    const response = await fetch(url, { method, body: form, redirect: 'manual', headers });
    for (const set of response.headers.getSetCookie()) {
      const [name, value] = set.split(';')[0].split('=');
      cookies.set(name, value);
    }
    const location = response.headers.get('location');
    const page = await response.text();
    const [, ticket] = page.match(/name="ticket" value="([^"]+)"/) ?? [];
    if (!location && !ticket) throw new Error(`${url}: ${response.status} ${page}`);
    form = location ? undefined : new URLSearchParams({ ticket, decision: 'allow' });
    if (location) url = new URL(location, url);
  }
  throw new Error('too many redirects');
}

// The OAuth provider that both generations of the TypeScript client need from their host.
// With a URL, the client is the document there, and registers nowhere.
export function host(document) {
  const kept = {};
  return {
    kept,
    clientMetadataUrl: document,
    redirectUrl: CALLBACK,
    clientMetadata: {
      client_name: 'Larder interop',
      application_type: 'native',
      redirect_uris: [CALLBACK],
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      token_endpoint_auth_method: 'none',
    },
    clientInformation: () => kept.client,
    saveClientInformation: (client) => { kept.client = client; },
    tokens: () => kept.tokens,
    // For a step-up, version 1 would use a refresh token, which gives only the old scopes;
    // without one it starts a new authorization, as it should.
    saveTokens: ({ refresh_token, ...tokens }) => { kept.tokens = tokens; },
    codeVerifier: () => kept.verifier,
    saveCodeVerifier: (verifier) => { kept.verifier = verifier; },
    saveDiscoveryState: (state) => { kept.discovery = state; },
    discoveryState: () => kept.discovery,
    redirectToAuthorization: async (url) => { kept.answer = await follow(url); },
  };
}

// Logs in with nothing but the URL, writes a resource, and reads it.
export async function run(label, { Client, StreamableHTTPClientTransport }, options, url, document) {
  const provider = host(document);
  const connect = async () => {
    const client = new Client({ name: label, version: '1' }, options);
    const transport = new StreamableHTTPClientTransport(new URL(url), { authProvider: provider });
    try {
      await client.connect(transport);
      return client;
    } catch (error) {
      const answer = provider.kept.answer;
      if (!answer) throw error;
      delete provider.kept.answer;
      // The older client takes the code, the newer one also the issuer.
      await transport.finishAuth(answer.get('code'), answer.get('iss') ?? undefined);
      return undefined;
    }
  };
  const first = await connect();
  if (first) throw new Error('the server required no login');
  const client = await connect();
  const text = `written by ${label}`;
  const call = async (name, args) => {
    const result = await client.callTool({ name, arguments: args });
    if (result.isError) throw new Error(JSON.stringify(result));
    return result.content.map((block) => block.text ?? '').join('\n');
  };
  // Writing needs a scope that the first login did not request: a step-up.
  try {
    await call('create_resource', { uri: 'notes://interop', text });
  } catch (error) {
    const answer = provider.kept.answer;
    if (!answer) throw error;
    delete provider.kept.answer;
    await client.transport.finishAuth(answer.get('code'), answer.get('iss') ?? undefined);
    await call('create_resource', { uri: 'notes://interop', text });
  }
  const read = await call('read_resource', { uri: 'notes://interop' });
  if (!read.includes(text)) throw new Error(read);
  if (document && provider.kept.client.client_id !== document) throw new Error('it has registered');
  console.log(`${label}: ${provider.kept.tokens.scope}`);
  await client.close();
}
