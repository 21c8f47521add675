//! `download_url` and its links: for everyone who has one, until it expires.

use std::{process::Stdio, time::Duration};

use larder::tools;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::process::Command;

use super::{each_backend, get, hex, problem, request, resource};
use crate::support::{
    Answer, Modern, RedisServer, Server, TextFile, numbered_lines, patiently,
    process::{Process, larder, run, serving_in},
};

/// What an invalid link says, whatever the reason.
const NOT_FOUND: &str = "Not found, expired or used; ask for a new link.";

async fn server() -> (Server, Modern) {
    let server =
        Server::offering(|builder| builder.with(tools::writing()).with(tools::downloading())).await;
    let client = Modern::of(&server);
    (server, client)
}

/// The structured result of `download_url`.
async fn link(client: &Modern, arguments: Value) -> Value {
    client.call("download_url", arguments).await.result()["structuredContent"].clone()
}

async fn url(client: &Modern, arguments: Value) -> String {
    link(client, arguments).await["download"]["url"].as_str().unwrap().to_owned()
}

#[track_caller]
pub(super) fn is_not_found(answer: &Answer) {
    assert_eq!(problem(answer), (404, NOT_FOUND.to_owned()));
}

#[tokio::test]
async fn curl_downloads_by_the_link_from_every_backend() {
    let text = numbered_lines(10_000);
    for stored in each_backend().await {
        let (client, backend) = (Modern::at(&stored.server.url), stored.backend);
        client.create(json!({ "uri": "x:1", "text": text, "name": "Lines.txt" })).await;
        let answer = client.call("download_url", json!({ "uri": "x:1" })).await;
        let file = &answer.result()["structuredContent"]["file"];
        assert_eq!(file["digest"], format!("sha-256:{}", hex(text.as_bytes())), "{backend}");
        // The line of the text that a model shows or runs.
        let said = answer.text();
        let line = said.lines().find(|line| line.starts_with("curl ")).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let mut shell = Command::new("sh");
        shell.args(["-c", line]).current_dir(folder.path()).env("NO_PROXY", "*");
        shell.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let finished = run(shell).await;
        assert_eq!(finished.code, Some(0), "{backend} {line}: {finished:?}");
        let saved = std::fs::read(folder.path().join("Lines.txt")).unwrap();
        assert!(saved == text.as_bytes(), "{backend}");
        let url = file_url(&answer);
        let part = get(&url, &[("range", "bytes=-5")]).await;
        assert_eq!((part.status, &part.body[..]), (206, &text.as_bytes()[text.len() - 5..]));
        let head = Answer::of(request(Method::HEAD, &url, &[])).await;
        assert_eq!(head.header("content-length"), Some(&*text.len().to_string()));
    }
}

