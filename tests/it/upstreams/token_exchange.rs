//! Upstreams that get tokens in exchange for those of callers (RFC 8693), by the certified OpenID
//! provider.

use std::sync::{Arc, Mutex};

use axum::{
    Router,
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
    routing::post,
};
use futures_util::future::join_all;
use larder::{
    Context, Registry, Resource, Tool,
    clock::{Clock, SystemClock},
    config::{AuthMode, IssuerConfig},
    upstream::{
        Remote, RemoteAuth, Settings, State, Status, TokenExchangeSettings, TokenServer, Upstreams,
    },
};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::text;
use crate::{
    auth::provider::Provider,
    support::{
        Legacy, Modern, Server, TextFile, eventually,
        process::{larder, run},
    },
};

/// Says who calls.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Whoami {}

/// A server that accepts the tokens of a provider that are for itself.
async fn server(issuer: &str, registry: Registry) -> Server {
    let issuer = issuer.to_owned();
    let server = Server::configured(|setup| {
        let config = &mut setup.config;
        config.server.public_url = Some(format!("http://{}/mcp", config.server.listen));
        config.auth.mode = AuthMode::OAuth;
        config.auth.issuers = vec![IssuerConfig { issuer, ..IssuerConfig::default() }];
        setup.offers = Box::new(|_, _| registry);
    })
    .await;
    let now = SystemClock.now().since(server.clock.now());
    server.clock.advance(now);
    server
}

async fn upstream(issuer: &str) -> Server {
    let whoami = |ctx: Context, _: Whoami| async move { ctx.principal().to_string() };
    let builder = Registry::builder("crm").tool(Tool::new(whoami));
    let secret = Resource::text("docs://secret", "hush").scope("mcp:write");
    server(issuer, builder.resource(secret).build().unwrap()).await
}

/// Larder in front of it.
async fn gateway(
    issuer: &str,
    upstream: &str,
    change: impl Fn(&mut TokenExchangeSettings),
) -> (Server, Upstreams) {
    let mut exchange = TokenExchangeSettings {
        server: TokenServer::Endpoint(format!("{issuer}/token")),
        client_id: "gateway".into(),
        client_secret: "a secret for tests only".into(),
        resource: Some(upstream.to_owned()),
        audience: None,
        scopes: Vec::new(),
        max_tokens: 10,
    };
    change(&mut exchange);
    let auth = Some(RemoteAuth::Exchange(exchange));
    let remote = Remote { url: upstream.into(), auth, ..Remote::default() };
    let upstreams = Upstreams::new(vec![Settings::new("crm", remote)], Vec::new(), []).unwrap();
    let providers = upstreams.providers().into_iter();
    let builder = providers.fold(Registry::builder("gateway"), larder::Builder::provider);
    (server(issuer, builder.build().unwrap()).await, upstreams)
}

struct World {
    provider: Provider,
    upstream: Server,
    gateway: Server,
    upstreams: Upstreams,
}

impl World {
    async fn new() -> Self {
        Self::changed(|_| {}).await
    }

    async fn changed(change: impl Fn(&mut TokenExchangeSettings)) -> Self {
        let provider = Provider::start().await;
        let upstream = upstream(&provider.issuer).await;
        let (gateway, upstreams) = gateway(&provider.issuer, &upstream.url, change).await;
        Self { provider, upstream, gateway, upstreams }
    }

    /// What an operator sees of the upstream.
    fn status(&self) -> Status {
        self.upstreams.statuses().remove(0)
    }

    /// A client whose token is for the gateway only.
    async fn client(&self, machine: &str, scope: &str) -> Modern {
        let token = self.provider.machine_for(machine, scope, &self.gateway.url).await;
        Modern::bearing(&self.gateway, &token)
    }

    /// How many tokens were asked for.
    async fn tokens(&self) -> u64 {
        self.provider.fetches("/token").await
    }
}

async fn whoami(client: &Modern) -> String {
    text(&client.call("whoami", json!({})).await.result()).to_owned()
}

