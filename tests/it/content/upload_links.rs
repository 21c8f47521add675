//! `upload_url`, its links and `check_upload`: one upload for anyone with the link.

use std::{path::Path, process::Stdio, time::Duration};

use futures_util::{StreamExt, stream};
use larder::tools;
use reqwest::{Body, Method};
use serde_json::{Value, json};
use tokio::process::Command;
use tokio_util::task::AbortOnDropHandle;

use super::{
    downloads::{at, instances, is_not_found},
    each_backend, get, hex, problem, request, resource,
};
use crate::support::{
    Answer, Modern, Server, TextFile, eventually, numbered_lines, patiently,
    process::{Process, larder, run},
    sha256,
};

async fn server() -> (Server, Modern) {
    let server =
        Server::offering(|builder| builder.with(tools::writing()).with(tools::uploading())).await;
    let client = Modern::of(&server);
    (server, client)
}

/// The structured result of `upload_url`.
async fn link(client: &Modern, arguments: Value) -> Value {
    client.call("upload_url", arguments).await.result()["structuredContent"].clone()
}

fn url_of(link: &Value) -> String {
    link["upload"]["url"].as_str().unwrap().to_owned()
}

async fn url(client: &Modern, arguments: Value) -> String {
    url_of(&link(client, arguments).await)
}

async fn check(client: &Modern, link: &Value) -> Value {
    let answer = client.call("check_upload", json!({ "id": link["id"] })).await;
    answer.result()["structuredContent"].clone()
}

async fn put(url: &str, headers: &[(&str, &str)], body: &str) -> Answer {
    Answer::of(request(Method::PUT, url, headers).body(body.to_owned())).await
}

#[tokio::test]
async fn curl_uploads_by_the_link_into_every_backend() {
    let text = numbered_lines(10_000);
    for stored in each_backend().await {
        let (client, backend) = (Modern::at(&stored.server.url), stored.backend);
        let arguments = json!({
            "uri": "x:1", "name": "Lines.csv", "mime_type": "text/csv", "size": text.len(),
            "sha256": format!("sha-256:{}", hex(text.as_bytes())), "ttl": 60
        });
        let answer = client.call("upload_url", arguments).await;
        let link = &answer.result()["structuredContent"];
        let size = text.len();
        let digest = format!("sha-256:{}", hex(text.as_bytes()));
        let file = json!({
            "uri": "x:1", "name": "Lines.csv", "mimeType": "text/csv", "size": size, "digest": digest
        });
        assert_eq!((&link["file"], &link["upload"]["method"]), (&file, &json!("PUT")));
        assert_eq!(check(&client, link).await, json!({ "state": "waiting" }), "{backend}");
        let said = answer.text();
        assert!(said.contains("check_upload") && said.contains(link["id"].as_str().unwrap()));
        let line = said.lines().find(|line| line.starts_with("curl ")).unwrap();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("Lines.csv"), &text).unwrap();
        let mut shell = Command::new("sh");
        shell.args(["-c", line]).current_dir(folder.path()).env("NO_PROXY", "*");
        shell.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let finished = run(shell).await;
        assert_eq!(finished.code, Some(0), "{backend} {line}: {finished:?}");
        assert_eq!(check(&client, link).await, json!({ "state": "stored", "file": file }));
        let found = get(&resource(&stored.server.url, "x:1"), &[]).await;
        assert!(found.body == text.as_bytes(), "{backend}");
        assert_eq!(found.header("content-type"), Some("text/csv; charset=utf-8"));
        is_not_found(&put(&url_of(link), &[], &text).await);
        is_not_found(&get(&url_of(link), &[]).await);
    }
}

