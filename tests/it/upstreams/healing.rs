//! Upstreams over HTTP that forget sessions, cut streams, redirect, and write streams in their own
//! way.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::State,
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
    routing,
};
use serde_json::{Value, json};

use super::{http::remote, in_front_of, text};
use crate::support::{
    Legacy, eventually,
    process::{larder, run},
};

/// A legacy server whose manners are set by a test.
struct Far {
    /// The status of requests in a session that is not the present one.
    lost: StatusCode,
    /// The number of the present session.
    session: AtomicUsize,
    /// Whether calls are refused with 400.
    refuses_calls: AtomicBool,
    /// Writes an event of a stream, and the content type.
    event: fn(&str) -> Vec<u8>,
    content_type: &'static str,
    /// In how many pieces the answer to a call comes; each but the last ends before the answer.
    cuts: usize,
    /// How often a stream was asked for by GET, and after which events.
    resumed: parking_lot::Mutex<Vec<Option<String>>>,
}

impl Default for Far {
    fn default() -> Self {
        Self {
            lost: StatusCode::NOT_FOUND,
            session: AtomicUsize::new(0),
            refuses_calls: AtomicBool::new(false),
            event: |data| format!("data: {data}\n\n").into_bytes(),
            content_type: "text/event-stream",
            cuts: 0,
            resumed: parking_lot::Mutex::default(),
        }
    }
}

impl Far {
    fn stream(&self, body: Vec<u8>) -> Response {
        Response::builder()
            .header("content-type", self.content_type)
            .body(Body::from(body))
            .unwrap()
    }

    /// The answer to a call: its text names the session.
    fn answer(&self, id: &Value) -> String {
        let content = format!("in session {}", self.session.load(SeqCst));
        let result = json!({ "content": [{ "type": "text", "text": content }] });
        json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string()
    }

    fn post(&self, headers: &HeaderMap, body: &Bytes) -> Response {
        let request: Value = serde_json::from_slice(body).unwrap();
        let method = request["method"].as_str().unwrap_or_default();
        let respond = |result: Value| {
            let message = json!({ "jsonrpc": "2.0", "id": request["id"], "result": result });
            ([("content-type", "application/json")], message.to_string()).into_response()
        };

        if method == "initialize" {
            let number = self.session.fetch_add(1, SeqCst) + 1;
            let mut response = respond(json!({
                "protocolVersion": "2025-11-25", "capabilities": { "tools": {} },
                "serverInfo": { "name": "far", "version": "1" },
            }));
            let session = number.to_string().parse().unwrap();
            response.headers_mut().insert("mcp-session-id", session);
            return response;
        }
        if method == "server/discover" {
            return (StatusCode::BAD_REQUEST, "No session").into_response();
        }
        let present = self.session.load(SeqCst).to_string();
        if headers.get("mcp-session-id").is_none_or(|session| *session != *present) {
            return (self.lost, "No valid session ID provided").into_response();
        }

        match method {
            "ping" => respond(json!({})),
            "tools/list" => respond(
                json!({ "tools": [{ "name": "say", "inputSchema": { "type": "object" } }] }),
            ),
            "tools/call" if self.refuses_calls.load(SeqCst) => {
                let error = json!({ "code": -32602, "message": "no such thing" });
                let message = json!({ "jsonrpc": "2.0", "id": request["id"], "error": error });
                (StatusCode::BAD_REQUEST, message.to_string()).into_response()
            }
            "tools/call" if self.cuts > 0 => {
                let id = &request["id"];
                self.stream(format!("id: {id}:1\nretry: 1\ndata:\n\n").into_bytes())
            }
            "tools/call" => self.stream((self.event)(&self.answer(&request["id"]))),
            _ => StatusCode::ACCEPTED.into_response(),
        }
    }

    fn get(&self, headers: &HeaderMap) -> Response {
        let last = headers.get("last-event-id").map(|id| id.to_str().unwrap().to_owned());
        self.resumed.lock().push(last.clone());
        let Some((id, piece)) = last.as_deref().and_then(|last| last.split_once(':')) else {
            return StatusCode::METHOD_NOT_ALLOWED.into_response();
        };

        let piece: usize = piece.parse().unwrap();
        let next = format!("id: {id}:{}\n", piece + 1);
        if piece < self.cuts {
            return self.stream(format!("{next}data:\n\nid: lost\ndata: {{\"cut\"").into_bytes());
        }
        let id: i64 = id.parse().unwrap();
        self.stream(format!("{next}data: {}\n\n", self.answer(&json!(id))).into_bytes())
    }