#[tokio::test]
async fn each_caller_has_a_token_of_its_own_at_the_upstream() {
    let world = World::new().await;
    let rsa = world.client("rs256", "mcp:read").await;
    let curve = world.client("es256", "mcp:read").await;
    let before = world.tokens().await;
    for _ in 0..3 {
        assert!(whoami(&rsa).await.contains("machine-rs256"));
        assert!(whoami(&curve).await.contains("machine-es256"));
    }
    // One exchange for each token, however many requests there are.
    assert_eq!(world.tokens().await, before + 2);
    // A session presents a token with each request, too.
    let token = world.provider.machine_for("rs256", "mcp:read", &world.gateway.url).await;
    let legacy = Legacy::bearing(&world.gateway, &token).await;
    let said = legacy.call("whoami", json!({})).await.result();
    assert!(text(&said).contains("machine-rs256"), "{said}");
}

#[tokio::test]
async fn a_request_uses_the_token_that_came_with_it() {
    let world = World::new().await;
    let narrow = world.client("rs256", "mcp:read").await;
    let wide = world.client("rs256", "mcp:read mcp:write").await;
    let read = async |client: &Modern| {
        let read = client.send("resources/read", json!({ "uri": "docs://secret" })).await;
        read.in_any_form().json()["result"]["contents"][0]["text"].as_str().map(str::to_owned)
    };
    // They are one principal and share a connection, not their rights.
    assert_eq!(read(&wide).await.as_deref(), Some("hush"));
    assert_eq!(read(&narrow).await, None);
    assert_eq!(read(&wide).await.as_deref(), Some("hush"));
}

#[tokio::test]
async fn the_own_token_of_a_caller_does_not_reach_the_upstream() {
    let world = World::new().await;
    let token = world.provider.machine_for("rs256", "mcp:read", &world.gateway.url).await;
    // The upstream would not accept it: it is for the gateway.
    let direct = Modern::bearing(&world.upstream, &token);
    assert_eq!(direct.send("tools/list", json!({})).await.status, 401);
    let client = Modern::bearing(&world.gateway, &token);
    assert!(whoami(&client).await.contains("machine-rs256"));
}

#[tokio::test]
async fn a_refused_exchange_is_told_and_not_repeated_at_each_call() {
    let refused = [
        (
            "invalid_client",
            (|exchange| exchange.client_secret = "wrong".into()) as fn(&mut TokenExchangeSettings),
        ),
        ("invalid_target", |exchange| exchange.resource = None),
        ("invalid_scope", |exchange| exchange.scopes = vec!["nonsense".into()]),
    ];
    for (code, change) in refused {
        let world = World::changed(change).await;
        let client = world.client("rs256", "mcp:read").await;
        let before = world.tokens().await;
        for _ in 0..4 {
            let result = client.call("whoami", json!({})).await.result();
            assert_eq!(result["isError"], true, "{result}");
            let said = text(&result);
            assert!(said.contains("crm cannot be used with your token: "), "{said}");
            assert!(said.contains(code) && !said.contains("eyJ"), "{said}");
        }
        assert_eq!(world.tokens().await, before + 1, "{code}");
    }
}

#[tokio::test]
async fn a_token_that_the_upstream_refuses_is_exchanged_once_more() {
    let world = World::new().await;
    let client = world.client("rs256", "mcp:read").await;
    assert!(whoami(&client).await.contains("machine-rs256"));
    let before = world.tokens().await;
    // For the upstream, an hour has passed: it refuses the old token and the new one.
    world.upstream.clock.advance(std::time::Duration::from_secs(3600));
    let result = client.call("whoami", json!({})).await.result();
    let said = text(&result);
    assert!(said.contains("it refuses the one that was exchanged for it"), "{said}");
    assert_eq!(world.tokens().await, before + 1);
}

#[tokio::test]
async fn without_the_authorization_server_calls_fail_and_recover() {
    let world = World::new().await;
    let client = world.client("rs256", "mcp:read").await;
    world.provider.token_endpoint("down").await;
    let result = client.call("whoami", json!({})).await.result();
    let said = text(&result);
    assert!(said.contains("does not respond. Try again shortly"), "{said}");
    world.provider.token_endpoint("up").await;
    let works = async || whoami(&client).await.contains("machine-rs256");
    eventually("the call works", works).await;
    // One that hangs is given up, in less time than a call may take, and once for all that wait.
    let client = world.client("rs256", "mcp:read").await;
    world.provider.token_endpoint("hang").await;
    let before = world.tokens().await;
    for said in join_all((0..6).map(|_| whoami(&client))).await {
        assert!(said.contains("does not respond. Try again shortly"), "{said}");
    }
    assert_eq!(world.tokens().await, before + 1);
    world.provider.token_endpoint("up").await;
    let works = async || whoami(&client).await.contains("machine-rs256");
    eventually("the call works", works).await;
}