#[tokio::test]
async fn what_is_not_as_announced_is_not_stored_and_leaves_the_link() {
    let (server, client) = server().await;
    let link =
        link(&client, json!({ "uri": "x:1", "size": 10, "sha256": hex(b"ten bytes.") })).await;
    let url = url_of(&link);
    for (headers, body) in [
        (&[][..], "nine byte"),
        (&[], "other ten."),
        (
            &[("content-digest", "sha-256=:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=:")],
            "ten bytes.",
        ),
    ] {
        let refused = problem(&put(&url, headers, body).await);
        assert_eq!(refused.0, 400, "{refused:?}");
    }
    for parameter in ["uri=x:2", "ttl=5", "kind=binary", "name=%ff"] {
        assert_eq!(put(&format!("{url}?{parameter}"), &[], "ten bytes.").await.status, 400);
    }
    assert_eq!(check(&client, &link).await["state"], "waiting");
    assert_eq!(get(&resource(&server.url, "x:1"), &[]).await.status, 404);
    let created = put(&format!("{url}?name=a%20b"), &[], "ten bytes.").await;
    assert_eq!(created.status, 201, "{created:?}");
    assert_eq!(created.header("location"), Some("../../resources?uri=x%3A1"));
    let entry: Value = serde_json::from_slice(&created.body).unwrap();
    assert_eq!((&entry["name"], &entry["uri"]), (&json!("a b"), &json!("x:1")));
    is_not_found(&put(&url, &[], "ten bytes.").await);
}

#[tokio::test]
async fn a_range_of_the_content_is_not_stored_as_all_of_it_and_leaves_the_link() {
    for stored in each_backend().await {
        let (client, backend) = (Modern::at(&stored.server.url), stored.backend);
        let link = link(&client, json!({ "uri": "x:1" })).await;
        let url = url_of(&link);
        let direct = resource(&stored.server.url, "x:1");

        for range in ["bytes 0-3/10", "bytes 0-9/10", "bytes */10", "lines 1-2/3", ""] {
            for (method, url) in [(Method::PUT, &url), (Method::POST, &url), (Method::PUT, &direct)]
            {
                let request = request(method, url, &[("content-range", range)]);
                let (status, detail) = problem(&Answer::of(request.body("ten bytes.")).await);
                assert_eq!(status, 400, "{backend} {range}: {detail}");
                assert!(detail.contains("Content-Range"), "{detail}");
            }
        }

        assert_eq!(check(&client, &link).await, json!({ "state": "waiting" }), "{backend}");
        assert_eq!(get(&direct, &[]).await.status, 404, "{backend}");
        assert_eq!(put(&url, &[], "ten bytes.").await.status, 201, "{backend}");
    }
}

#[tokio::test]
async fn every_wrong_link_is_the_same_404() {
    let (server, client) = server().await;
    let one = url(&client, json!({ "uri": "x:1" })).await;
    let (start, token) = one.split_at(one.find("/u/").unwrap() + 3);
    for index in 0..token.len() {
        let other = if token.as_bytes()[index] == b'A' { 'B' } else { 'A' };
        let changed = format!("{start}{}{other}{}", &token[..index], &token[index + 1..]);
        let answer = put(&changed, &[], "text").await;
        is_not_found(&answer);
        assert_eq!(answer.header("referrer-policy"), Some("no-referrer"));
    }
    for wrong in [
        format!("{start}{}", "A".repeat(9_000)),
        format!("{start}{token}%20"),
        one.replace("/u/", "/o/"),
        format!("{}/name", one.replace("/u/", "/d/")),
    ] {
        is_not_found(&put(&wrong, &[], "text").await);
        is_not_found(&get(&wrong, &[]).await);
    }
    for method in [Method::DELETE, Method::PATCH] {
        is_not_found(&Answer::of(request(method, &one, &[])).await);
    }
    // The claims of one link with the signature of another one.
    let two = url(&client, json!({ "uri": "x:2" })).await;
    let other = &two[start.len()..];
    assert_eq!(token.len(), other.len());
    for cut in 1..token.len() {
        let spliced = format!("{}{}", &token[..cut], &other[cut..]);
        if spliced != token && spliced != other {
            is_not_found(&put(&format!("{start}{spliced}"), &[], "text").await);
        }
    }
    let host = format!("localhost:{}", server.address.port());
    is_not_found(&put(&one, &[("host", &host)], "text").await);
    let foreign = put(&one, &[("origin", "https://evil.example")], "text").await;
    assert_eq!(foreign.status, 403);
    let (other, _client) = self::server().await;
    let elsewhere = one.replace(&server.address.to_string(), &other.address.to_string());
    is_not_found(&put(&elsewhere, &[], "text").await);
    assert_eq!(put(&one, &[], "text").await.status, 201);
}