fn file_url(answer: &Answer) -> String {
    answer.result()["structuredContent"]["download"]["url"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn the_result_has_all_that_a_program_needs_and_the_text_all_that_a_model_does() {
    let (server, client) = server().await;
    client.create(json!({ "uri": "x:1", "text": "one", "name": "a b.txt" })).await;
    let answer = client.call("download_url", json!({ "uri": "x:1" })).await;
    let result = &answer.result()["structuredContent"];
    let url = result["download"]["url"].as_str().unwrap();
    assert!(url.starts_with(&format!("http://{}/content/d/", server.address)), "{url}");
    assert!(url.ends_with("/a%20b.txt"), "{url}");
    let digest = format!("sha-256:{}", hex(b"one"));
    assert_eq!(
        result["file"],
        json!({ "uri": "x:1", "name": "a b.txt", "mimeType": "text/plain", "size": 3, "digest": digest })
    );
    assert_eq!(
        (&result["download"]["method"], &result["download"]["headers"]),
        (&json!("GET"), &json!({}))
    );
    assert!(result["download"]["expiresAt"].is_string());
    let text = answer.text();
    assert!(text.contains(url) && text.contains("curl -fsS -o 'a b.txt'"), "{text}");
    assert!(text.contains("allow 127.0.0.1"), "{text}");
    for (arguments, says) in [
        (json!({ "uri": "x:2" }), "Resource not found: x:2"),
        (json!({ "uri": "x:1", "revision": 2 }), "Available revisions: 1"),
        (json!({ "uri": "x:1", "expires": 0 }), "between 1 and 86,400 seconds"),
        (json!({ "uri": "x:1", "expires": 86_401 }), "content.max_expires"),
    ] {
        let failure = client.call("download_url", arguments).await.failure();
        assert!(failure.contains(says), "{failure}");
    }
}

#[tokio::test]
async fn a_link_gives_its_revision_or_nothing() {
    let (server, client) = server().await;
    client.create(json!({ "uri": "x:1", "text": "one" })).await;
    let first = url(&client, json!({ "uri": "x:1" })).await;
    client.call("update_resource", json!({ "uri": "x:1", "text": "two, longer" })).await.text();
    assert_eq!(get(&first, &[]).await.body, "one");
    let second = url(&client, json!({ "uri": "x:1" })).await;
    assert_eq!(get(&second, &[]).await.body, "two, longer");
    let again = url(&client, json!({ "uri": "x:1", "revision": 1 })).await;
    assert_eq!(get(&again, &[]).await.body, "one");
    // The oldest of three revisions makes room for a fourth one.
    for text in ["three", "four"] {
        client.call("update_resource", json!({ "uri": "x:1", "text": text })).await.text();
    }
    is_not_found(&get(&first, &[]).await);
    assert_eq!(get(&second, &[]).await.body, "two, longer");
    // Another resource of the same URI has the same revisions.
    client.call("delete_resource", json!({ "uri": "x:1" })).await.text();
    is_not_found(&get(&second, &[]).await);
    client.create(json!({ "uri": "x:1", "text": "new" })).await;
    let third = url(&client, json!({ "uri": "x:1" })).await;
    client.call("delete_resource", json!({ "uri": "x:1" })).await.text();
    server.clock.advance(Duration::from_millis(1));
    client.create(json!({ "uri": "x:1", "text": "old" })).await;
    is_not_found(&get(&third, &[]).await);
}

#[tokio::test]
async fn updates_during_a_download_mix_nothing() {
    let old = numbered_lines(100_000);
    for stored in each_backend().await {
        let client = Modern::at(&stored.server.url);
        let target = resource(&stored.server.url, "x:1");
        let put = async |body: String| {
            let answer = Answer::of(request(Method::PUT, &target, &[]).body(body)).await;
            assert!(matches!(answer.status, 200 | 201), "{answer:?}");
        };
        put(old.clone()).await;
        let url = url(&client, json!({ "uri": "x:1" })).await;
        let mut response = request(Method::GET, &url, &[]).send().await.unwrap();
        let mut received = patiently("content", response.chunk()).await.unwrap().unwrap().to_vec();
        // More than the revisions that are stored.
        for n in 0..5 {
            put(format!("{n} {old}")).await;
        }
        let is_whole = loop {
            match patiently("content", response.chunk()).await {
                Ok(Some(piece)) => received.extend_from_slice(&piece),
                Ok(None) => break true,
                Err(_) => break false,
            }
        };
        let backend = stored.backend;
        assert!(old.as_bytes().starts_with(&received), "{backend}: revisions are mixed");
        assert!(!is_whole || received.len() == old.len(), "{backend}: a part passes for all");
        is_not_found(&get(&url, &[]).await);
    }
}

#[tokio::test]
async fn every_wrong_link_is_the_same_404() {
    let (server, client) = server().await;
    for uri in ["x:1", "x:2"] {
        client.create(json!({ "uri": uri, "text": uri, "name": "name" })).await;
    }
    let one = url(&client, json!({ "uri": "x:1" })).await;
    let (start, rest) = one.split_at(one.find("/d/").unwrap() + 3);
    let (token, name) = rest.split_once('/').unwrap();
    let mut wrong = Vec::new();
    for index in 0..token.len() {
        let byte = token.as_bytes()[index];
        // Each byte becomes another one of base64url, so that the token still decodes.
        let other = if byte == b'A' { 'B' } else { 'A' };
        let changed = format!("{}{other}{}", &token[..index], &token[index + 1..]);
        wrong.push(format!("{start}{changed}/{name}"));
    }
    // The claims of one link with the signature of another one.
    let two = url(&client, json!({ "uri": "x:2" })).await;
    let other = two[start.len()..].split_once('/').unwrap().0;
    assert_eq!(token.len(), other.len());
    let spliced = (1..token.len()).map(|cut| format!("{}{}", &token[..cut], &other[cut..]));
    let spliced = spliced.filter(|spliced| spliced != token && spliced != other);
    wrong.extend(spliced.map(|spliced| format!("{start}{spliced}/{name}")));
    wrong.push(format!("{start}{token}/other"));
    wrong.push(format!("{start}{token}/{name}%20"));
    wrong.push(format!("{start}{token}/%FF"));
    wrong.push(format!("{start}/{name}"));
    wrong.push(format!("{start}{}/{name}", "A".repeat(9_000)));
    let reference = get(&wrong[0], &[]).await;
    for wrong in wrong {
        let answer = get(&wrong, &[]).await;
        is_not_found(&answer);
        assert_eq!(answer.body, reference.body);
        assert_eq!(answer.header("referrer-policy"), Some("no-referrer"));
    }
    for method in [Method::POST, Method::PUT, Method::DELETE, Method::PATCH, Method::OPTIONS] {
        is_not_found(&Answer::of(request(method, &one, &[])).await);
    }
    let host = format!("localhost:{}", server.address.port());
    is_not_found(&get(&one, &[("host", &host)]).await);
    assert_eq!(get(&one, &[]).await.body, "x:1");
    // Another server, with other keys.
    let (other, _client) = self::server().await;
    let elsewhere = one.replace(&server.address.to_string(), &other.address.to_string());
    is_not_found(&get(&elsewhere, &[]).await);
}

#[tokio::test]
async fn a_link_expires_by_itself_and_with_its_resource() {
    let (server, client) = server().await;
    client.create(json!({ "uri": "x:1", "text": "one" })).await;
    client.create(json!({ "uri": "x:2", "text": "two", "ttl": 30 })).await;
    let short = url(&client, json!({ "uri": "x:1", "expires": 5 })).await;
    let long = url(&client, json!({ "uri": "x:1" })).await;
    let ends = link(&client, json!({ "uri": "x:2", "expires": 3_600 })).await;
    let ends_url = ends["download"]["url"].as_str().unwrap();
    server.clock.advance(Duration::from_secs(4));
    for url in [&*short, &*long, ends_url] {
        assert_eq!(get(url, &[]).await.status, 200);
    }
    server.clock.advance(Duration::from_secs(1));
    is_not_found(&get(&short, &[]).await);
    assert_eq!(get(&long, &[]).await.status, 200);
    server.clock.advance(Duration::from_secs(25));
    is_not_found(&get(ends_url, &[]).await);
    // Extending the resource does not extend the link.
    server.clock.advance(Duration::from_secs(570));
    is_not_found(&get(&long, &[]).await);
}

#[tokio::test]
async fn names_are_saved_as_they_are_without_what_deceives() {
    let (_server, client) = server().await;
    client.create(json!({ "uri": "x:1", "text": "one" })).await;
    for (name, saved) in [
        ("say \"hi\".txt", "say \"hi\".txt"),
        ("a\r\nset-cookie: b=c.txt", "a__set-cookie: b=c.txt"),
        ("Größe 漢字 🦀.txt", "Größe 漢字 🦀.txt"),
        ("invoice\u{202e}fdp.exe", "invoice_fdp.exe"),
        ("../../etc/passwd", "_.._etc_passwd"),
        ("a;b=c%20d.txt", "a;b=c%20d.txt"),
    ] {
        let result = link(&client, json!({ "uri": "x:1", "filename": name })).await;
        assert_eq!(result["file"]["name"], saved);
        let answer = get(result["download"]["url"].as_str().unwrap(), &[]).await;
        assert_eq!((answer.status, answer.header("set-cookie")), (200, None), "{name}");
        let header = answer.header("content-disposition").unwrap();
        let (_, encoded) = header.split_once("filename*=UTF-8''").unwrap();
        let decoded = percent_encoding::percent_decode_str(encoded).decode_utf8().unwrap();
        assert_eq!(decoded, saved, "{header}");
        // The line of the text saves that name. `-J` of curl knows ASCII names only.
        let url = result["download"]["url"].as_str().unwrap();
        let ascii: String = saved
            .chars()
            .map(|c| if matches!(c, '"' | '%') || !c.is_ascii() { '_' } else { c })
            .collect();
        let shell_word = format!("'{}'", saved.replace('\'', "'\\''"));
        for (arguments, expected) in
            [(format!("-o {shell_word}"), saved), ("-OJ".to_owned(), ascii.as_str())]
        {
            let folder = tempfile::tempdir().unwrap();
            let mut shell = Command::new("sh");
            shell.args(["-c", &format!("curl -fsS {arguments} '{url}'")]).env("NO_PROXY", "*");
            shell.current_dir(folder.path()).stdin(Stdio::null());
            shell.stdout(Stdio::piped()).stderr(Stdio::piped());
            let finished = run(shell).await;
            assert_eq!(finished.code, Some(0), "{arguments}: {finished:?}");
            let files: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
            let [file] = &files[..] else { panic!("{arguments}: {files:?}") };
            let file = file.as_ref().unwrap();
            assert_eq!(file.file_name().to_str(), Some(expected), "{arguments}");
            assert_eq!(std::fs::read(file.path()).unwrap(), b"one");
        }
    }
}

#[tokio::test]
async fn only_images_and_plain_text_are_shown() {
    let (_server, client) = server().await;
    for (mime_type, shown) in [
        ("text/plain", true),
        ("image/png", true),
        ("text/html", false),
        ("image/svg+xml", false),
        ("application/pdf", false),
    ] {
        client.create(json!({ "uri": "x:1", "text": "<svg/>", "mime_type": mime_type })).await;
        let url = url(&client, json!({ "uri": "x:1", "inline": true })).await;
        let answer = get(&url, &[]).await;
        let disposition = answer.header("content-disposition").unwrap();
        assert_eq!(disposition.starts_with("inline;"), shown, "{mime_type}");
        assert_eq!(answer.header("content-security-policy"), Some("sandbox; default-src 'none'"));
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
    }
}

#[tokio::test]
async fn a_media_type_that_browsers_read_differently_is_not_sent() {
    let (server, client) = server().await;
    let html = "<script>document.title = 'run'</script>";
    for (stored, sent, shown) in [
        ("text/plain;x=,text/html", "application/octet-stream", false),
        ("text/plain,text/html", "application/octet-stream", false),
        ("text/plain;x=\"", "application/octet-stream", false),
        ("text/plain text/html", "application/octet-stream", false),
        ("image/png;text/html", "application/octet-stream", false),
        ("text/plain;x=\",text/html;\"", "text/plain; charset=utf-8", true),
        ("Text/Plain; Charset=ISO-8859-1; x=y", "text/plain; charset=iso-8859-1", true),
        ("text/plain; charset=utf-7", "text/plain", true),
        ("text/html", "text/html; charset=utf-8", false),
        ("image/svg+xml", "image/svg+xml", false),
    ] {
        let resource = resource(&server.url, "x:1");
        let put = request(Method::PUT, &resource, &[("content-type", stored)]).body(html);
        let put = Answer::of(put).await;
        assert!(matches!(put.status, 200 | 201), "{stored} {put:?}");
        let link = url(&client, json!({ "uri": "x:1", "inline": true })).await;
        let answer = get(&link, &[]).await;
        assert_eq!(answer.header("content-type"), Some(sent), "{stored}");
        let disposition = answer.header("content-disposition").unwrap();
        assert_eq!(disposition.starts_with("inline;"), shown, "{stored}: {disposition}");
        let answer = get(&resource, &[]).await;
        assert_eq!(answer.header("content-type"), Some(sent), "{stored}");
        assert!(answer.header("content-disposition").unwrap().starts_with("attachment;"));
    }
}

/// Two instances on one Redis, behind one URL.
pub(super) async fn instances() -> (RedisServer, [Process; 2]) {
    let redis = RedisServer::start().await;
    let store = redis.url();
    let environment = [("LARDER_SERVER__PUBLIC_URL", "http://larder.test/mcp")];
    let arguments = ["--migrate", "--store", &store];
    let (a, _) = serving_in(&arguments, &environment).await;
    let (b, _) = serving_in(&arguments, &environment).await;
    (redis, [a, b])
}

/// The same path at an instance.
pub(super) fn at(instance: &Process, url: &str) -> String {
    url.replace("larder.test", instance.address())
}

#[tokio::test]
async fn instances_behind_one_url_serve_each_others_links() {
    let (_redis, [a, b]) = instances().await;
    let client = Modern::at(&a.url);
    client.create(json!({ "uri": "x:1", "text": "one" })).await;
    let url = url(&client, json!({ "uri": "x:1" })).await;
    assert!(url.starts_with("http://larder.test/content/d/"), "{url}");
    for instance in [&a, &b] {
        let answer = get(&at(instance, &url), &[("host", "larder.test")]).await;
        assert_eq!((answer.status, &answer.body[..]), (200, &b"one"[..]));
        is_not_found(&get(&at(instance, &url), &[]).await);
    }
}

#[tokio::test]
async fn a_link_to_a_shared_resource_ends_with_the_sharing() {
    let config = TextFile::new(&format!(
        "[auth]\nmode = \"static\"\n[[auth.tokens]]\nname = \"ann\"\nsha256 = \"{}\"\n\
         [[auth.tokens]]\nname = \"ben\"\nsha256 = \"{}\"\n\
         [log]\nlevel = \"trace\"\n",
        hex(b"ann"),
        hex(b"ben"),
    ));
    let server = Process::start(larder(&["serve", "--config", config.path()])).await;
    let [ann, ben] = ["ann", "ben"].map(|name| Modern::at(&server.url).with_token(name));
    ann.create(json!({ "uri": "x:1", "text": "one" })).await;
    assert!(
        ben.call("download_url", json!({ "uri": "x:1" })).await.failure().contains("not found")
    );
    let shared = ann.call("share_resource", json!({ "uri": "x:1", "with": "everyone" })).await;
    let sharing = shared.text().lines().next().unwrap().to_owned();
    let url = url(&ben, json!({ "uri": sharing })).await;
    let answer = get(&url, &[]).await;
    assert_eq!((answer.status, &answer.body[..]), (200, &b"one"[..]));
    ann.call("delete_resource", json!({ "uri": sharing })).await.text();
    is_not_found(&get(&url, &[]).await);
    // Nothing of the token is logged, at any level.
    let token = url.split("/d/").nth(1).unwrap().split('/').next().unwrap();
    let log = server.stop("-TERM").await.stderr;
    assert!(log.contains("audit: allowed"), "{log}");
    assert!(!log.contains(&token[..40]) && !log.contains("/content/d/"));
}

#[tokio::test]
async fn the_tool_is_offered_where_links_work() {
    let names = async |arguments: &[&str], environment: &[(&str, &str)]| {
        let (server, url) = serving_in(arguments, environment).await;
        let tools = Modern::at(&url).list("tools/list", "tools").await;
        drop(server);
        ["download_url", "upload_url", "check_upload"]
            .map(|name| tools.iter().any(|tool| tool["name"] == name))
    };
    assert_eq!(names(&[], &[]).await, [true; 3]);
    assert_eq!(names(&[], &[("LARDER_CONTENT__ENABLED", "false")]).await, [false; 3]);
    let no_writing = [("LARDER_TOOLS__WRITE", "false")];
    assert_eq!(names(&[], &no_writing).await, [true, false, false]);
    let mut command = larder(&["serve", "--stdio"]);
    command.stdin(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let list = Modern::body(&json!(1), "tools/list", json!({}));
    let mut stdin = child.stdin.take().unwrap();
    tokio::io::AsyncWriteExt::write_all(&mut stdin, format!("{list}\n").as_bytes()).await.unwrap();
    drop(stdin);
    let output = child.wait_with_output().await.unwrap();
    let listed = String::from_utf8(output.stdout).unwrap();
    assert!(listed.contains("read_resource") && !listed.contains("load_url"), "{listed}");
}
