//! The examples whose tools store resources.

use base64::{Engine, prelude::BASE64_STANDARD};
use larder::clock::{Clock, SystemClock};
use serde_json::{Value, json};

use super::start;
use crate::support::{ask, process::Process};

impl Process {
    /// The response to a request outside of sessions.
    async fn ask(&self, method: &str, params: Value) -> Value {
        ask(&self.url, method, params).await.json()
    }

    async fn call(&self, tool: &str, arguments: Value) -> Value {
        let params = json!({ "name": tool, "arguments": arguments });
        self.ask("tools/call", params).await["result"].clone()
    }

    async fn read(&self, uri: &Value) -> Value {
        self.ask("resources/read", json!({ "uri": uri })).await["result"]["contents"][0].clone()
    }
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap()
}

#[tokio::test]
async fn a_search_is_stored_under_the_name_of_its_query() {
    let example = start("search_logs").await;
    let result = example.call("search_logs", json!({ "query": "timeout" })).await;
    let link = &result["content"][1];
    let uri = link["uri"].as_str().unwrap();
    let read = example.read(&link["uri"]).await;
    let found: Vec<Value> = serde_json::from_str(read["text"].as_str().unwrap()).unwrap();
    let count = found.len();
    assert!(count > 1000 && result.to_string().len() < 4096);
    assert_eq!(text(&result), format!("Search complete. Found {count} results. Access at {uri}"));
    assert_eq!(link["name"], "Search Results: timeout");
    assert_eq!(link["description"], format!("Found {count} matches for 'timeout'"));
    assert_eq!(link["mimeType"], "application/json");
    let described = example.call("describe_resource", json!({ "uri": uri })).await;
    assert_expires_in(text(&described), 3600);
}

/// Checks the time to live in a description, in seconds. The machine may be busy.
fn assert_expires_in(description: &str, ttl: i64) {
    let (_, expires) = description.split_once("expires: ").unwrap();
    let expires = expires.split_whitespace().next().unwrap().trim_end_matches([',', ';']);
    let expires = chrono::DateTime::parse_from_rfc3339(expires).unwrap().timestamp();
    let now = i64::try_from(SystemClock.now().as_millis() / 1000).unwrap();
    assert!((ttl - 60..=ttl + 1).contains(&(expires - now)), "{description}");
}

#[tokio::test]
async fn a_pdf_is_read_as_it_was_generated() {
    let example = start("dynamic_resources").await;
    let result = example.call("generate_pdf", json!({})).await;
    let link = &result["content"][1];
    let uri = link["uri"].as_str().unwrap();
    assert!(uri.starts_with("output://pdf/") && uri.trim_end_matches(".pdf") != uri, "{uri}");
    assert_eq!(text(&result), format!("PDF generated: {uri}"));
    let read = example.read(&link["uri"]).await;
    assert_eq!(read["mimeType"], "application/pdf");
    assert!(read.get("text").is_none());
    let pdf = BASE64_STANDARD.decode(read["blob"].as_str().unwrap()).unwrap();
    assert!(pdf.starts_with(b"%PDF-") && pdf.ends_with(b"%%EOF\n"));
    assert_eq!(link["size"], pdf.len());
    let described = example.call("describe_resource", json!({ "uri": uri })).await;
    assert_expires_in(text(&described), 1800);
}

#[tokio::test]
async fn tools_change_and_delete_stored_resources_and_no_others() {
    let example = start("dynamic_resources").await;
    let found = example.call("search", json!({ "query": "spoon" })).await;
    let uri = &found["content"][1]["uri"];
    let data = json!({ "data": [1, 2, 3] });
    let updated = example.call("update_results", json!({ "uri": uri, "new_data": data })).await;
    assert_eq!(text(&updated), format!("Updated {}", uri.as_str().unwrap()));
    let read = example.read(uri).await;
    assert_eq!(serde_json::from_str::<Value>(read["text"].as_str().unwrap()).unwrap(), data);
    let listed = example.ask("resources/list", json!({})).await;
    let listed = listed["result"]["resources"].as_array().unwrap().clone();
    let entry = listed.iter().find(|r| r["uri"] == *uri).unwrap();
    assert_eq!(entry["name"], "Analysis Results");
    assert_eq!(entry["description"], "Detailed analysis output");
    assert_eq!(entry["mimeType"], "application/json");
    let deleted = example.call("cleanup", json!({ "uri": uri })).await;
    assert_eq!(text(&deleted), format!("Deleted {}", uri.as_str().unwrap()));
    let gone = example.ask("resources/read", json!({ "uri": uri })).await;
    assert_eq!(gone["error"]["code"], -32002);

    let about = json!("results://about");
    let kept = example.call("cleanup", json!({ "uri": about })).await;
    assert_eq!(kept["isError"], true);
    let kept = example.call("update_results", json!({ "uri": about, "new_data": 1 })).await;
    assert!(kept["isError"] == true && text(&kept).contains("part of this server"), "{kept}");
    assert_eq!(example.read(&about).await["text"], "Results live here for two hours.");
    let unknown = example.call("update_results", json!({ "uri": "x:no", "new_data": 1 })).await;
    assert!(unknown["isError"] == true && text(&unknown).contains("x:no"), "{unknown}");
}