#[tokio::test]
async fn a_caller_without_a_token_is_no_failure_of_the_upstream() {
    for mode in ["down", "hang"] {
        let world = World::new().await;
        let [first, second, third] = ["rs256", "es256", "eddsa"];
        let first = world.client(first, "mcp:read").await;
        let second = world.client(second, "mcp:read").await;
        let third = world.client(third, "mcp:read").await;
        world.provider.token_endpoint(mode).await;
        // Nobody else uses it.
        assert!(whoami(&second).await.contains("does not respond"));
        let Status { state, failures, last_error, .. } = world.status();
        assert_ne!(state, State::Down, "{mode}");
        assert_eq!((failures, last_error), (0, None), "{mode}");
        world.provider.token_endpoint("up").await;
        let works = async || whoami(&first).await.contains("machine-rs256");
        eventually("the call works", works).await;
        // For others it goes on, as it was found.
        world.provider.token_endpoint(mode).await;
        assert!(whoami(&third).await.contains("does not respond"));
        assert!(whoami(&first).await.contains("machine-rs256"));
        let Status { state, era, failures, last_error, .. } = world.status();
        assert_eq!((state, era.as_deref()), (State::Up, Some("modern")), "{mode}");
        assert_eq!((failures, last_error), (0, None), "{mode}");
    }
}

/// A legacy server whose streams of notifications end at once, and an authorization server that
/// gives one token, for some seconds.
#[derive(Default)]
struct Fakes {
    /// The credentials of each request for a stream of notifications.
    streams: Mutex<Vec<Option<String>>>,
    exchanges: Mutex<usize>,
}

fn of_json(value: &Value) -> Response {
    ([("content-type", "application/json")], value.to_string()).into_response()
}

impl Fakes {
    /// Starts both. Returns their URL, without a path.
    async fn start(self: &Arc<Self>) -> String {
        let (fakes, of_token) = (Arc::clone(self), Arc::clone(self));
        let answer = |body: String| async move {
            let message: Value = serde_json::from_str(&body).unwrap();
            let result = match message["method"].as_str().unwrap() {
                _ if message["id"].is_null() => return StatusCode::ACCEPTED.into_response(),
                "initialize" => json!({
                    "protocolVersion": "2025-11-25",
                    "capabilities": { "tools": {} },
                    "serverInfo": { "name": "fake", "version": "1" },
                }),
                "tools/list" => {
                    json!({ "tools": [{ "name": "whoami", "inputSchema": { "type": "object" } }] })
                }
                "tools/call" => json!({ "content": [{ "type": "text", "text": "somebody" }] }),
                method => {
                    let error = json!({ "code": -32601, "message": method });
                    let refused = json!({ "jsonrpc": "2.0", "id": message["id"], "error": error });
                    return of_json(&refused);
                }
            };
            let answer = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result });
            ([("mcp-session-id", "s")], of_json(&answer)).into_response()
        };
        let stream = move |headers: HeaderMap| async move {
            let credentials = headers.get("authorization").map(|v| v.to_str().unwrap().to_owned());
            fakes.streams.lock().unwrap().push(credentials);
            ([("content-type", "text/event-stream")], ": nothing\n\n")
        };
        let token = move || async move {
            let mut exchanges = of_token.exchanges.lock().unwrap();
            *exchanges += 1;
            if *exchanges > 1 {
                return StatusCode::SERVICE_UNAVAILABLE.into_response();
            }
            let token = json!({ "access_token": "t", "token_type": "Bearer", "expires_in": 3 });
            of_json(&token)
        };
        let router = Router::new().route("/mcp", post(answer).get(stream));
        let router = router.route("/token", post(token));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, router).await });
        format!("http://{address}")
    }
}

