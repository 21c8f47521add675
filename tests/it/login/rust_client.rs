//! The official Rust client logs in from the bare URL, and later asks for a further scope.

use reqwest::Url;
use rmcp::{
    ServiceExt,
    model::CallToolRequestParams,
    transport::{
        StreamableHttpClientTransport,
        auth::{AuthClient, AuthorizationRequest, OAuthState},
        streamable_http_client::StreamableHttpClientTransportConfig,
    },
};
use serde_json::{Value, json};

use super::{Browser, REDIRECT, Site};
use crate::support::{http, patiently};

/// The user logs in at this URL and allows what the client asks for.
async fn allow(state: &mut OAuthState, browser: &mut Browser, url: &str) {
    let back = browser.log_in(Url::parse(url).unwrap(), "allow").await;
    let handled = state.handle_callback_url(back.as_str());
    patiently("the tokens", handled).await.unwrap();
}

#[tokio::test]
async fn the_rust_client_registers_logs_in_and_steps_up() {
    let site = Site::start().await;
    let mut browser = Browser::of("bob");
    let mut state = OAuthState::new(&site.server.url, None).await.unwrap();
    let request = AuthorizationRequest::new(REDIRECT)
        .with_client_name("rmcp")
        .with_application_type("native")
        .with_initial_scope_selection();
    patiently("discovery", state.start_authorization(request)).await.unwrap();
    let url = state.get_authorization_url().await.unwrap();
    allow(&mut state, &mut browser, &url).await;
    assert!(browser.pages.pop().unwrap().contains("<code>mcp:read</code>"));

    let url = state.request_scope_upgrade("mcp:write", REDIRECT).await.unwrap();
    allow(&mut state, &mut browser, &url).await;
    assert!(browser.pages.pop().unwrap().contains("<code>mcp:write</code>"));

    let manager = state.into_authorization_manager().unwrap();
    let config = StreamableHttpClientTransportConfig::with_uri(site.server.url.as_str());
    let client = AuthClient::new(http().clone(), manager);
    let transport = StreamableHttpClientTransport::with_client(client, config);
    let client = patiently("a client", ().serve(transport)).await.unwrap();
    let Value::Object(arguments) = json!({ "uri": "a://1", "text": "bob's" }) else { panic!() };
    let params = CallToolRequestParams::new("create_resource").with_arguments(arguments);
    let created = patiently("a call", client.call_tool(params)).await.unwrap();
    assert_ne!(created.is_error, Some(true), "{created:?}");
    patiently("the end", client.cancel()).await.unwrap();
}
