//! Results of a shape that no method has, and messages that are not quite JSON-RPC.

use serde_json::json;

use super::{super::text, Any, WAYS, Way, response, result};
use crate::support::patiently;

/// Results of a call that mean nothing, and what of them the caller reads.
const MEANINGLESS: [(&str, &str); 7] = [
    ("[]", "[]"),
    ("5", "5"),
    (r#""x""#, r#""x""#),
    ("null", "null"),
    (r#"{"content":5}"#, "5"),
    (r#"{"content":[{"type":"text"}]}"#, r#"{"type":"text"}"#),
    (r#"{"content":[],"isError":"perhaps"}"#, r#""perhaps""#),
];

#[tokio::test]
async fn a_call_whose_result_has_any_shape_says_that_the_tool_was_executed() {
    for way in WAYS {
        let any = Any::by(way).await;
        for (sent, shown) in MEANINGLESS {
            let answer = patiently("an answer", any.call(result(sent))).await.result();
            let said = text(&answer);
            let begin = "The upstream any executed the tool, but its answer is invalid: ";
            assert!(said.starts_with(begin) && said.contains(shown), "{way:?} {sent}: {said}");
            assert_eq!(answer["isError"], true, "{way:?} {sent}");
        }
        for sent in [r#"{"content":[{"type":"text","text":"fine"}]}"#, r#"{"content":["fine"]}"#] {
            assert_eq!(text(&any.call(result(sent)).await.result()), "fine", "{way:?}");
        }
        for sent in ["{}", r#"{"content":null}"#] {
            let empty = any.call(result(sent)).await.result();
            assert_eq!(empty["content"], json!([]), "{way:?} {sent}");
        }
    }
}

#[tokio::test]
async fn every_other_result_of_any_shape_is_an_error_that_says_what_was_sent() {
    for way in WAYS {
        let any = Any::by(way).await;
        for (sent, shown) in [("[]", "[]"), ("5", "5"), (r#""x""#, r#""x""#), ("null", "null")] {
            for answer in [
                any.read(result(sent)).await,
                any.prompt(result(sent)).await,
                any.complete(result(sent)).await,
            ] {
                let said = answer.error();
                let message = said["message"].as_str().unwrap();
                assert!(message.contains(shown), "{way:?} {sent}: {said}");
            }
        }
        for sent in [r#"{"contents":["x"]}"#, r#"{"contents":"x"}"#] {
            let said = any.read(result(sent)).await.error();
            assert!(said["message"].as_str().unwrap().contains(r#""x""#), "{way:?}: {said}");
        }
        let said = any.prompt(result(r#"{"messages":["x"]}"#)).await.error();
        assert!(said["message"].as_str().unwrap().contains(r#""x""#), "{way:?}: {said}");
        let said = any.complete(result(r#"{"completion":{"values":"x"}}"#)).await.error();
        assert!(said["message"].as_str().unwrap().contains(r#""x""#), "{way:?}: {said}");
    }
}

#[tokio::test]
async fn a_start_or_a_list_of_any_shape_is_told_to_the_caller() {
    let call = result(r#"{"content":[{"type":"text","text":"fine"}]}"#);
    for way in WAYS {
        for sent in ["[]", "5", r#""x""#] {
            let chosen = vec![("initialize", result(sent).into_bytes())];
            let any = Any::choosing(way, chosen).await;
            let answer = patiently("an answer", any.call(&call)).await.result();
            let said = text(&answer);
            let begin = "any could not be started (initialize: ";
            assert!(said.starts_with(begin) && said.contains(sent), "{way:?} {sent}: {said}");

            let any = Any::choosing(way, vec![("tools/list", result(sent).into_bytes())]).await;
            let answer = patiently("an answer", any.call(&call)).await.result();
            let said = text(&answer);
            assert!(said.contains("tools/list") && said.contains(sent), "{way:?} {sent}: {said}");
        }
        let error = response(r#""error":{"code":-32021,"message":"no","data":"a text"}"#);
        let any = Any::choosing(way, vec![("initialize", error.into_bytes())]).await;
        let answer = patiently("an answer", any.call(&call)).await.result();
        assert!(text(&answer).contains("initialize"), "{way:?}: {answer}");
    }
}

#[tokio::test]
async fn a_name_that_is_kept_is_short_and_a_long_one_is_told_by_its_beginning() {
    let long = "x".repeat(1_000_000);
    let begun = format!(r#"{{"protocolVersion":"{long}","capabilities":{{"tools":{{}}}}}}"#);
    let listed = format!(r#"{{"tools":[],"nextCursor":"{long}"}}"#);
    let task = format!(r#"{{"task":{{"taskId":"{long}","status":"working"}}}}"#);

    for way in WAYS {
        for (chosen, call, expected) in [
            (vec![("initialize", &begun)], "{}", "protocolVersion must have at most 64 bytes"),
            (vec![("tools/list", &listed)], "{}", "nextCursor must have at most 16384 bytes"),
            (vec![], &task, "taskId must have at most 1024 bytes"),
        ] {
            if way == Way::Stdio && !chosen.is_empty() {
                // The arguments of a process are too short for it.
                continue;
            }
            let chosen = chosen.into_iter().map(|(method, sent)| (method, result(sent).into()));
            let any = Any::choosing(way, chosen.collect()).await;
            let answer = patiently("an answer", any.call(result(call))).await.result();
            let said = text(&answer);
            assert!(said.contains(expected) && said.contains(r#""xxx"#), "{way:?}: {said:.500}");
            assert!(said.len() < 1_000, "{way:?}: {} bytes", said.len());
        }
    }
}

/// Messages whose meaning is clear although they are no JSON-RPC of MCP, and the text that they mean.
fn clear() -> Vec<(&'static str, Vec<u8>, String)> {
    let block = |text: &str| format!(r#"{{"content":[{{"type":"text","text":"{text}"}}]}}"#);
    let fine = block("fine");
    let mut latin = result(&block("caf?")).into_bytes();
    let at = latin.iter().position(|byte| *byte == b'?').unwrap();
    latin[at] = 0xe9;
    let long = "x".repeat(20_000);
    vec![
        (
            "an id as text",
            format!(r#"{{"jsonrpc":"2.0","id":"$ID","result":{fine}}}"#).into(),
            "fine".into(),
        ),
        (
            "an id as a fraction",
            format!(r#"{{"jsonrpc":"2.0","id":$ID.0,"result":{fine}}}"#).into(),
            "fine".into(),
        ),
        (
            "error: null",
            response(&format!(r#""error":null,"result":{fine}"#)).into(),
            "fine".into(),
        ),
        ("no version", format!(r#"{{"id":$ID,"result":{fine}}}"#).into(), "fine".into()),
        ("a batch", format!("[{}]", result(&fine)).into(), "fine".into()),
        ("a byte order mark", format!("\u{feff}{}", result(&fine)).into(), "fine".into()),
        ("a tab within a string", result(&block("a\tb")).into(), "a\tb".into()),
        ("half a surrogate pair", result(&block(r"a\ud83db")).into(), "a\u{fffd}b".into()),
        ("bytes that are no UTF-8", latin, "caf\u{fffd}".into()),
        (
            "a long text with half a pair",
            format!(
                r#"{{"result":{},"jsonrpc":"2.0","id":$ID}}"#,
                block(&format!(r"{long}\udc00"))
            )
            .into(),
            format!("{long}\u{fffd}"),
        ),
    ]
}

#[tokio::test]
async fn what_is_not_quite_json_rpc_is_taken_where_its_meaning_is_clear() {
    for way in WAYS {
        let any = Any::by(way).await;
        for (what, sent, meant) in clear() {
            let answer = patiently("an answer", any.call(sent)).await.result();
            assert_eq!(text(&answer), meant, "{way:?}: {what}");
            assert_ne!(answer["isError"], true, "{way:?}: {what}");
        }
    }
}

#[tokio::test]
async fn numbers_that_json_lacks_are_null_and_the_result_says_so() {
    let any = Any::by(Way::Stdio).await;
    let sent = r#"{"content":[],"structuredContent":{"a":NaN,"b":-Infinity,"c":1e400,"d":"NaN"}}"#;
    let answer = any.call(result(sent)).await.result();
    assert_eq!(answer["structuredContent"], json!({ "a": null, "b": null, "c": null, "d": "NaN" }));
    assert!(answer["content"].to_string().contains("taken as null"), "{answer}");
}

#[tokio::test]
async fn blocks_that_no_client_knows_are_shown() {
    let any = Any::by(Way::Stdio).await;
    let video = r#"{"type":"video","uri":"file:///a.mp4","seconds":3}"#;
    let link = r#"{"type":"resource_link","uri":"file:///folder/report.pdf"}"#;
    let annotated = r#"{"type":"text","text":"fine","annotations":{"priority":"high"}}"#;
    let sent = format!(r#"{{"content":[{video},{link},{annotated},7]}}"#);
    let answer = any.call(result(&sent)).await.result();
    let blocks = &answer["content"];
    let shown = blocks[0]["text"].as_str().unwrap();
    assert!(shown.contains("video") && shown.contains("file:///a.mp4"), "{answer}");
    assert_eq!(blocks[1]["name"], "report.pdf", "{answer}");
    assert_eq!(blocks[2]["text"], "fine", "{answer}");
    let lost = blocks[3]["text"].as_str().unwrap();
    assert!(lost.contains('7') && lost.contains("left out"), "{answer}");
}

/// Answers to a known request that are no messages.
fn unclear() -> Vec<(&'static str, Vec<u8>)> {
    let long = "x".repeat(20_000);
    let text = |text: &str| format!(r#"{{"content":[{{"type":"text","text":"{text}"}}]}}"#);
    vec![
        ("neither result nor error", response(r#""answer":1"#).into()),
        ("an escape that JSON lacks", result(&text(r"a\x41")).into()),
        (
            "a long text with such an escape",
            format!(r#"{{"result":{},"jsonrpc":"2.0","id":$ID}}"#, text(&format!(r"\x{long}")))
                .into(),
        ),
        ("a torn message", response(r#""result":{"content":["#).into()),
        (
            "a result and an error",
            response(r#""result":{},"error":{"code":1,"message":"m"}"#).into(),
        ),
        ("a depth bomb", result(&format!("{}{}", "[".repeat(1000), "]".repeat(1000))).into()),
    ]
}

#[tokio::test]
async fn an_answer_that_is_no_message_ends_its_call_at_once() {
    for way in WAYS {
        let any = Any::by(way).await;
        for (what, sent) in unclear() {
            let answer = patiently("an answer", any.call(sent)).await.result();
            let said = text(&answer);
            assert!(said.contains("executed the tool"), "{way:?}: {what}: {said}");
            assert_eq!(answer["isError"], true, "{way:?}: {what}");
        }
    }
}

#[tokio::test]
async fn an_answer_without_an_id_ends_the_call_that_waits() {
    let nameless = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"torn"}}"#;
    for way in WAYS {
        let any = Any::by(way).await;
        let answer = patiently("an answer", any.call(nameless)).await.json();
        assert!(answer.to_string().contains("torn"), "{way:?}: {answer}");
    }
}

#[tokio::test]
async fn pages_that_are_null_are_empty_and_an_empty_cursor_ends_the_list() {
    let tools = r#"{"tools":[{"name":"say","inputSchema":{"type":"object"}}],"nextCursor":""}"#;
    let chosen = vec![
        ("tools/list", result(tools).into_bytes()),
        ("prompts/list", result(r#"{"prompts":null}"#).into_bytes()),
    ];
    let any = Any::choosing(Way::Stdio, chosen).await;
    let listed = any.client.send("tools/list", json!({})).await.result();
    let tools = listed["tools"].as_array().unwrap().iter();
    let own = tools.filter(|tool| tool["name"].as_str().unwrap().contains("say"));
    assert_eq!(own.count(), 1, "{listed}");
    let prompts = any.client.send("prompts/list", json!({})).await.result();
    assert_eq!(prompts["prompts"], json!([]));
}
