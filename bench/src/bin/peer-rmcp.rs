//! A server on the official Rust SDK: `peer-rmcp stateless|sessions`.

use std::sync::Arc;

use axum::serve::ListenerExt;
use larder_bench::large;
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    handler::server::wrapper::Parameters,
    model::*,
    service::RequestContext,
    tool, tool_handler, tool_router,
    transport::streamable_http_server::{
        StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
    },
};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Echo {
    text: String,
}

#[derive(Clone)]
struct Peer;

#[tool_router]
impl Peer {
    #[tool(description = "Returns its text.")]
    fn echo(&self, Parameters(Echo { text }): Parameters<Echo>) -> String {
        text
    }
}

#[tool_handler]
impl ServerHandler for Peer {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().enable_resources().build())
    }

    async fn read_resource(
        &self,
        _: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let text = ResourceContents::text(large(), "bench://large");
        Ok(ReadResourceResult::new(vec![text]).into())
    }
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let sessions = std::env::args().nth(1).as_deref() == Some("sessions");
    let mut config = StreamableHttpServerConfig::default();
    config.legacy_session_mode = sessions;
    config.json_response = !sessions;
    let service =
        StreamableHttpService::new(|| Ok(Peer), Arc::new(LocalSessionManager::default()), config);
    let listener = larder_bench::listen("rmcp").await?;
    // Nagle's algorithm would delay the small writes of its streams.
    let listener = listener.tap_io(|connection| {
        if let Err(error) = connection.set_nodelay(true) {
            eprintln!("{error}");
        }
    });
    axum::serve(listener, axum::Router::new().nest_service("/mcp", service)).await
}
