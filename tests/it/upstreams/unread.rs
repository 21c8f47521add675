//! Answers of upstreams that their clients do not read: they count as memory of messages until they
//! are sent or dropped.

use std::time::Duration;

use larder::{
    Registry,
    tools::{self, ToolOptions},
    upstream::{SessionPolicy, Upstreams},
};
use reqwest::{RequestBuilder, Response};
use serde_json::{Value, json};

use super::{
    bounds::{MIB, large, serving},
    streaming::memory,
};
use crate::support::{
    Answer, Legacy, Modern, RedisServer, Server, eventually, patiently, process::Process,
};

const METHOD: &str = "completion/complete";

/// A request for words of so many bytes together, which are in the result as they are.
fn words(bytes: usize) -> Value {
    json!({
        "ref": { "type": "ref/prompt", "name": "words" },
        "argument": { "name": "word", "value": bytes.to_string() },
    })
}

/// A client, as it asks for the words.
#[derive(Debug, Clone, Copy)]
enum Client {
    Modern,
    Legacy,
}

impl Client {
    async fn request(self, server: &Server) -> RequestBuilder {
        match self {
            Self::Modern => Modern::of(server).request(1, METHOD, words(9 * MIB)),
            Self::Legacy => {
                let body = json!({ "jsonrpc": "2.0", "id": 1, "method": METHOD, "params": words(9 * MIB) });
                Legacy::of(server).await.post(&body)
            }
        }
    }
}

/// A server in front of an upstream, whose messages have 32 MiB together. `stream`: whether its
/// responses are streams.
async fn server(stream: bool, redis: Option<&RedisServer>) -> Server {
    let builder = Registry::builder("gateway").with(tools::reading(ToolOptions::default()));
    let mut settings = large("large", &[]);
    // A message that has no room is refused at once.
    settings.session = SessionPolicy::All;
    let upstreams = Upstreams::new(vec![settings], Vec::new(), builder.tool_names()).unwrap();
    upstreams.limit_messages(32 * MIB);
    let builder = upstreams.providers().into_iter().fold(builder, larder::Builder::provider);
    let registry = builder.build().unwrap();

    let url = redis.map(RedisServer::url);
    Server::configured(|setup| {
        if let Some(url) = url {
            setup.config.store.url = url;
            setup.config.redis.migrate = true;
        }
        if stream {
            setup.http = Box::new(|http| http.promote_after = Duration::ZERO);
        }
        setup.offers = Box::new(|_, _| registry);
    })
    .await
}

/// The beginning of a response, of which no more is read.
async fn begun(request: RequestBuilder) -> Response {
    let mut response = patiently("a response", request.send()).await.unwrap();
    let mut read = 0;
    while read < 32 << 10 {
        let chunk = patiently("its beginning", response.chunk()).await.unwrap();
        read += chunk.expect("a long response").len();
    }
    response
}

/// A client reads the beginning of an answer and stops. Until it has gone, there is no room for
/// another one.
async fn counts_until_its_client_has_gone(server: &Server, client: Client) {
    let unread = begun(client.request(server).await).await;

    let refused = Answer::of(client.request(server).await).await.in_any_form().json();
    let message = refused["error"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("limits.upstream_bytes"), "{client:?}: {refused:.300}");

    drop(unread);
    eventually("room", async || {
        let answer = Answer::of(client.request(server).await).await.in_any_form().json();
        answer.get("result").is_some()
    })
    .await;
}

#[tokio::test]
async fn an_answer_that_nobody_reads_counts_until_it_is_sent() {
    for stream in [false, true] {
        let server = server(stream, None).await;
        for client in [Client::Modern, Client::Legacy] {
            counts_until_its_client_has_gone(&server, client).await;
        }
    }
}

#[tokio::test]
async fn an_answer_that_comes_back_from_redis_counts_until_it_is_sent() {
    let redis = RedisServer::start().await;
    let server = server(true, Some(&redis)).await;
    counts_until_its_client_has_gone(&server, Client::Legacy).await;
}

#[tokio::test]
async fn answers_that_48_clients_do_not_read_stay_within_the_memory_of_messages() {
    let (_file, command) = serving(&[], 32 * MIB, "8MiB", r#"session = "all""#);
    let server = Process::start(command).await;
    let client = Modern::at(&server.url);
    client.send("prompts/list", json!({})).await.result();
    let before = memory(&server, "VmHWM:");

    let mut unread = Vec::new();
    for _ in 0..48 {
        let request = client.request(1, METHOD, words(9 * MIB));
        unread.push(patiently("a response", request.send()).await.unwrap());
    }
    let grown = memory(&server, "VmHWM:") - before;
    assert!(grown < 128 * MIB, "{} MiB", grown / MIB);
    drop(unread);
    eventually("room", async || {
        client.send(METHOD, words(9 * MIB)).await.json().get("result").is_some()
    })
    .await;
}