#[tokio::test]
async fn a_link_expires_and_its_use_is_known_for_a_day() {
    let (server, client) = server().await;
    let unused = link(&client, json!({ "expires": 5 })).await;
    let used = link(&client, json!({ "expires": 5, "ttl": 60 })).await;
    assert!(unused["file"]["uri"].as_str().unwrap().starts_with("larder://r/"));
    server.clock.advance(Duration::from_secs(4));
    assert_eq!(put(&url_of(&used), &[], "text").await.status, 201);
    server.clock.advance(Duration::from_secs(1));
    is_not_found(&put(&url_of(&unused), &[], "text").await);
    assert_eq!(check(&client, &unused).await, json!({ "state": "expired" }));
    assert_eq!(check(&client, &used).await["file"]["size"], 4);
    server.clock.advance(Duration::from_secs(3_600));
    assert_eq!(check(&client, &used).await, json!({ "state": "stored" }), "the resource expired");
    server.clock.advance(Duration::from_secs(86_400));
    let answer = client.call("check_upload", json!({ "id": used["id"] })).await;
    assert!(answer.failure().starts_with("Upload not found"));
}

/// Begins an upload in parts; its URL.
async fn begin(url: &str, headers: &[(&str, &str)]) -> String {
    let begun = Answer::of(request(Method::POST, url, headers)).await;
    assert_eq!(begun.status, 201, "{begun:?}");
    let location = begun.header("location").unwrap();
    reqwest::Url::parse(url).unwrap().join(location).unwrap().to_string()
}

async fn append(upload: &str, offset: usize, complete: &str, part: &str) -> Answer {
    let offset = offset.to_string();
    let headers = [
        ("content-type", "application/partial-upload"),
        ("upload-offset", &*offset),
        ("upload-complete", complete),
    ];
    Answer::of(request(Method::PATCH, upload, &headers).body(part.to_owned())).await
}

#[tokio::test]
async fn an_upload_in_parts_uses_the_link_when_it_is_complete() {
    for stored in each_backend().await {
        let client = Modern::at(&stored.server.url);
        let link = link(&client, json!({ "uri": "x:1", "size": 10 })).await;
        let (url, backend) = (url_of(&link), stored.backend);
        let first = begin(&url, &[("upload-complete", "?0")]).await;
        assert!(first.starts_with(&format!("{url}/")), "{first}");
        let other = begin(&url, &[("upload-complete", "?0")]).await;
        assert_eq!(append(&first, 0, "?0", "ten ").await.status, 204);
        let head = Answer::of(request(Method::HEAD, &first, &[])).await;
        assert_eq!(head.header("upload-offset"), Some("4"), "{backend}");
        assert_eq!(head.header("upload-length"), Some("10"), "the link says so");
        assert_eq!(append(&other, 0, "?0", "other ten.").await.status, 204);
        let checked = check(&client, &link).await;
        assert_eq!(checked["state"], "receiving", "{backend}");
        assert!(matches!(checked["received"].as_u64(), Some(4 | 10)), "{checked}");
        let created = append(&first, 4, "?1", "bytes.").await;
        assert_eq!(created.status, 201, "{backend} {created:?}");
        assert_eq!(created.header("location"), Some("../../../resources?uri=x%3A1"));
        assert_eq!(check(&client, &link).await["state"], "stored", "{backend}");
        // The one that is complete can be asked again; nothing else can use the link.
        assert_eq!(append(&first, 10, "?1", "").await.status, 201);
        is_not_found(&append(&other, 10, "?1", "").await);
        assert_eq!(Answer::of(request(Method::HEAD, &other, &[])).await.status, 404);
        is_not_found(&put(&url, &[], "ten bytes!").await);
        let found = get(&resource(&stored.server.url, "x:1"), &[]).await;
        assert_eq!(found.body, "ten bytes.", "{backend}");
    }
}

