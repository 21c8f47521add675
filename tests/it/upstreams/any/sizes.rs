//! Results whose size is in members that are no content, or in the number of their blocks.

use serde_json::{Value, json};

use super::{super::text, Any, Way, result};
use crate::support::Answer;

/// The most bytes of the answer to a call whose result is stored.
const ANSWER_BYTES: usize = 60_000;

/// A text of a mebibyte, of which only the end shows that all of it was stored.
fn long() -> String {
    format!("{}the end", "x".repeat(1 << 20))
}

/// Results that have one long member, which is no content.
fn with_long_members() -> Vec<(&'static str, Value)> {
    let text = |members: Value| with(json!({ "type": "text", "text": "fine" }), members);
    let link = |members: Value| {
        with(json!({ "type": "resource_link", "uri": "a:b", "name": "b" }), members)
    };
    let embedded = |members: Value| {
        let resource = with(json!({ "uri": "a:b", "text": "fine" }), members);
        json!({ "type": "resource", "resource": resource })
    };
    let image = json!({ "type": "image", "data": "AAAA", "mimeType": long() });

    vec![
        ("_meta", json!({ "content": [text(json!({}))], "_meta": { "a": long() } })),
        ("the _meta of a block", json!({ "content": [text(json!({ "_meta": { "a": long() } }))] })),
        (
            "the annotations of a block",
            json!({ "content": [text(json!({ "annotations": { "lastModified": long() } }))] }),
        ),
        ("the media type of an image", json!({ "content": [image] })),
        ("the URI of a link", json!({ "content": [link(json!({ "uri": long() }))] })),
        ("the name of a link", json!({ "content": [link(json!({ "name": long() }))] })),
        ("the title of a link", json!({ "content": [link(json!({ "title": long() }))] })),
        (
            "the description of a link",
            json!({ "content": [link(json!({ "description": long() }))] }),
        ),
        ("the media type of a link", json!({ "content": [link(json!({ "mimeType": long() }))] })),
        (
            "the icons of a link",
            json!({ "content": [link(json!({ "icons": [{ "src": long() }] }))] }),
        ),
        ("the URI of a resource", json!({ "content": [embedded(json!({ "uri": long() }))] })),
        (
            "the media type of a resource",
            json!({ "content": [embedded(json!({ "mimeType": long() }))] }),
        ),
        (
            "the _meta of a resource",
            json!({ "content": [embedded(json!({ "_meta": { "a": long() } }))] }),
        ),
    ]
}

/// An object with more members, which replace those of the same name.
fn with(mut object: Value, members: Value) -> Value {
    let Value::Object(members) = members else { panic!("{members}") };
    object.as_object_mut().unwrap().extend(members);
    object
}

/// Whether one of the resources to which a result links has that text.
async fn has_stored(any: &Any, result: &Value, text: &str) -> bool {
    let blocks = result["content"].as_array().unwrap().iter();
    let links = blocks.filter(|block| block["type"] == "resource_link");
    let uris = links.filter_map(|link| link["uri"].as_str());
    for uri in uris.filter(|uri| uri.starts_with("larder://")) {
        let read = any.client.send("resources/read", json!({ "uri": uri })).await.result();
        if read["contents"][0]["text"].as_str().is_some_and(|stored| stored.contains(text)) {
            return true;
        }
    }
    false
}

#[tokio::test]
async fn a_long_member_that_is_no_content_is_stored_and_not_sent() {
    let any = Any::by(Way::Stdio).await;

    for (what, sent) in with_long_members() {
        let answer = any.call(result(&sent.to_string())).await.result();

        let size = answer.to_string().len();
        assert!(size < ANSWER_BYTES, "{what}: {size} bytes");
        assert_ne!(answer["isError"], true, "{what}: {answer}");
        assert!(has_stored(&any, &answer, "the end").await, "{what}: {answer}");
    }
}

