#![allow(clippy::unwrap_used)]

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use super::*;
use crate::{
    budget::MessageBudget, link::ExpectedAnswer, received::CallAnswer, settings::Settings,
};

/// A request of a test: its first line and headers, and its body.
struct Sent {
    head: String,
    body: Value,
}

impl Sent {
    fn path(&self) -> &str {
        self.head.split(' ').nth(1).unwrap()
    }

    fn method(&self) -> &str {
        self.body["method"].as_str().unwrap_or_default()
    }

    /// A response with a result that has this text.
    fn says(&self, text: &str) -> String {
        let result = json!({ "content": [{ "type": "text", "text": text }] });
        json!({ "jsonrpc": "2.0", "id": self.body["id"], "result": result }).to_string()
    }
}

/// A response with JSON as its body.
fn respond(status: &str, headers: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {length}\r\n{headers}\r\n{body}"
    )
}

fn respond_json(status: &str, body: &str) -> String {
    respond(status, "content-type: application/json\r\n", body)
}

async fn read_request(stream: &mut TcpStream) -> Sent {
    let mut bytes = Vec::new();
    loop {
        let mut piece = [0; 4096];
        let read = stream.read(&mut piece).await.unwrap();
        bytes.extend_from_slice(&piece[..read]);

        let text = String::from_utf8_lossy(&bytes).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let head = head.to_ascii_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let length: usize = length.map_or(0, |length| length.parse().unwrap());
        if body.len() >= length {
            return Sent { head, body: serde_json::from_str(body).unwrap_or_default() };
        }
    }
}

/// A server that answers each request so, and the client of it.
async fn in_front_of(answer: impl Fn(&Sent) -> String + Send + 'static) -> (Http, Arc<Link>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let request = read_request(&mut stream).await;
            stream.write_all(answer(&request).as_bytes()).await.unwrap();
            stream.shutdown().await.unwrap();
        }
    });

    let session = RemoteSession::default();
    session.now.lock().id = Some(HeaderValue::from_static("s"));
    let http = Http {
        client: Client::builder().redirect(Policy::none()).build().unwrap(),
        url: Mutex::new(Url::parse(&url).unwrap()),
        headers: HeaderMap::new(),
        max_message: 1 << 20,
        session: Arc::new(session),
        account: None,
    };
    let settings = Settings::new("far", vec!["far".to_owned()]);
    let budget = Arc::new(MessageBudget::default());
    let (link, _) = Link::new(Arc::new(settings), budget, json!({}));
    (http, link)
}

/// Calls a tool; the text of its result, or the error.
async fn call(http: &Http, link: &Arc<Link>) -> Result<String, UpstreamError> {
    let mut opened = link.open(None, ExpectedAnswer::Other)?;
    let message = json!({ "jsonrpc": "2.0", "id": opened.id, "method": "tools/call", "params": { "name": "t" } });
    let message = Bytes::from(message.to_string());
    let outline = Outline::of(&message, link);

    let sent = http.send(link, message, &outline).await;
    if let Err(error) = sent {
        link.fail(opened.id, error);
    }
    let answered = (&mut opened.answer).await.unwrap()?;
    match answered.result.read() {
        Ok(CallAnswer::Done { result, .. }) => {
            Ok(result.content[0].as_text().unwrap().text.clone())
        }
        _ => panic!("no result"),
    }
}

#[tokio::test]
async fn a_temporary_redirect_is_followed_each_time_and_a_permanent_one_is_remembered() {
    for (status, is_kept) in [(301, true), (302, false), (307, false), (308, true)] {
        let times = Arc::new(AtomicUsize::new(0));
        let redirected = Arc::clone(&times);
        let (http, link) = in_front_of(move |sent| {
            if sent.path() == "/mcp/" {
                return respond_json("200 OK", &sent.says("there"));
            }
            redirected.fetch_add(1, SeqCst);
            respond(&format!("{status} Moved"), "location: /mcp/\r\n", "")
        })
        .await;

        for _ in 0..2 {
            assert_eq!(call(&http, &link).await.unwrap(), "there");
        }
        assert_eq!(times.load(SeqCst), if is_kept { 1 } else { 2 }, "{status}");
    }
}

#[tokio::test]
async fn a_redirect_to_a_page_that_is_no_endpoint_is_forgotten() {
    for status in [301, 302, 307, 308] {
        for (page, media_type) in [("200 OK", "text/html"), ("401 No", "application/json")] {
            let is_out = AtomicUsize::new(1);
            let (http, link) = in_front_of(move |sent| match sent.path() {
                "/mcp" if is_out.swap(0, SeqCst) == 1 => {
                    respond(&format!("{status} Moved"), "location: /login\r\n", "")
                }
                "/mcp" => respond_json("200 OK", &sent.says("in")),
                _ => respond(page, &format!("content-type: {media_type}\r\n"), "<html>Log in"),
            })
            .await;

            let refused = call(&http, &link).await.unwrap_err().to_string();
            assert!(refused.contains("Log in"), "{refused}");
            assert_eq!(call(&http, &link).await.unwrap(), "in", "{status} {page}");
        }
    }
}