#[tokio::test]
async fn a_link_finds_only_its_own_uploads() {
    let (server, client) = server().await;
    let (one, two) = (url(&client, json!({})).await, url(&client, json!({})).await);
    let parts = [("upload-complete", "?0")];
    let upload = begin(&one, &parts).await;
    let id = upload.rsplit('/').next().unwrap();
    let callers = begin(&resource(&server.url, "x:1"), &parts).await;
    let callers = callers.rsplit('/').next().unwrap();
    for foreign in [format!("{two}/{id}"), format!("{one}/{callers}"), format!("{one}/{id}/x")] {
        let found = Answer::of(request(Method::HEAD, &foreign, &[])).await;
        assert_eq!(found.status, 404, "{foreign}");
    }
    let removed = Answer::of(request(Method::DELETE, &upload, &[])).await;
    assert_eq!(removed.status, 204);
    let options = Answer::of(request(Method::OPTIONS, &one, &[])).await;
    assert_eq!((options.status, options.header("tus-version")), (204, Some("1.0.0")));
    assert_eq!(put(&one, &[], "text").await.status, 201);
}

#[tokio::test]
async fn tus_js_client_uploads_by_the_link() {
    let folder = tempfile::tempdir().unwrap();
    let (file, content) = (folder.path().join("large.bin"), numbered_lines(100_000));
    std::fs::write(&file, &content).unwrap();
    let (server, client) = server().await;
    let link = link(&client, json!({ "uri": "x:1" })).await;
    let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/content");
    assert!(package.join("node_modules").exists(), "run make test, or npm ci in {package:?}");
    let mut command = Command::new("node");
    // The link says under which URI it is stored, not the metadata.
    command.arg(package.join("upload.mjs")).arg(url_of(&link)).arg(&file).arg("x:2");
    let output = patiently("tus-js-client", command.kill_on_drop(true).output()).await.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(get(&resource(&server.url, "x:1"), &[]).await.body == content.as_bytes());
    assert_eq!(get(&resource(&server.url, "x:2"), &[]).await.status, 404);
    assert_eq!(check(&client, &link).await["file"]["name"], "tus.bin");
    is_not_found(&put(&url_of(&link), &[], "text").await);
}

#[tokio::test]
async fn the_page_has_a_file_picker_and_one_script() {
    let (_server, client) = server().await;
    let link = link(&client, json!({ "name": "<b>.txt", "size": 4 })).await;
    let page = get(&url_of(&link), &[("accept", "text/html")]).await;
    let html = str::from_utf8(&page.body).unwrap();
    assert_eq!((page.status, page.header("cache-control")), (200, Some("no-store")));
    assert!(html.contains("type=\"file\"") && html.contains("&lt;b&gt;.txt"), "{html}");
    assert!(html.contains("<label for=\"file\">") && html.contains("role=\"status\""));
    assert!(html.contains("data-size=\"4\" data-named"));
    let script = html.split_once("<script>").unwrap().1.split_once("</script>").unwrap().0;
    let hash = base64::Engine::encode(
        &base64::prelude::BASE64_STANDARD,
        <sha2::Sha256 as sha2::Digest>::digest(script),
    );
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.starts_with("default-src 'none'; style-src 'sha256-"), "{policy}");
    assert!(policy.contains(&format!("script-src 'sha256-{hash}'")), "{policy}");
    assert!(policy.contains("connect-src 'self'") && !policy.contains("unsafe"), "{policy}");
    for _ in 0..3 {
        assert_eq!(Answer::of(request(Method::HEAD, &url_of(&link), &[])).await.status, 200);
    }
    assert_eq!(put(&url_of(&link), &[], "text").await.status, 201);
    let page = get(&url_of(&link), &[("accept", "text/html")]).await;
    assert_eq!((page.status, page.header("content-type")), (404, Some("text/html; charset=utf-8")));
}