#[tokio::test]
async fn ten_thousand_small_blocks_are_stored() {
    let any = Any::by(Way::Stdio).await;
    let image = json!({ "type": "image", "data": "AAAA", "mimeType": "image/png" });
    let resource = json!({ "type": "resource", "resource": { "uri": "a:b", "text": "" } });
    let marked = json!({ "type": "text", "text": "", "_meta": { "a": "x".repeat(200) } });

    for block in [json!({ "type": "text", "text": "" }), image, resource, marked] {
        let sent = json!({ "content": vec![block.clone(); 10_000] });
        let answer = any.call(result(&sent.to_string())).await.result();

        let size = answer.to_string().len();
        assert!(size < ANSWER_BYTES, "{block:.200}: {size} bytes");
        assert_ne!(answer["isError"], true, "{block:.200}: {answer}");
        assert!(text(&answer).contains("larder://r/"), "{block:.200}: {answer}");
    }
}

#[tokio::test]
async fn members_of_the_usual_size_are_sent_as_they_are() {
    let any = Any::by(Way::Stdio).await;
    let content = json!([
        {
            "type": "text", "text": "fine", "annotations": { "priority": 0.5 },
            "_meta": { "a": "x".repeat(2_000) },
        },
        { "type": "image", "data": "AAAA", "mimeType": "image/png" },
        {
            "type": "resource_link", "uri": "a:b", "name": "b", "title": "t",
            "description": "d".repeat(1_000), "mimeType": "text/plain",
        },
        { "type": "resource", "resource": { "uri": "a:b", "text": "fine", "mimeType": "text/csv" } },
    ]);
    let sent = json!({ "content": content, "_meta": { "b": "y".repeat(1_000) } });

    let answer = any.call(result(&sent.to_string())).await.result();
    assert_eq!((&answer["content"], &answer["_meta"]), (&sent["content"], &sent["_meta"]));
}

fn size(answer: &Answer) -> usize {
    answer.json().to_string().len()
}

#[tokio::test]
async fn long_members_of_a_prompt_are_left_out_and_the_prompt_says_so() {
    let any = Any::by(Way::Stdio).await;
    let prompt = |content: Value| json!({ "messages": [{ "role": "user", "content": content }] });

    let fine = prompt(json!({ "type": "text", "text": "fine" }));
    let decorated = with(fine.clone(), json!({ "_meta": { "a": long() }, "description": long() }));
    let answer = any.prompt(result(&decorated.to_string())).await;
    assert!(size(&answer) < ANSWER_BYTES, "{} bytes", size(&answer));
    assert_eq!(answer.result()["messages"], fine["messages"]);

    // The first one is no member of a block.
    for (what, blocks) in with_long_members().into_iter().skip(1) {
        let sent = prompt(blocks["content"][0].clone());
        let answer = any.prompt(result(&sent.to_string())).await;

        assert!(size(&answer) < ANSWER_BYTES, "{what}: {} bytes", size(&answer));
        let got = answer.result();
        assert!(got["messages"].to_string().contains("left out"), "{what}: {got}");
    }
}

#[tokio::test]
async fn long_members_of_the_contents_of_a_resource_are_left_out() {
    let any = Any::by(Way::Stdio).await;
    let contents = json!([{
        "uri": "a:b", "mimeType": "t".repeat(200), "text": "fine", "_meta": { "a": "b" },
    }]);
    let usual = any.read(result(&json!({ "contents": contents }).to_string())).await.result();
    assert_eq!(usual["contents"][0]["mimeType"], "t".repeat(200), "{usual}");

    // The request, which is quoted, brings the bytes.
    for member in ["mimeType", "uri", "_meta"] {
        let value = if member == "_meta" { json!({ "a": long() }) } else { long().into() };
        let content = with(json!({ "uri": "a:b", "text": "fine" }), json!({ member: value }));
        let chosen = vec![(
            "resources/read",
            result(&json!({ "contents": [content] }).to_string()).into_bytes(),
        )];
        let any = Any::choosing(Way::Json, chosen).await;
        let answer = any.read("").await;

        assert!(size(&answer) < ANSWER_BYTES, "{member}: {} bytes", size(&answer));
        assert_eq!(answer.result()["contents"][0]["text"], "fine", "{member}");
    }
}