#[tokio::test]
async fn only_a_ping_decides_that_a_session_is_lost() {
    let error = |id: i64, code: i64, message: &str| {
        json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } })
            .to_string()
    };
    let unnamed = r#"{"error":{"code":-32001,"message":"Session not found"},"id":null}"#;

    for (status, body) in [
        ("404 Not Found", "no such page".to_owned()),
        ("404 Not Found", error(1, -32001, "Session not found")),
        ("403 Forbidden", "Unknown session".to_owned()),
        ("422 Unprocessable", r#"{"detail":"invalid sessionId"}"#.to_owned()),
        ("500 Error", error(1, -32001, "gone")),
        ("200 OK", unnamed.to_owned()),
        ("200 OK", error(1, -32000, "Your Session has expired")),
        ("410 Gone", String::new()),
    ] {
        // The server says so to every request, or to this one alone.
        for knows in [false, true] {
            let answer = body.clone();
            let (http, link) = in_front_of(move |sent| match sent.method() {
                "ping" if knows => {
                    respond_json("200 OK", r#"{"jsonrpc":"2.0","id":0,"result":{"session":1}}"#)
                }
                _ => respond_json(status, &answer),
            })
            .await;

            let failed = call(&http, &link).await.unwrap_err();
            let is_lost = matches!(failed, UpstreamError::NotProcessed { .. });
            assert_eq!(is_lost, !knows, "{status} {body}: {failed}");
            assert_eq!(link.has_ended(), !knows);
        }
    }
}

#[tokio::test]
async fn an_answer_with_the_status_404_is_the_answer() {
    let (http, link) = in_front_of(|sent| {
        assert_eq!(sent.method(), "tools/call", "there is no ping");
        let error = json!({ "code": -32050, "message": "no such customer" });
        let id = &sent.body["id"];
        let body = json!({ "jsonrpc": "2.0", "id": id, "error": error }).to_string();
        respond_json("404 Not Found", &body)
    })
    .await;

    let UpstreamError::Refused(error) = call(&http, &link).await.unwrap_err() else { panic!() };
    assert_eq!((error.code, &*error.message), (-32050, "no such customer (HTTP 404)"));
}

#[tokio::test]
async fn a_ping_that_is_refused_as_unknown_shows_that_the_session_is_known() {
    let (http, link) = in_front_of(|sent| match sent.method() {
        "ping" => {
            let unknown = r#"{"jsonrpc":"2.0","id":0,"error":{"code":-32601,"message":"unknown"}}"#;
            respond_json("404 Not Found", unknown)
        }
        _ => respond_json("404 Not Found", "no such page"),
    })
    .await;

    let failed = call(&http, &link).await.unwrap_err().to_string();
    assert_eq!(failed, "far refused the request with HTTP 404: no such page");
}

#[tokio::test]
async fn a_session_that_is_lost_at_once_is_told_with_the_status_and_the_body() {
    let (http, link) = in_front_of(|_| respond_json("404 Not Found", "no such page")).await;
    let failed = call(&http, &link).await.unwrap_err().to_string();
    assert!(failed.contains("HTTP 404: no such page"), "{failed}");
}

#[tokio::test]
async fn an_answer_to_another_request_does_not_hide_the_right_one() {
    let foreign = [r#"{"id":"other","result":{}}"#, r#"{"id":77,"error":{"message":"m"}}"#];
    for wrong in foreign {
        for is_stream in [true, false] {
            for has_right in [true, false] {
                let (http, link) = in_front_of(move |sent| {
                    let right = if has_right { sent.says("right") } else { wrong.to_owned() };
                    if is_stream {
                        let events = format!("data: {wrong}\n\ndata: {right}\n\n");
                        respond("200 OK", "content-type: text/event-stream\r\n", &events)
                    } else {
                        respond_json("200 OK", &format!("[{wrong},{right}]"))
                    }
                })
                .await;

                match call(&http, &link).await {
                    Ok(text) => assert!(has_right && text == "right"),
                    Err(error) => {
                        let error = error.to_string();
                        assert!(
                            !has_right && error.contains("it answers another request"),
                            "{error}"
                        );
                    }
                }
            }
        }
    }
}

#[tokio::test]
async fn an_encoding_is_not_asked_for_and_named_where_it_comes() {
    for status in ["200 OK", "500 Error"] {
        let (http, link) = in_front_of(move |_| {
            let headers = "content-type: application/json\r\ncontent-encoding: gzip\r\n";
            respond(status, headers, "\u{1f}\u{8b}")
        })
        .await;
        let failed = call(&http, &link).await.unwrap_err().to_string();
        assert!(failed.contains("Content-Encoding gzip"), "{failed}");
    }

    let remote = Remote { url: "http://127.0.0.1:9/".into(), ..Remote::default() };
    let headers = headers_of(&remote).unwrap();
    assert_eq!(headers[ACCEPT_ENCODING], "identity");
}

#[tokio::test]
async fn a_text_in_a_stream_is_shown_and_events_of_a_refusal_are_read() {
    let (http, link) = in_front_of(|_| {
        let events = "event: error\ndata: out of disk\n\n";
        respond("200 OK", "content-type: text/event-stream\r\n", events)
    })
    .await;
    let failed = call(&http, &link).await.unwrap_err().to_string();
    assert!(failed.contains("out of disk"), "{failed}");

    for (data, shown) in [
        ("out of disk", "HTTP 500: out of disk"),
        (r#"{"error":{"code":-5,"message":"full"}}"#, "full (HTTP 500)"),
    ] {
        let (http, link) = in_front_of(move |_| {
            let events = format!("event: error\ndata: {data}\n\n");
            respond("500 Error", "content-type: text/event-stream\r\n", &events)
        })
        .await;
        let failed = call(&http, &link).await.unwrap_err().to_string();
        assert!(failed.ends_with(shown), "{failed}");
    }

    let (http, link) = in_front_of(|sent| {
        respond("200 OK", "content-type: text/event-stream\r\n", &sent.says("bare"))
    })
    .await;
    assert_eq!(call(&http, &link).await.unwrap(), "bare");
}