#[tokio::test]
async fn of_many_uploads_to_two_instances_one_is_stored() {
    let (_redis, instances) = instances().await;
    let client = Modern::at(&instances[0].url);
    let host = [("host", "larder.test")];
    for round in 0..5 {
        let link = link(&client, json!({ "uri": format!("x:{round}") })).await;
        let puts = (0..8).map(|n| {
            let url = at(&instances[n % 2], &url_of(&link));
            async move { put(&url, &host, &format!("{n}")).await.status }
        });
        let statuses = patiently("the answers", futures_util::future::join_all(puts)).await;
        assert_eq!(statuses.iter().filter(|status| **status == 201).count(), 1, "{statuses:?}");
        assert_eq!(statuses.iter().filter(|status| **status == 404).count(), 7, "{statuses:?}");
        let winner = statuses.iter().position(|status| *status == 201).unwrap();
        let found = get(&resource(&instances[1].url, &format!("x:{round}")), &[]).await;
        assert_eq!(found.body, format!("{winner}"));
        let other = Modern::at(&instances[1].url);
        assert_eq!(check(&other, &link).await["state"], "stored");
    }
}

/// A PUT whose content is cut before its end.
fn unfinished(url: &str, host: &str) -> (tokio::sync::oneshot::Sender<()>, AbortOnDropHandle<()>) {
    let (end, ended) = tokio::sync::oneshot::channel::<()>();
    let pieces = stream::iter([Ok("the first half")]).chain(stream::once(async move {
        let _ = ended.await;
        Err(std::io::Error::other("the sender is gone"))
    }));
    let put = request(Method::PUT, url, &[("host", host)]).body(Body::wrap_stream(pieces));
    (end, AbortOnDropHandle::new(tokio::spawn(async move { drop(put.send().await) })))
}

/// Waits until the link is in that state, at every one of the clients.
async fn has_state(clients: &[Modern], link: &Value, state: &str) {
    for client in clients {
        eventually(&format!("the state {state}"), async || {
            check(client, link).await["state"] == *state
        })
        .await;
    }
}

#[tokio::test]
async fn every_instance_tells_that_content_arrives() {
    let (_redis, instances) = instances().await;
    let clients = instances.each_ref().map(|instance| Modern::at(&instance.url));
    let link = link(&clients[0], json!({ "uri": "x:1" })).await;
    has_state(&clients, &link, "waiting").await;
    let url = at(&instances[1], &url_of(&link));
    let (end, sending) = unfinished(&url, "larder.test");
    has_state(&clients, &link, "receiving").await;
    drop(end);
    has_state(&clients, &link, "waiting").await;
    drop(sending);
    let stored = put(&url, &[("host", "larder.test")], "text").await;
    assert_eq!(stored.status, 201, "{stored:?}");
    has_state(&clients, &link, "stored").await;
}

