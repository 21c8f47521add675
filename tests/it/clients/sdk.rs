//! The client of the official Rust SDK as an independent peer.

use rmcp::{
    ClientLifecycleMode, ClientServiceExt, RoleClient,
    model::{
        CallToolRequestParams, ProtocolVersion, ReadResourceRequestParams, ResourceContents,
        SubscriptionFilter,
    },
    service::RunningService,
    transport::{
        StreamableHttpClientTransport, TokioChildProcess,
        streamable_http_client::StreamableHttpClientTransportConfig,
    },
};
use serde_json::{Value, json};

use crate::support::{Server, ToolState, http, numbered_lines, patiently, process::larder};

type Client = RunningService<RoleClient, ()>;

fn discover() -> ClientLifecycleMode {
    ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] }
}

async fn connected(server: &Server, lifecycle: ClientLifecycleMode) -> Client {
    let config = StreamableHttpClientTransportConfig::with_uri(server.url.as_str());
    let transport = StreamableHttpClientTransport::with_client(http().clone(), config);
    patiently("a client", ().serve_with_lifecycle(transport, lifecycle)).await.unwrap()
}

async fn call(client: &Client, tool: &str, arguments: Value) -> String {
    let Value::Object(arguments) = arguments else { panic!("an object") };
    let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
    let result = patiently(tool, client.call_tool(params)).await.unwrap();
    let result = serde_json::to_value(result).unwrap();
    assert_ne!(result["isError"], true, "{result}");
    result["content"][0]["text"].as_str().unwrap().to_owned()
}

async fn read(client: &Client, uri: &str) -> String {
    let params = ReadResourceRequestParams::new(uri);
    let result = patiently(uri, client.read_resource(params)).await.unwrap();
    match &result.contents[0] {
        ResourceContents::TextResourceContents { text, .. } => text.clone(),
        other => panic!("{other:?}"),
    }
}

/// The usual requests of a client.
async fn tour(client: &Client) {
    let tools = patiently("tools", client.list_all_tools()).await.unwrap();
    assert_eq!(tools[0].name, "echo");
    assert_eq!(call(client, "add", json!({ "a": 2, "b": 3 })).await, "2 + 3 = 5");
    let parked = call(client, "park", json!({ "lines": 50 })).await;
    let uri = parked.split("Access at ").nth(1).unwrap();
    assert_eq!(read(client, uri).await, numbered_lines(50));
    let listed = patiently("resources", client.list_all_resources()).await.unwrap();
    assert!(listed.iter().any(|r| r.uri == uri));
    let templates = patiently("templates", client.list_all_resource_templates()).await.unwrap();
    assert_eq!(templates[0].uri_template, "logs://{service}/{date}");
    assert_eq!(read(client, "logs://web/today").await, "web on today");
    let missing = client.read_resource(ReadResourceRequestParams::new("x:none")).await;
    assert!(missing.unwrap_err().to_string().contains("x:none"));
    let part = call(client, "read_resource", json!({ "uri": uri, "limit": 1 })).await;
    assert!(part.starts_with("Line 1 of 50 lines"), "{part}");
}

#[tokio::test]
async fn the_sdk_tours_the_legacy_era() {
    let server = Server::start().await;
    let client = connected(&server, ClientLifecycleMode::Initialize).await;
    assert_eq!(client.peer_info().unwrap().protocol_version, ProtocolVersion::V_2025_11_25);
    tour(&client).await;
    patiently("the end", client.cancel()).await.unwrap();
}

#[tokio::test]
async fn the_sdk_tours_the_modern_era() {
    let server = Server::start().await;
    let client = connected(&server, discover()).await;
    tour(&client).await;
    patiently("the end", client.cancel()).await.unwrap();
}

#[tokio::test]
async fn the_sdk_reads_slow_calls_as_streams() {
    let server = Server::streaming().await;
    for (lifecycle, key) in [(ClientLifecycleMode::Initialize, "l"), (discover(), "m")] {
        let client = connected(&server, lifecycle).await;
        let arguments = json!({ "key": key, "steps": 3 });
        let told = async { server.control.release(key, 4) };
        let (text, ()) = tokio::join!(call(&client, "stepwise", arguments), told);
        assert_eq!(text, format!("done {key}"));
        patiently("the end", client.cancel()).await.unwrap();
    }
}

#[tokio::test]
async fn the_sdk_reconnects_when_the_server_closes_the_stream() {
    let server = Server::start().await;
    let client = connected(&server, ClientLifecycleMode::Initialize).await;
    let (text, ()) = tokio::join!(call(&client, "disconnect", json!({ "key": "k" })), async {
        server.control.reached("k", ToolState::Started).await;
        server.control.release("k", 1);
    });
    assert_eq!(text, "done k");
}

#[tokio::test]
async fn the_sdk_subscribes() {
    let server = Server::start().await;
    let client = connected(&server, discover()).await;
    let mut filter = SubscriptionFilter::default();
    filter.resources_list_changed = Some(true);
    filter.resource_subscriptions = Some(vec!["x:1".into()]);
    let mut subscription = patiently("listen", client.listen(filter)).await.unwrap();
    call(&client, "create_resource", json!({ "uri": "x:1", "text": "1" })).await;
    call(&client, "update_resource", json!({ "uri": "x:1", "text": "2" })).await;
    for expected in ["ResourceListChanged", "ResourceUpdated"] {
        let heard = patiently(expected, subscription.next()).await;
        assert!(format!("{heard:?}").contains(expected), "{heard:?}");
    }
    server.stop();
    while patiently("its end", subscription.next()).await.unwrap().is_some() {}
    assert!(format!("{:?}", subscription.end()).contains("Graceful"), "{:?}", subscription.end());
}

#[tokio::test]
async fn the_sdk_works_over_stdio() {
    for lifecycle in [ClientLifecycleMode::Initialize, discover()] {
        let transport = TokioChildProcess::new(larder(&["serve", "--stdio"])).unwrap();
        let served = ().serve_with_lifecycle(transport, lifecycle);
        let client = patiently("a client", served).await.unwrap();
        let uri = call(&client, "create_resource", json!({ "text": "over pipes" })).await;
        assert_eq!(read(&client, &uri).await, "over pipes");
        patiently("the end", client.cancel()).await.unwrap();
    }
}
