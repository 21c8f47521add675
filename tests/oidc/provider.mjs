// A certified OpenID provider as the authorization server of the tests. The names of the clients
// determine the format of their tokens, logins and consents need no user interaction, and tests
// can rotate the keys and disturb the key endpoint.
//
//   node provider.mjs            prints {"issuer": "http://127.0.0.1:<port>"}; https, with the
//                                files that TLS_KEY and TLS_CERT name. With REGISTRATION=off no
//                                client can register
//   POST /test/rotate            replaces all keys
//   POST /test/jwks/<mode>       up, down (503) or hang (no response)
//   POST /test/documents/<host>  replaces all keys, and from now on supports Client ID Metadata
//                                Documents; those of https://larder.example are read at the host
//   POST /test/userinfo/<mode>   up or down (503)
//   POST /test/token/<mode>      up, down (503) or hang: the token endpoint
//   POST /test/disable/<user>    from now on there is no such user
//   GET  /test/counts            how often each path was requested
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createServer as createEncrypted } from 'node:https';
import { createPublicKey, generateKeyPairSync, randomUUID } from 'node:crypto';
import { createLocalJWKSet, jwtVerify } from 'jose';
import Provider, { errors } from 'oidc-provider';

const SECRET = 'a secret for tests only';
const SCOPES = 'mcp:read mcp:write mcp:admin';
const TOKEN_EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange';
// The groups of the users who have any.
const GROUPS = { bob: ['analysts', 'others'], carol: ['others'] };

// The format and algorithm of a client's tokens depend on its name.
function format(client) {
  const kind = client.clientId.split('-')[1] ?? 'rs256';
  if (kind === 'opaque') return { accessTokenFormat: 'opaque' };
  const alg = { rs256: 'RS256', es256: 'ES256', eddsa: 'EdDSA', ed25519: 'Ed25519' }[kind];
  return { accessTokenFormat: 'jwt', jwt: { sign: { alg: alg ?? 'RS256' } } };
}

function keys() {
  const jwk = (kind, options, alg) => {
    const { privateKey } = generateKeyPairSync(kind, options);
    return { ...privateKey.export({ format: 'jwk' }), use: 'sig', kid: randomUUID(), ...(alg && { alg }) };
  };
  return {
    keys: [
      jwk('rsa', { modulusLength: 2048 }, 'RS256'),
      jwk('ec', { namedCurve: 'P-256' }, 'ES256'),
      jwk('ed25519', {}),
    ],
  };
}

const machine = (client_id) => ({
  client_id,
  client_secret: SECRET,
  grant_types: ['client_credentials'],
  redirect_uris: [],
  response_types: [],
});
// Larder as a client of its own login: nobody can register there.
const larder = {
  client_id: 'larder',
  client_secret: SECRET,
  application_type: 'native',
  grant_types: ['authorization_code', 'refresh_token'],
  redirect_uris: ['http://127.0.0.1/mcp/login/callback'],
  response_types: ['code'],
};
// The console as a client: its person is that of the login hint, or alice.
const ofConsole = (client_id) => ({
  ...larder,
  client_id,
  redirect_uris: ['http://127.0.0.1/console/callback', 'http://localhost/console/callback'],
});
// Larder as a client that exchanges the tokens of its callers.
const gateway = { ...machine('gateway'), grant_types: [TOKEN_EXCHANGE] };
const app = (client_id) => ({
  client_id,
  application_type: 'native',
  token_endpoint_auth_method: 'none',
  grant_types: ['authorization_code', 'refresh_token'],
  redirect_uris: ['http://127.0.0.1/callback'],
  response_types: ['code'],
});

function provider(issuer) {
  const jwks = keys();
  const oidc = new Provider(issuer, {
    jwks,
    cookies: { keys: [randomUUID()] },
    clients: [
      ...['rs256', 'es256', 'eddsa', 'ed25519', 'opaque'].flatMap((kind) => [
        machine(`machine-${kind}`),
        app(`app-${kind}`),
      ]),
      { ...machine('resource-server') },
      larder,
      ofConsole('console'),
      ofConsole('console-opaque'),
      gateway,
    ],
    enabledJWA: { idTokenSigningAlgValues: ['RS256', 'ES256', 'EdDSA', 'Ed25519'] },
    // The dispatcher would refuse addresses of this machine.
    fetch: (url, options) =>
      fetch(String(url).replace('https://larder.example', documents), { ...options, dispatcher: undefined }),
    pkce: { required: () => true },
    scopes: ['openid', 'offline_access', ...SCOPES.split(' ')],
    issueRefreshToken: async () => true,
    rotateRefreshToken: true,
    ttl: { AccessToken: 600, ClientCredentials: 600, Grant: 3600, Interaction: 600, RefreshToken: 3600, Session: 3600, IdToken: 600 },
    extraTokenClaims: (_, token) => {
      const groups = GROUPS[token.accountId];
      return groups && { groups };
    },
    claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name', 'groups'] },
    findAccount: (_, id) => (disabled.has(id) ? undefined : { accountId: id, claims: () => account(id) }),
    interactions: { url: (_, interaction) => `/interaction/${interaction.uid}` },
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      introspection: { enabled: true, allowedPolicy: () => true },
      revocation: { enabled: true, allowedPolicy: () => true },
      registration: { enabled: process.env.REGISTRATION !== 'off' },
      clientIdMetadataDocument: { enabled: documents !== undefined, ack: 'draft-02' },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => undefined,
        useGrantedResource: () => true,
        getResourceServerInfo: (_, resource, client) => ({
          scope: SCOPES,
          audience: resource,
          accessTokenTTL: 600,
          ...format(client),
        }),
      },
    },
  });
  exchangeTokens(oidc, jwks);
  oidc.on('registration_create.success', (_, client) => registered.push(client.clientId));
  return oidc;
}