#[tokio::test]
async fn a_link_that_a_killed_server_had_claimed_can_be_used_again() {
    let (_redis, [mut a, b]) = instances().await;
    let client = Modern::at(&b.url);
    let link = link(&client, json!({ "uri": "x:1" })).await;
    let (host, content) = ([("host", "larder.test")], numbered_lines(2_000_000));
    let upload = {
        let begun = request(Method::POST, &at(&a, &url_of(&link)), &host);
        let begun = Answer::of(begun.header("upload-complete", "?0")).await;
        let id = begun.header("location").unwrap().rsplit('/').next().unwrap().to_owned();
        format!("{}/{id}", at(&a, &url_of(&link)))
    };
    let last = request(Method::PATCH, &upload, &host)
        .header("content-type", "application/partial-upload")
        .header("upload-offset", "0")
        .header("upload-complete", "?1")
        .body(content);
    let sending = AbortOnDropHandle::new(tokio::spawn(async move { drop(last.send().await) }));
    let page = at(&b, &url_of(&link));
    eventually("the claim", async || get(&page, &host).await.status == 404).await;
    a.kill().await;
    drop(sending);
    assert_eq!(check(&client, &link).await["state"], "receiving");
    eventually("the end of the lease", async || get(&page, &host).await.status == 200).await;
    assert_eq!(put(&page, &host, "text").await.status, 201);
    assert_eq!(get(&resource(&b.url, "x:1"), &[]).await.body, "text");
}

#[tokio::test]
async fn a_link_needs_the_write_scope_and_answers_its_owner_only() {
    let config = TextFile::new(&format!(
        "[auth]\nmode = \"static\"\n[auth.scopes]\ncreate_resource = [\"larder:write\"]\n\
         [[auth.tokens]]\nname = \"ann\"\nsha256 = \"{}\"\nscopes = [\"larder:write\"]\n\
         [[auth.tokens]]\nname = \"ben\"\nsha256 = \"{}\"\nscopes = []\n\
         [log]\nlevel = \"trace\"\n",
        sha256("ann"),
        sha256("ben"),
    ));
    let server = Process::start(larder(&["serve", "--config", config.path()])).await;
    let [ann, ben] = ["ann", "ben"].map(|name| Modern::at(&server.url).with_token(name));
    let refused = ben.call("upload_url", json!({})).await.failure();
    assert!(refused.contains("scopes of create_resource"), "{refused}");
    let link = link(&ann, json!({ "uri": "x:1" })).await;
    assert_eq!(check(&ann, &link).await["state"], "waiting");
    let foreign = ben.call("check_upload", json!({ "id": link["id"] })).await.failure();
    let unknown = ben.call("check_upload", json!({ "id": "AAAA" })).await.failure();
    assert_eq!(foreign, unknown);
    let url = url_of(&link);
    let upload = begin(&url, &[("upload-complete", "?0")]).await;
    assert_eq!(append(&upload, 0, "?1", "text").await.status, 201);
    let read = ann.call("read_resource", json!({ "uri": "x:1" })).await;
    assert!(read.text().contains("text"));
    // Nothing of the token is logged, at any level.
    let token = url.split("/u/").nth(1).unwrap();
    let log = server.stop("-TERM").await.stderr;
    assert!(log.contains("audit: allowed"), "{log}");
    assert!(!log.contains(&token[..40]) && !log.contains("/content/u/"));
}

#[tokio::test]
async fn what_cannot_be_stored_gets_no_link() {
    let (_server, client) = server().await;
    for (arguments, says) in [
        (json!({ "uri": "none" }), "has no scheme"),
        (json!({ "uri": "larder://shared/local/1" }), "cannot be changed"),
        (json!({ "mime_type": "csv" }), "must look like text/csv"),
        (json!({ "ttl": -1 }), "ttl must be positive"),
        (json!({ "name": "n".repeat(300) }), "at most 256"),
        (json!({ "sha256": "abc" }), "64 hexadecimal digits"),
        (json!({ "expires": 86_401 }), "content.max_expires"),
    ] {
        let failure = client.call("upload_url", arguments).await.failure();
        assert!(failure.contains(says), "{failure}");
    }
    let reading = Server::offering(|builder| builder.with(tools::uploading())).await;
    let failure = Modern::of(&reading).call("upload_url", json!({})).await.failure();
    assert!(failure.contains("tools.write"), "{failure}");
}
