//! `/resources`: what a script with a bearer token reads and deletes.

use std::process::Stdio;

use base64::{Engine, prelude::BASE64_STANDARD};
use larder::Resource;
use reqwest::Method;
use serde_json::json;
use sha2::{Digest, Sha256};
use tokio::process::Command;

use super::{each_backend, get, hex, problem, request, resource};
use crate::support::{
    Answer, Modern, Raw, Server, eventually, noise, numbered_lines, process::larder,
};

/// Three blocks that compression cannot make smaller.
fn bytes() -> Vec<u8> {
    noise(7).take(80_000).flat_map(u64::to_le_bytes).collect()
}

async fn with_text(text: &str) -> (Server, String) {
    let server = Server::start().await;
    Modern::of(&server).create(json!({ "uri": "x:1", "text": text, "name": "One.txt" })).await;
    let url = resource(&server.url, "x:1");
    (server, url)
}

async fn head(url: &str, headers: &[(&str, &str)]) -> Answer {
    Answer::of(request(Method::HEAD, url, headers)).await
}

async fn delete(url: &str, headers: &[(&str, &str)]) -> Answer {
    Answer::of(request(Method::DELETE, url, headers)).await
}

#[tokio::test]
async fn curl_reads_the_same_bytes_and_headers_from_every_backend() {
    let (text, bytes) = (numbered_lines(20_000), bytes());
    let mut seen = Vec::new();
    for stored in each_backend().await {
        let (client, backend) = (Modern::at(&stored.server.url), stored.backend);
        client.create(json!({ "uri": "x:text", "text": text, "mime_type": "text/csv" })).await;
        let blob = BASE64_STANDARD.encode(&bytes);
        client.create(json!({ "uri": "x:bytes", "blob": blob, "name": "Größe.bin" })).await;
        for (uri, content) in [("x:text", text.as_bytes()), ("x:bytes", &bytes)] {
            let url = resource(&stored.server.url, uri);
            let mut curl = Command::new("curl");
            curl.args(["-sS", "--noproxy", "*", "-D", "/dev/stderr", &url]).stdin(Stdio::null());
            let output = curl.output().await.unwrap();
            assert!(output.stdout == content, "{backend} {uri}: {}", hex(&output.stdout));
            let headers = String::from_utf8(output.stderr).unwrap().to_lowercase();
            let mut headers: Vec<_> = headers
                .lines()
                .filter(|line| !line.starts_with("date:") && !line.starts_with("x-request-id:"))
                .map(str::to_owned)
                .collect();
            headers.sort();
            seen.push((uri, headers));
            let head = head(&url, &[]).await;
            assert_eq!((head.status, head.body.len()), (200, 0), "{backend}");
            assert_eq!(head.header("content-length"), Some(&*content.len().to_string()));
            // A range of several blocks, the last byte, and one outside.
            let part = get(&url, &[("range", "bytes=262100-530000")]).await;
            assert_eq!(part.status, 206, "{backend}");
            assert!(part.body == content[262_100..=530_000], "{backend} {uri}");
            let last = get(&url, &[("range", "bytes=-1")]).await;
            assert_eq!((last.status, &last.body[..]), (206, &content[content.len() - 1..]));
        }
    }
    let (first, others) = seen.split_at(2);
    for other in others.chunks(2) {
        assert_eq!(first, other);
    }
}

#[tokio::test]
async fn the_headers_describe_the_content_and_keep_it_from_running() {
    let (_server, url) = with_text("<script>alert(1)</script>").await;
    let answer = get(&url, &[]).await;
    let text = "<script>alert(1)</script>";
    let digest = BASE64_STANDARD.encode(Sha256::digest(text));
    for (name, value) in [
        ("content-type", "text/plain; charset=utf-8"),
        ("content-length", "25"),
        ("content-disposition", "attachment; filename=\"One.txt\"; filename*=UTF-8''One.txt"),
        ("etag", &format!("\"1-{}\"", hex(text.as_bytes()))),
        ("repr-digest", &format!("sha-256=:{digest}:")),
        ("accept-ranges", "bytes"),
        ("x-content-type-options", "nosniff"),
        ("content-security-policy", "sandbox; default-src 'none'"),
        ("cache-control", "private, no-store, no-transform"),
        ("referrer-policy", "no-referrer"),
    ] {
        assert_eq!(answer.header(name), Some(value), "{name}");
    }
    assert_eq!(&answer.body[..], text.as_bytes());
}