// Token exchange (RFC 8693), which the provider leaves to those who run it.
function exchangeTokens(oidc, { keys }) {
  const publicKey = ({ kid, alg, ...key }) => ({
    ...createPublicKey({ key, format: 'jwk' }).export({ format: 'jwk' }),
    kid,
    ...(alg && { alg }),
  });
  const known = createLocalJWKSet({ keys: keys.map(publicKey) });
  const exchange = async (ctx) => {
    const { client, params } = ctx.oidc;
    const verified = jwtVerify(params.subject_token, known, { issuer: oidc.issuer });
    const { payload } = await verified.catch(() => {
      throw new errors.InvalidGrant('the subject token is not valid');
    });
    if (!params.resource) throw new errors.InvalidTarget('there is no resource');
    const scopes = (params.scope ?? payload.scope ?? '').split(' ').filter(Boolean);
    if (!scopes.every((scope) => SCOPES.split(' ').includes(scope))) {
      throw new errors.InvalidScope('unknown scope', params.scope);
    }
    const token = new oidc.AccessToken({
      client,
      accountId: payload.sub,
      scope: scopes.join(' '),
      expiresWithSession: false,
    });
    const info = { scope: SCOPES, audience: params.resource, accessTokenTTL: 600, ...format(client) };
    token.resourceServer = new oidc.ResourceServer(params.resource, info);
    ctx.body = {
      access_token: await token.save(),
      issued_token_type: params.subject_token_type,
      token_type: 'Bearer',
      expires_in: 600,
    };
  };
  const required = ['subject_token', 'subject_token_type', 'requested_token_type'];
  oidc.registerGrantType(TOKEN_EXCHANGE, exchange, [...required, 'audience', 'resource', 'scope']);
}

// Logs in the user of the login hint, who consents to everything.
async function interact(oidc, request, response) {
  const { params, prompt } = await oidc.interactionDetails(request, response);
  const accountId = params.login_hint ?? 'alice';
  const grant = new oidc.Grant({ accountId, clientId: params.client_id });
  grant.addOIDCScope(params.scope ?? 'openid');
  for (const resource of [params.resource ?? []].flat()) {
    grant.addResourceScope(resource, params.scope);
  }
  const result = { login: { accountId }, consent: { grantId: await grant.save() } };
  await oidc.interactionFinished(request, response, result, { mergeWithLastSubmission: false });
  return prompt;
}

// Clients register with the scopes of the first challenge, to which the provider would limit
// all later requests.
async function register(request) {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  const { scope, ...metadata } = JSON.parse(Buffer.concat(chunks));
  request.body = metadata;
}

const account = (sub) => ({
  sub,
  name: sub,
  email: `${sub}@${sub === 'mallory' ? 'evil.example' : 'example.com'}`,
  email_verified: true,
  groups: GROUPS[sub] ?? [],
});
const disabled = new Set();
let oidc;
let jwks = 'up';
let documents;
let userinfo = 'up';
let tokens = 'up';
const counts = {};
const registered = [];
const { TLS_KEY, TLS_CERT } = process.env;
const encrypted = TLS_KEY && { key: readFileSync(TLS_KEY), cert: readFileSync(TLS_CERT) };
const answer = async (request, response) => {
  const { pathname } = new URL(request.url, 'http://localhost');
  counts[pathname] = (counts[pathname] ?? 0) + 1;
  if (pathname === '/test/counts') return response.end(JSON.stringify(counts));
  if (pathname === '/test/rotate') {
    oidc = provider(oidc.issuer);
    return response.end();
  }
  if (pathname.startsWith('/test/documents/')) {
    documents = `http://${pathname.split('/').pop()}`;
    oidc = provider(oidc.issuer);
    return response.end();
  }
  if (pathname === '/test/forget') {
    await Promise.all(registered.splice(0).map((id) => oidc.Client.adapter.destroy(id)));
    return response.end();
  }
  if (pathname.startsWith('/test/disable/')) {
    disabled.add(pathname.split('/').pop());
    return response.end();
  }
  if (pathname.startsWith('/test/jwks/')) {
    jwks = pathname.split('/').pop();
    return response.end();
  }
  if (pathname.startsWith('/test/userinfo/')) {
    userinfo = pathname.split('/').pop();
    return response.end();
  }
  if (pathname.startsWith('/test/token/')) {
    tokens = pathname.split('/').pop();
    return response.end();
  }
  if (pathname === '/token' && tokens === 'hang') return undefined;
  if (pathname === '/token' && tokens === 'down') {
    response.statusCode = 503;
    return response.end('{}');
  }
  if (pathname === '/me' && userinfo === 'down') {
    response.statusCode = 503;
    return response.end('{}');
  }
  if (pathname === '/jwks' && jwks === 'hang') return undefined;
  if (pathname === '/jwks' && jwks === 'down') {
    response.statusCode = 503;
    return response.end('{}');
  }
  if (pathname === '/reg') await register(request);
  if (pathname.startsWith('/interaction/')) return interact(oidc, request, response);
  return oidc.callback()(request, response);
};
const server = encrypted ? createEncrypted(encrypted, answer) : createServer(answer);
server.listen(Number(process.env.PORT ?? 0), '127.0.0.1', () => {
  const issuer = `${encrypted ? 'https' : 'http'}://127.0.0.1:${server.address().port}`;
  oidc = provider(issuer);
  console.log(JSON.stringify({ issuer }));
});
// The parent process closes standard input when it ends.
process.stdin.resume();
process.stdin.on('end', () => process.exit(0));
