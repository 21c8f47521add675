//! Prompts, resources, templates and completions of upstreams.

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Value, json};

use super::{in_front_of, lines, odd, package, text};
use crate::support::{Legacy, Modern, eventually};

async fn items(client: &Legacy, method: &str, member: &str) -> Vec<Value> {
    let mut result = client.send(method, json!({})).await.result();
    result[member].as_array_mut().unwrap().split_off(0)
}

fn texts(items: &[Value], member: &str) -> Vec<String> {
    items.iter().map(|item| item[member].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn prompts_resources_and_completions_are_offered_as_they_are() {
    let server = in_front_of(vec![package("everything", &[])]).await;
    let client = Legacy::of(&server).await;
    let prompts = items(&client, "prompts/list", "prompts").await;
    let names = texts(&prompts, "name");
    for name in ["simple-prompt", "args-prompt", "completable-prompt", "resource-prompt"] {
        assert!(names.contains(&name.to_owned()), "{names:?}");
    }
    let params =
        json!({ "name": "args-prompt", "arguments": { "city": "Graz", "state": "Styria" } });
    let got = client.send("prompts/get", params).await.result();
    let said = got["messages"][0]["content"]["text"].as_str().unwrap();
    assert!(said.contains("Graz, Styria"), "{got}");
    let unknown = client.send("prompts/get", json!({ "name": "none" })).await;
    assert_eq!(unknown.json()["error"]["code"], -32602);

    let params = json!({
        "ref": { "type": "ref/prompt", "name": "completable-prompt" },
        "argument": { "name": "department", "value": "E" },
    });
    let completed = client.send("completion/complete", params).await.result();
    assert_eq!(completed["completion"]["values"], json!(["Engineering"]));

    let templates = items(&client, "resources/templates/list", "resourceTemplates").await;
    let templates = texts(&templates, "uriTemplate");
    assert!(templates.contains(&"demo://resource/dynamic/text/{resourceId}".to_owned()));
    let uris = texts(&items(&client, "resources/list", "resources").await, "uri");
    let uri = uris.iter().find(|uri| uri.starts_with("demo://resource/static/document/")).unwrap();
    let read = client.send("resources/read", json!({ "uri": uri })).await.result();
    assert!(!read["contents"][0]["text"].as_str().unwrap().is_empty());
    let dynamic = json!({ "uri": "demo://resource/dynamic/blob/3" });
    let blob = Modern::of(&server).send("resources/read", dynamic).await.result();
    let blob = blob["contents"][0]["blob"].as_str().unwrap();
    let bytes = BASE64_STANDARD.decode(blob).unwrap();
    assert!(String::from_utf8(bytes).unwrap().starts_with("Resource 3: "));
    let missing = client.send("resources/read", json!({ "uri": "demo://none" })).await;
    assert_eq!(missing.json()["error"]["code"], -32002);
}

#[tokio::test]
async fn uris_of_several_upstreams_are_told_apart() {
    let server = in_front_of(vec![package("everything", &[]), odd("odd", &[])]).await;
    let client = Legacy::of(&server).await;
    let uris = texts(&items(&client, "resources/list", "resources").await, "uri");
    let uri =
        uris.iter().find(|uri| uri.starts_with("everything+demo://resource/static/")).unwrap();
    let read = client.send("resources/read", json!({ "uri": uri })).await.result();
    assert_eq!(read["contents"][0]["uri"], **uri);
    let links = client.call("everything__get-resource-links", json!({ "count": 2 })).await.result();
    let link = links["content"][1]["uri"].as_str().unwrap();
    assert!(link.starts_with("everything+demo://resource/"), "{links}");
    let followed = client.send("resources/read", json!({ "uri": link })).await.result();
    assert!(followed["contents"][0].is_object());
    let embedded = json!({ "resourceType": "Text", "resourceId": 1 });
    let embedded = client.call("everything__get-resource-reference", embedded).await.result();
    let uri = embedded["content"][1]["resource"]["uri"].as_str().unwrap();
    assert!(uri.starts_with("everything+demo://"), "{embedded}");
    let params = json!({ "name": "everything__simple-prompt" });
    assert!(client.send("prompts/get", params).await.result()["messages"][0].is_object());
    let params = json!({
        "ref": { "type": "ref/resource", "uri": "everything+demo://resource/dynamic/text/{resourceId}" },
        "argument": { "name": "resourceId", "value": "4" },
    });
    let completed = client.send("completion/complete", params).await.result();
    assert_eq!(completed["completion"]["values"], json!(["4"]));
}

#[tokio::test]
async fn what_one_session_has_made_is_invisible_to_another() {
    let server = in_front_of(vec![package("everything", &[])]).await;
    let (one, other) = (Legacy::of(&server).await, Legacy::of(&server).await);
    let data = format!("data:text/plain;base64,{}", BASE64_STANDARD.encode("secret"));
    let make = json!({ "name": "mine.gz", "data": data, "outputType": "resourceLink" });
    let made = one.call("gzip-file-as-resource", make).await.result();
    let uri = made["content"][0]["uri"].as_str().unwrap_or_else(|| panic!("{made}"));
    let read = one.send("resources/read", json!({ "uri": uri })).await.result();
    assert!(read["contents"][0]["blob"].is_string(), "{read}");
    eventually("its listing", async || {
        texts(&items(&one, "resources/list", "resources").await, "uri").contains(&uri.to_owned())
    })
    .await;
    let refused = other.send("resources/read", json!({ "uri": uri })).await;
    assert_eq!(refused.json()["error"]["code"], -32002);
    let listed = texts(&items(&other, "resources/list", "resources").await, "uri");
    assert!(!listed.contains(&uri.to_owned()));
}

#[tokio::test]
async fn a_shared_process_is_one_for_all() {
    let folder = tempfile::tempdir().unwrap();
    let pids = folder.path().join("pids");
    let mut settings = odd("odd", &[&format!("--pid={}", pids.display()), "--discover=modern"]);
    settings.session = larder::upstream::SessionPolicy::All;
    let server = in_front_of(vec![settings]).await;
    for _ in 0..3 {
        let client = Legacy::of(&server).await;
        assert_eq!(text(&client.call("echo", json!({})).await.result()), "{}");
    }
    assert_eq!(text(&Modern::of(&server).call("echo", json!({})).await.result()), "{}");
    assert_eq!(lines(&pids).len(), 1);
}

#[tokio::test]
async fn a_resource_may_have_several_contents() {
    let server = in_front_of(vec![odd("one", &[]), odd("two", &["--discover=exit"])]).await;
    let client = Legacy::of(&server).await;
    let params = json!({ "uri": "two+odd://several" });
    let read = client.send("resources/read", params.clone()).await.result();
    let expected = json!([
        { "uri": "two+odd://several/a", "mimeType": "text/plain", "text": "a" },
        { "uri": "two+odd://several/b", "mimeType": "application/octet-stream", "blob": "Yg==" },
    ]);
    assert_eq!(read["contents"], expected);
    let modern = Modern::of(&server).send("resources/read", params.clone()).await.result();
    assert_eq!(modern["contents"], expected);
    // The tool shows one content.
    let refused = client.call("read_resource", params).await.result();
    assert!(
        text(&refused).contains("has 2 contents, which only resources/read returns"),
        "{refused}"
    );
}