#[tokio::test]
async fn a_client_that_accepts_zstd_gets_the_blocks_as_they_are_stored() {
    let text = numbered_lines(60_000);
    let zstd = ("accept-encoding", "gzip, zstd");
    for stored in each_backend().await {
        let (client, backend) = (Modern::at(&stored.server.url), stored.backend);
        client.create(json!({ "uri": "x:1", "text": text })).await;
        let url = resource(&stored.server.url, "x:1");
        let plain = get(&url, &[]).await;
        assert_eq!(
            (plain.header("content-encoding"), plain.header("vary")),
            (None, Some("accept-encoding"))
        );
        let encoded = get(&url, &[zstd]).await;
        assert_eq!(encoded.header("content-encoding"), Some("zstd"), "{backend}");
        assert_eq!(encoded.header("content-length"), Some(&*encoded.body.len().to_string()));
        assert!(encoded.body.len() < text.len() / 2, "{backend}: {}", encoded.body.len());
        assert!(zstd::decode_all(&encoded.body[..]).unwrap() == text.as_bytes(), "{backend}");
        // It is another representation, with a tag of its own and without the digest.
        let tag = encoded.header("etag").unwrap();
        assert_ne!(Some(tag), plain.header("etag"));
        assert_eq!(encoded.header("repr-digest"), None);
        assert_eq!(get(&url, &[zstd, ("if-none-match", tag)]).await.status, 304);
        assert_eq!(get(&url, &[("if-none-match", tag)]).await.status, 200);
        let head = head(&url, &[zstd]).await;
        assert_eq!(head.header("content-length"), encoded.header("content-length"));
        let part = get(&url, &[zstd, ("range", "bytes=-5")]).await;
        assert_eq!((part.status, part.header("content-encoding")), (206, None), "{backend}");
        assert_eq!(part.body, &text.as_bytes()[text.len() - 5..]);
        assert_eq!(delete(&url, &[("if-match", tag)]).await.status, 204, "{backend}");
    }
    let (_server, url) = with_text("short").await;
    assert_eq!(get(&url, &[zstd]).await.header("content-encoding"), None);
}

#[tokio::test]
async fn a_range_selects_bytes_if_the_content_is_what_the_client_knows() {
    let (server, url) = with_text("0123456789").await;
    let tag = get(&url, &[]).await.header("etag").unwrap().to_owned();
    for (range, expected, content_range) in [
        ("bytes=0-3", "0123", "bytes 0-3/10"),
        ("bytes=4-", "456789", "bytes 4-9/10"),
        ("bytes=-2", "89", "bytes 8-9/10"),
        ("bytes=8-99", "89", "bytes 8-9/10"),
    ] {
        let answer = get(&url, &[("range", range)]).await;
        assert_eq!((answer.status, &answer.body[..]), (206, expected.as_bytes()), "{range}");
        assert_eq!(answer.header("content-range"), Some(content_range));
        assert_eq!(answer.header("content-length"), Some(&*expected.len().to_string()));
        assert_eq!(answer.header("etag"), Some(&*tag));
    }
    for range in ["bytes=0-1,4-5", "lines=0-1", "bytes=x"] {
        let answer = get(&url, &[("range", range)]).await;
        assert_eq!((answer.status, answer.body.len()), (200, 10), "{range}");
    }
    let answer = get(&url, &[("range", "bytes=10-")]).await;
    assert_eq!(problem(&answer).0, 416);
    assert_eq!(answer.header("content-range"), Some("bytes */10"));
    let answer = head(&url, &[("range", "bytes=0-3")]).await;
    assert_eq!((answer.status, answer.header("content-length")), (200, Some("10")));

    let with = async |if_range: &str| {
        get(&url, &[("range", "bytes=0-3"), ("if-range", if_range)]).await.status
    };
    assert_eq!((with(&tag).await, with("\"0-x\"").await), (206, 200));
    assert_eq!(with("Wed, 21 Oct 2015 07:28:00 GMT").await, 200);
    Modern::of(&server)
        .call("update_resource", json!({ "uri": "x:1", "text": "new" }))
        .await
        .text();
    assert_eq!(with(&tag).await, 200);
    assert_eq!(get(&url, &[("if-none-match", &tag)]).await.status, 200);
    let tag = get(&url, &[]).await.header("etag").unwrap().to_owned();
    let answer = get(&url, &[("if-none-match", &tag)]).await;
    assert_eq!((answer.status, answer.body.len(), answer.header("etag")), (304, 0, Some(&*tag)));
}