    /// Serves it below this path; its URL.
    async fn serve(self: &Arc<Self>, path: &str) -> String {
        let post = |State(far): State<Arc<Self>>, headers: HeaderMap, body: Bytes| async move {
            far.post(&headers, &body)
        };
        let get =
            |State(far): State<Arc<Self>>, headers: HeaderMap| async move { far.get(&headers) };
        let delete = || async { StatusCode::OK };
        let router = Router::new().route(path, routing::post(post).get(get).delete(delete));
        listen(router.with_state(Arc::clone(self))).await + path
    }
}

/// Serves a router; its origin.
async fn listen(router: Router) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    origin
}

async fn in_front(far: &Arc<Far>) -> Legacy {
    let url = far.serve("/mcp").await;
    let server = in_front_of(vec![remote("far", &url)]).await;
    let client = Legacy::of(&server).await;
    // The server runs as long as the test.
    std::mem::forget(server);
    client
}

async fn say(client: &Legacy) -> String {
    let result = client.call("say", json!({})).await;
    let result = result.json();
    text(&result["result"]).to_owned() + result["error"]["message"].as_str().unwrap_or_default()
}

#[tokio::test]
async fn a_lost_session_heals_however_the_server_says_so() {
    for lost in [400, 401, 404, 410] {
        let lost = StatusCode::from_u16(lost).unwrap();
        let far = Arc::new(Far { lost, ..Far::default() });
        let client = in_front(&far).await;
        assert_eq!(say(&client).await, "in session 1", "{lost}");
        // Another instance of the server knows no session of this one.
        far.session.fetch_add(10, SeqCst);
        assert_eq!(say(&client).await, "in session 12", "{lost}");
        assert_eq!(say(&client).await, "in session 12", "{lost}");
    }
}

#[tokio::test]
async fn a_refusal_of_one_request_does_not_end_the_session() {
    let far = Arc::new(Far::default());
    let client = in_front(&far).await;
    assert_eq!(say(&client).await, "in session 1");
    far.refuses_calls.store(true, SeqCst);
    for _ in 0..2 {
        assert_eq!(say(&client).await, "no such thing (HTTP 400)");
    }
    far.refuses_calls.store(false, SeqCst);
    assert_eq!(say(&client).await, "in session 1");
}

#[tokio::test]
async fn an_answer_whose_stream_is_cut_goes_on_after_the_last_event() {
    for cuts in [1, 2, 5] {
        let far = Arc::new(Far { cuts, ..Far::default() });
        let client = in_front(&far).await;
        assert_eq!(say(&client).await, "in session 1");
        let resumed: Vec<_> = far.resumed.lock().iter().flatten().cloned().collect();
        let after = |id: &String| id.split_once(':').unwrap().1.parse::<usize>().unwrap();
        let expected: Vec<_> = (1..=cuts).collect();
        assert_eq!(resumed.iter().map(after).collect::<Vec<_>>(), expected);
    }
}

#[tokio::test]
async fn a_call_at_the_terminal_goes_on_after_the_last_event() {
    for cuts in [1, 3] {
        let far = Arc::new(Far { cuts, ..Far::default() });
        let url = far.serve("/mcp").await;
        let called = run(larder(&["call", "say", "--server", &url])).await;
        assert_eq!(
            (called.code, called.stdout.as_str()),
            (Some(0), "in session 1\n"),
            "{called:?}"
        );
        let resumed = far.resumed.lock().iter().flatten().count();
        assert_eq!(resumed, cuts, "each after an event");
    }
}

#[tokio::test]
async fn an_answer_whose_stream_cannot_go_on_is_an_error_at_once() {
    let far = Arc::new(Far { event: |_| b"data:\n\n".to_vec(), ..Far::default() });
    let client = in_front(&far).await;
    let expected = "far did not answer: it closed the stream without a response; whether the request was done is unknown.";
    assert_eq!(say(&client).await, expected);
}

