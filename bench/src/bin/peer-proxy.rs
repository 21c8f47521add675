//! The limit of a gateway: a reverse proxy that streams bodies both ways. It checks
//! nothing and implements no protocol.

use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    http::{StatusCode, Uri, uri::Authority},
    response::{IntoResponse, Response},
};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};

/// The allocator of the `larder` binary.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[derive(Clone)]
struct Upstream {
    client: Client<HttpConnector, Body>,
    authority: Authority,
}

async fn pass(State(upstream): State<Upstream>, mut request: Request) -> Response {
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
    let target = Uri::builder().scheme("http").authority(upstream.authority.clone());
    let Ok(target) = target.path_and_query(path).build() else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    *request.uri_mut() = target;
    match upstream.client.request(request).await {
        Ok(response) => response.map(Body::new),
        Err(error) => (StatusCode::BAD_GATEWAY, error.to_string()).into_response(),
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let authority = std::env::args().nth(1).ok_or("the address of the upstream")?.parse()?;
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    let client = Client::builder(TokioExecutor::new()).build(connector);
    let listener = larder_bench::listen("proxy").await?;
    let router = Router::new().fallback(pass).with_state(Upstream { client, authority });
    axum::serve(listener, router).await?;
    Ok(())
}