#[tokio::test]
async fn errors_are_problem_documents_that_say_what_to_do() {
    let (server, url) = with_text("one").await;
    let base = url.split('?').next().unwrap();
    for (query, status, says) in [
        ("uri=x:2", 404, "Resource not found: x:2"),
        ("uri=x%3A2", 404, "Resource not found: x:2"),
        ("uri=x:1&revision=9", 404, "has no revision 9. Available revisions: 1."),
        ("uri=nothing", 400, "is not a URI"),
        ("", 400, "The parameter uri is missing"),
        ("uri=x:1&y=2", 400, "Unknown parameter \"y\""),
        ("uri=x:1&uri=x:2", 400, "given twice"),
        ("uri=x:1&revision=one", 400, "\"one\" is no revision"),
    ] {
        let answer = get(&format!("{base}?{query}"), &[]).await;
        let (found, detail) = problem(&answer);
        assert_eq!(found, status, "{detail}");
        assert!(detail.contains(says), "{detail}");
    }
    assert_eq!(get(&format!("{base}?uri=x:1&revision=1"), &[]).await.status, 200);
    let answer = Answer::of(request(Method::PATCH, &url, &[])).await;
    assert_eq!(problem(&answer).0, 405);
    assert!(answer.header("allow").unwrap().contains("DELETE"));
    let answer = get(&url, &[("origin", "https://evil.example")]).await;
    assert_eq!(problem(&answer).0, 403);
    let answer = get(&url, &[("origin", &server.url.replace("/mcp", ""))]).await;
    assert_eq!(answer.status, 200);
    assert!(answer.header("access-control-expose-headers").unwrap().contains("repr-digest"));
    let asks = [("origin", "http://localhost"), ("access-control-request-method", "DELETE")];
    let answer = Answer::of(request(Method::OPTIONS, &url, &asks)).await;
    assert_eq!(answer.status, 204);
    assert!(answer.header("access-control-allow-methods").unwrap().contains("DELETE"));
}

#[tokio::test]
async fn a_resource_is_deleted_unless_it_has_changed() {
    let (server, url) = with_text("one").await;
    let tag = get(&url, &[]).await.header("etag").unwrap().to_owned();
    let client = Modern::of(&server);
    client.call("update_resource", json!({ "uri": "x:1", "text": "two" })).await.text();
    assert_eq!(problem(&delete(&url, &[("if-match", &tag)]).await).0, 412);
    let tag = get(&url, &[]).await.header("etag").unwrap().to_owned();
    assert_eq!(delete(&url, &[("if-match", &tag)]).await.status, 204);
    assert_eq!(problem(&get(&url, &[]).await).0, 404);
    assert_eq!(problem(&delete(&url, &[]).await).0, 404);
    client.create(json!({ "uri": "x:1", "text": "one" })).await;
    assert_eq!(delete(&url, &[]).await.status, 204);
}

#[tokio::test]
async fn content_is_served_only_where_it_is_enabled_and_deleted_only_where_tools_write() {
    let off = Server::configured(|setup| setup.config.content.enabled = false).await;
    Modern::of(&off).create(json!({ "uri": "x:1", "text": "one" })).await;
    assert_eq!(get(&resource(&off.url, "x:1"), &[]).await.status, 404);
    let reads = Server::offering(|builder| builder.resource(Resource::text("docs://a", "A"))).await;
    let (status, detail) = problem(&delete(&resource(&reads.url, "x:1"), &[]).await);
    assert!(status == 403 && detail.contains("tools.write"), "{detail}");
}

