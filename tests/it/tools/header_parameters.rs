//! Arguments that clients mirror into headers (`x-mcp-header`).

use std::sync::Arc;

use larder::{Builder, Tool};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::support::{Answer, Ctx, Legacy, Modern, Server, ToolControl, ToolState};

/// Runs a query in a region.
#[derive(Deserialize, JsonSchema)]
struct Execute {
    /// The region.
    #[schemars(extend("x-mcp-header" = "Region"))]
    region: String,
    /// How often to run it.
    #[schemars(extend("x-mcp-header" = "Times"))]
    times: Option<i64>,
    /// Whether to run it without effect.
    #[schemars(extend("x-mcp-header" = "Dry-Run"))]
    dry_run: Option<bool>,
    /// The query.
    query: Option<String>,
}

fn offers(builder: Builder<Arc<ToolControl>>) -> Builder<Arc<ToolControl>> {
    builder.tool(Tool::new(|ctx: Ctx, args: Execute| async move {
        ctx.state().record("execute", ToolState::Started);
        let Execute { region, times, dry_run, query } = args;
        format!("{region} {times:?} {dry_run:?} {query:?}")
    }))
}

async fn call(client: &Modern, arguments: Value, headers: &[(&str, &str)]) -> Answer {
    let params = json!({ "name": "execute", "arguments": arguments });
    let request = client.request(1, "tools/call", params);
    let add = |request: reqwest::RequestBuilder, (name, value): &(&str, &str)| {
        request.header(*name, *value)
    };
    Answer::of(headers.iter().fold(request, add)).await
}

#[tokio::test]
async fn headers_that_match_the_arguments_are_accepted() {
    let server = Server::offering(offers).await;
    let client = Modern::of(&server);
    let west = json!({ "region": "us-west1" });
    let all = json!({ "region": "us-west1", "times": 3, "dry_run": true, "query": "q" });
    let nulls = json!({ "region": "us-west1", "times": null, "dry_run": null });
    let encoded = json!({ "region": "Zürich, 北" });
    let accepted: [(&Value, &[(&str, &str)]); 7] = [
        (&west, &[("Mcp-Param-Region", "us-west1")]),
        (&west, &[("mcp-param-REGION", "  us-west1\t")]),
        (&west, &[("mcp-param-region", "=?base64?dXMtd2VzdDE=?=")]),
        (&west, &[("mcp-param-region", "us-west1"), ("mcp-param-unheard-of", "x")]),
        (&nulls, &[("mcp-param-region", "us-west1")]),
        (&encoded, &[("mcp-param-region", "=?base64?WsO8cmljaCwg5YyX?=")]),
        (
            &all,
            &[
                ("mcp-param-region", "us-west1"),
                ("mcp-param-times", "3"),
                ("mcp-param-dry-run", "true"),
            ],
        ),
    ];
    for (arguments, headers) in accepted {
        let text = call(&client, arguments.clone(), headers).await.text();
        assert!(text.starts_with(arguments["region"].as_str().unwrap()), "{headers:?}: {text}");
    }
}

#[tokio::test]
async fn headers_that_do_not_match_are_refused_before_the_handler_runs() {
    let server = Server::offering(offers).await;
    let client = Modern::of(&server);
    let west = json!({ "region": "us-west1" });
    let times = json!({ "region": "us-west1", "times": 3 });
    let precise = json!({ "region": "us-west1", "times": 9_007_199_254_740_991_i64 });
    let dry = json!({ "region": "us-west1", "dry_run": false });
    let right = ("mcp-param-region", "us-west1");
    let refused: [(&Value, &[(&str, &str)]); 16] = [
        (&west, &[]),
        (&west, &[("mcp-param-region", "us-east1")]),
        (&west, &[("mcp-param-region", "US-WEST1")]),
        (&west, &[("mcp-param-region", "")]),
        (&west, &[right, ("mcp-param-region", "us-west1")]),
        (&west, &[("mcp-param-region", "=?base64?dXMtZWFzdDE=?=")]),
        (&west, &[("mcp-param-region", "=?base64?*?=")]),
        (&west, &[("mcp-param-region", "=?base64?/w==?=")]),
        (&west, &[right, ("mcp-param-times", "3")]),
        (&times, &[right]),
        (&times, &[right, ("mcp-param-times", "4")]),
        (&times, &[right, ("mcp-param-times", "three")]),
        (&precise, &[right, ("mcp-param-times", "9007199254740990")]),
        (&dry, &[right, ("mcp-param-dry-run", "true")]),
        (&dry, &[right, ("mcp-param-dry-run", "False")]),
        (&dry, &[right, ("mcp-param-dry-run", "0")]),
    ];
    for (arguments, headers) in refused {
        let answer = call(&client, arguments.clone(), headers).await;
        assert_eq!(answer.refusal(), (400, -32020, Some(json!(1))), "{headers:?}");
    }
    assert!(!server.control.has("execute", ToolState::Started));
}

#[tokio::test]
async fn the_schema_of_the_tool_names_the_headers() {
    let server = Server::offering(offers).await;
    let tools = Modern::of(&server).list("tools/list", "tools").await;
    let properties = &tools[0]["inputSchema"]["properties"];
    assert_eq!(properties["region"]["x-mcp-header"], "Region");
    assert_eq!(properties["dry_run"]["x-mcp-header"], "Dry-Run");
    assert!(properties["query"].get("x-mcp-header").is_none());
}

#[tokio::test]
async fn sessions_ignore_such_headers() {
    let server = Server::offering(offers).await;
    let session = Legacy::of(&server).await;
    let text = session.call("execute", json!({ "region": "us-west1", "times": 3 })).await.text();
    assert_eq!(text, "us-west1 Some(3) None None");
}