#[tokio::test]
async fn without_a_token_nothing_is_sent() {
    let fakes = Arc::new(Fakes::default());
    let url = fakes.start().await;
    let provider = Provider::shared().await;
    let (gateway, _upstreams) = gateway(&provider.issuer, &format!("{url}/mcp"), |exchange| {
        exchange.server = TokenServer::Endpoint(format!("{url}/token"));
    })
    .await;
    let token = provider.machine_for("rs256", "mcp:read", &gateway.url).await;
    let client = Modern::bearing(&gateway, &token);
    assert_eq!(whoami(&client).await, "somebody");
    // The stream is opened again and again, at last without a token that is valid.
    eventually("exchanges that fail", async || *fakes.exchanges.lock().unwrap() > 2).await;
    let streams = fakes.streams.lock().unwrap().clone();
    assert!(!streams.is_empty());
    let is_authorized = |sent: &Option<String>| sent.as_deref() == Some("Bearer t");
    assert!(streams.iter().all(is_authorized), "{streams:?}");
}

#[tokio::test]
async fn the_metadata_of_an_issuer_name_the_token_endpoint() {
    let provider = Provider::start().await;
    let upstream = upstream(&provider.issuer).await;
    let issuer = provider.issuer.clone();
    let (gateway, _) = gateway(&issuer, &upstream.url, |exchange| {
        exchange.server = TokenServer::Issuer(issuer.clone());
    })
    .await;
    let token = provider.machine_for("rs256", "mcp:read", &gateway.url).await;
    let client = Modern::bearing(&gateway, &token);
    assert!(whoami(&client).await.contains("machine-rs256"));
}

#[tokio::test]
async fn settings_that_cannot_work_are_refused_at_the_start() {
    let exchange = "exchange = { token_url = \"https://login.example/token\", client_id = \"larder\", client_secret = \"x\" }";
    let remote = "url = \"https://crm.example/mcp\"";
    for (mode, upstream, problem) in [
        ("none", format!("{remote}\n{exchange}"), "auth.mode = \"oauth\""),
        ("oauth", format!("command = [\"crm\"]\n{exchange}"), "it is for upstreams with a url"),
        ("oauth", format!("{remote}\nauth = {{ kind = \"oauth\" }}\n{exchange}"), "auth as well"),
        ("oauth", format!("{remote}\nsession = \"all\"\n{exchange}"), "each caller needs its own"),
        (
            "oauth",
            format!("{remote}\n{}", exchange.replace("https://login", "ftp://login")),
            "upstreams.exchange.token_url",
        ),
        (
            "oauth",
            format!("{remote}\n{}", exchange.replace("token_url", "audience")),
            "set either this or issuer",
        ),
        (
            "oauth",
            format!("{remote}\n{}", exchange.replace("client_secret", "client_secret_file")),
            "upstreams.exchange.client_secret_file",
        ),
        (
            "oauth",
            format!("{remote}\n{}", exchange.replace(", client_secret = \"x\"", "")),
            "set either this or client_secret_file",
        ),
        (
            "oauth",
            format!("{remote}\nheaders = {{ Authorization = \"x\" }}\n{exchange}"),
            "with exchange, authorization is not set here",
        ),
    ] {
        let file = TextFile::new(&format!(
            "[server]\npublic_url = \"https://larder.example/mcp\"\nstate_key_file = \"/dev/null\"\n\
             [auth]\nmode = \"{mode}\"\n[[auth.issuers]]\nissuer = \"https://login.example\"\n\
             [[upstreams]]\nname = \"crm\"\n{upstream}\n"
        ));
        let checked = run(larder(&["config", "check", "--config", file.path()])).await;
        assert_ne!(checked.code, Some(0), "{checked:?}");
        assert!(checked.stderr.contains(problem), "{problem}: {checked:?}");
    }
    let file = TextFile::new(&format!(
        "[server]\npublic_url = \"https://larder.example/mcp\"\n\
         [auth]\nmode = \"oauth\"\n[[auth.issuers]]\nissuer = \"https://login.example\"\n\
         [[upstreams]]\nname = \"crm\"\n{remote}\n{exchange}\n"
    ));
    let served = run(larder(&["serve", "--stdio", "--config", file.path()])).await;
    assert_eq!(served.code, Some(2), "{served:?}");
    assert!(served.stderr.contains("upstreams.exchange: over stdio"), "{served:?}");
}