#[tokio::test]
async fn callers_reach_their_own_resources_with_the_scopes_of_the_tools() {
    let token = |name: &str, scopes: &str| {
        let hash = hex(name.as_bytes());
        format!("[[auth.tokens]]\nname = \"{name}\"\nsha256 = \"{hash}\"\nscopes = [{scopes}]\n")
    };
    let config = crate::support::TextFile::new(&format!(
        "[auth]\nmode = \"static\"\nrequired_scopes = [\"read\"]\n\
         [auth.scopes]\ndelete_resource = [\"write\"]\n{}{}{}",
        token("reader", "\"read\""),
        token("writer", "\"read\", \"write\""),
        token("nobody", ""),
    ));
    let mut command = larder(&["serve", "--config", config.path()]);
    command.env("LARDER_SERVER__JSON_RESPONSE", "true");
    let server = crate::support::process::Process::start(command).await;
    let url = resource(&server.url, "x:1");
    for name in ["reader", "writer"] {
        let client = Modern::at(&server.url).with_token(name);
        client.create(json!({ "uri": "x:1", "text": name })).await;
    }
    let bearer = |name: &str| format!("Bearer {name}");
    let (reader, writer) = (bearer("reader"), bearer("writer"));
    let answer = get(&url, &[("authorization", &reader)]).await;
    assert_eq!((answer.status, &answer.body[..]), (200, &b"reader"[..]));
    let answer = get(&url, &[]).await;
    assert_eq!(problem(&answer).0, 401);
    assert!(answer.header("www-authenticate").unwrap().starts_with("Bearer "));
    assert_eq!(problem(&get(&url, &[("authorization", &bearer("eve"))]).await).0, 401);
    let answer = get(&url, &[("authorization", &bearer("nobody"))]).await;
    assert_eq!(problem(&answer).0, 403);
    let answer = delete(&url, &[("authorization", &reader)]).await;
    assert_eq!(problem(&answer).0, 403);
    assert!(answer.header("www-authenticate").unwrap().contains("insufficient_scope"));
    assert_eq!(delete(&url, &[("authorization", &writer)]).await.status, 204);
    assert_eq!(get(&url, &[("authorization", &reader)]).await.status, 200);

    // Through a sharing link, under its URI.
    let client = Modern::at(&server.url).with_token("reader");
    let shared = client.call("share_resource", json!({ "uri": "x:1", "with": "everyone" })).await;
    let link = shared.text().lines().next().unwrap().to_owned();
    let answer = get(&resource(&server.url, &link), &[("authorization", &writer)]).await;
    assert_eq!((answer.status, &answer.body[..]), (200, &b"reader"[..]));
    assert!(!server.stderr().contains(&bearer("reader")));
}

#[tokio::test]
async fn downloads_that_nobody_reads_are_bounded_and_count_until_they_end() {
    let server = Server::configured(|setup| {
        setup.config.limits.transfers = 1;
        // Larger than the buffers of a socket.
        setup.config.memory.bytes = 256 << 20;
    })
    .await;
    let blob = BASE64_STANDARD.encode(bytes().repeat(20));
    Modern::of(&server).create(json!({ "uri": "x:1", "blob": blob })).await;
    let url = resource(&server.url, "x:1");
    let mut slow = Raw::connect(&server).await;
    slow.write(format!("GET /resources?uri=x:1 HTTP/1.1\r\nhost: {}\r\n\r\n", server.address))
        .await;
    eventually("the first download to begin", async || get(&url, &[]).await.status == 429).await;
    let answer = get(&url, &[]).await;
    let (_, detail) = problem(&answer);
    assert!(detail.contains("limits.transfers") && answer.header("retry-after").is_some());
    // Requests without content need no permit.
    assert_eq!(head(&url, &[]).await.status, 200);
    drop(slow);
    eventually("the first download to end", async || get(&url, &[]).await.status == 200).await;
}