#[tokio::test]
async fn a_redirect_is_followed_within_the_origin() {
    for status in [301, 302, 307, 308] {
        let status = StatusCode::from_u16(status).unwrap();
        let far = Arc::new(Far::default());
        let behind = Arc::clone(&far);
        let post =
            move |headers: HeaderMap, body: Bytes| async move { behind.post(&headers, &body) };
        let times = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&times);
        let redirect = move || async move {
            counted.fetch_add(1, SeqCst);
            (status, [("location", "/mcp/")]).into_response()
        };
        let router =
            Router::new().route("/mcp", routing::any(redirect)).route("/mcp/", routing::post(post));
        let url = listen(router).await + "/mcp";
        let server = in_front_of(vec![remote("far", &url)]).await;
        let client = Legacy::of(&server).await;
        assert_eq!(say(&client).await, "in session 1", "{status}");
        let begun = times.load(SeqCst);
        assert!(begun > 0, "{status}");
        assert_eq!(say(&client).await, "in session 1");
        let knows_the_way = times.load(SeqCst) == begun;
        let is_permanent = matches!(status.as_u16(), 301 | 308);
        assert_eq!(knows_the_way, is_permanent, "{status}");
    }
}

#[tokio::test]
async fn no_redirect_leads_to_another_origin() {
    let far = Arc::new(Far::default());
    let elsewhere = far.serve("/mcp").await;
    for status in [301, 302, 303, 307, 308] {
        let location = elsewhere.clone();
        let redirect = move || async move {
            let status = StatusCode::from_u16(status).unwrap();
            (status, [("location", location)]).into_response()
        };
        let url = listen(Router::new().route("/mcp", routing::any(redirect))).await + "/mcp";
        let server = in_front_of(vec![remote("far", &url)]).await;
        let said = say(&Legacy::of(&server).await).await;
        assert!(said.contains(&format!("HTTP {status}")), "{said}");
        assert_eq!(far.session.load(SeqCst), 0);
    }
}

#[tokio::test]
async fn streams_are_read_however_they_are_written() {
    /// Frames the data of an event.
    type Framing = fn(&str) -> Vec<u8>;

    let ways: [(Framing, &str); 7] = [
        (|data| format!("data: {data}\r\r").into_bytes(), "text/event-stream"),
        (|data| format!("data: {data}\r\n\r\n").into_bytes(), "text/event-stream; charset=utf-8"),
        (|data| format!("\u{feff}data: {data}\n\n").into_bytes(), "TEXT/EVENT-STREAM"),
        (|data| format!("\u{feff}: hi\r\rdata:{data}\r\r").into_bytes(), "Text/Event-Stream;x=y"),
        (
            |data| format!("event: message\rid: 1\rdata: {data}\r\r").into_bytes(),
            " text/event-stream ",
        ),
        (|data| format!("\u{feff}{data}").into_bytes(), "Application/JSON; charset=UTF-8"),
        (|data| format!("\r\n {data}\r\n").into_bytes(), "application/json"),
    ];
    for (event, content_type) in ways {
        let far = Arc::new(Far { event, content_type, ..Far::default() });
        let client = in_front(&far).await;
        assert_eq!(say(&client).await, "in session 1", "{content_type}");
    }
}

#[tokio::test]
async fn a_stream_of_notifications_that_ends_at_once_is_opened_ever_more_seldom() {
    let far = Arc::new(Far { cuts: 1, ..Far::default() });
    let behind = Arc::clone(&far);
    let post = move |headers: HeaderMap, body: Bytes| async move { behind.post(&headers, &body) };
    let opened = Arc::new(AtomicUsize::new(0));
    let times = Arc::new(parking_lot::Mutex::new(Vec::new()));
    let (counted, noted) = (Arc::clone(&opened), Arc::clone(&times));
    let get = move || async move {
        counted.fetch_add(1, SeqCst);
        noted.lock().push(tokio::time::Instant::now());
        ([("content-type", "text/event-stream")], ": hello\n\n").into_response()
    };
    let url = listen(Router::new().route("/mcp", routing::post(post).get(get))).await + "/mcp";
    let server = in_front_of(vec![remote("far", &url)]).await;
    Legacy::of(&server).await.send("tools/list", json!({})).await.result();
    eventually("four streams", async || opened.load(SeqCst) == 4).await;
    let times = times.lock().clone();
    let pauses: Vec<_> = times.windows(2).map(|pair| (pair[1] - pair[0]).as_secs()).collect();
    assert!(pauses[0] >= 1 && pauses[1] >= 2 && pauses[2] >= 4, "{pauses:?}");
}
