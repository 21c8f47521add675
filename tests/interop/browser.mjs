// A browser: it keeps cookies and follows redirects, until one leads back to the client. The
// authorization server of the tests needs no user interaction.
export const CALLBACK = 'http://127.0.0.1/callback';

export async function follow(url) {
  const cookies = new Map();
  for (let hops = 0; hops < 10; hops += 1) {
    if (url.href.startsWith(CALLBACK)) return url.searchParams;
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    const response = await fetch(url, { redirect: 'manual', headers: { cookie } });
    for (const set of response.headers.getSetCookie()) {
      const [name, value] = set.split(';')[0].split('=');
      cookies.set(name, value);
    }
    const location = response.headers.get('location');
    if (!location) throw new Error(`${url}: ${response.status} ${await response.text()}`);
    url = new URL(location, url);
  }
  throw new Error('too many redirects');
}

// The OAuth provider that both generations of the TypeScript client need from their host.
export function host() {
  const kept = {};
  return {
    kept,
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
export async function run(label, { Client, StreamableHTTPClientTransport }, options, url) {
  const provider = host();
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
  console.log(`${label}: ${provider.kept.tokens.scope}`);
  await client.close();
}
