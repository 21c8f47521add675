//! Long contents of an upstream's resources, which are in the store while they arrive.

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Value, json};

use super::{
    in_front_of, lines,
    streaming::{
        bytes_of, long, long_over_http, memory, stored, storing_in_files, text_of, with_quota,
    },
};
use crate::support::{Legacy, Modern, sha256};

/// The URI at which the server sends such contents.
fn uri_of(options: &Value) -> String {
    let encoded = options.to_string();
    let bytes = encoded.bytes().map(|byte| match byte {
        b'a'..=b'z' | b'0'..=b'9' | b'_' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    });
    format!("long:?{}", bytes.collect::<String>())
}

fn params_of(options: &Value) -> Value {
    json!({ "uri": uri_of(options) })
}

fn text_in(contents: &Value) -> &str {
    contents["text"].as_str().unwrap_or_else(|| panic!("{contents:.200}"))
}

#[tokio::test]
async fn long_contents_are_passed_on_as_they_are_however_they_arrive() {
    let (json, _json_server) = long_over_http(&[]).await;
    let (events, _events_server) = long_over_http(&["--events"]).await;
    for upstream in [long(&[]), json, events] {
        let target = format!("{:?}", upstream.target);
        let server = in_front_of(vec![upstream]).await;
        let (legacy, modern) = (Legacy::of(&server).await, Modern::of(&server));
        for options in [
            json!({ "contents": [3_000_000, 10, 300_000], "blob": 1_000_000 }),
            json!({ "contents": [1_000_000], "late_id": true, "piece": 999, "ascii": true }),
            json!({ "blob": 900_001, "late_id": true, "piece": 7_777 }),
            json!({ "blob": 2_000_000, "lines": true }),
            json!({ "blob": 2_000, "lines": true }),
        ] {
            let what = format!("{target} {options}");
            let read = legacy.send("resources/read", params_of(&options)).await.result();
            let contents = read["contents"].as_array().unwrap();
            let texts = options["contents"].as_array().map(Vec::as_slice).unwrap_or_default();
            assert_eq!(contents.len(), texts.len() + usize::from(!options["blob"].is_null()));
            for (n, (content, bytes)) in contents.iter().zip(texts).enumerate() {
                let expected = text_of(usize::try_from(bytes.as_u64().unwrap()).unwrap());
                assert_eq!(sha256(text_in(content)), sha256(&expected), "{what}");
                assert_eq!(content["mimeType"], "text/x-log", "{what}");
                assert_eq!(content["_meta"], json!({ "n": n }), "{what}");
                assert_eq!(content["uri"], format!("{}#{n}", uri_of(&options)), "{what}");
            }
            if let Some(bytes) = options["blob"].as_u64() {
                let content = contents.last().unwrap();
                assert_eq!(content["mimeType"], "application/zip", "{what}");
                let blob = BASE64_STANDARD.decode(content["blob"].as_str().unwrap()).unwrap();
                assert!(blob == bytes_of(usize::try_from(bytes).unwrap()), "{what}");
            }
            let again = modern.send("resources/read", params_of(&options)).await.result();
            assert!(again["contents"] == read["contents"], "{what}");
        }
        assert!(stored(&legacy).await.is_empty(), "nothing of it is listed");
    }
}

#[tokio::test]
async fn a_long_blob_that_is_not_base64_is_the_error_of_a_short_one() {
    let server = in_front_of(vec![long(&[])]).await;
    let client = Legacy::of(&server).await;
    let mut errors = Vec::new();
    for bytes in [1_000, 1_000_000] {
        let options = json!({ "blob": bytes, "broken": true });
        let answer = client.send("resources/read", params_of(&options)).await.json();
        errors.push(answer["error"].clone());
    }
    let message = "long sent an answer that cannot be used: its blob is not base64";
    assert_eq!(errors[0]["message"], message);
    assert_eq!(errors[0], errors[1]);
}

#[tokio::test]
async fn contents_for_which_the_store_has_no_room_are_held_instead() {
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("received");
    let upstream = long(&[&format!("--record={}", record.display())]);
    let server = with_quota(upstream, 1 << 20).await;
    let client = Legacy::of(&server).await;
    let requests = || lines(&record).iter().filter(|line| line.contains("resources/read")).count();
    for (bytes, sent) in [(600_000, 1), (3_000_000, 2)] {
        let before = requests();
        let options = json!({ "contents": [bytes] });
        let read = client.send("resources/read", params_of(&options)).await.result();
        assert_eq!(sha256(text_in(&read["contents"][0])), sha256(&text_of(bytes)));
        assert_eq!(requests() - before, sent, "{bytes}");
    }
}

#[tokio::test]
async fn long_contents_take_flat_memory() {
    let (json, _json_server) = long_over_http(&[]).await;
    let (events, _events_server) = long_over_http(&["--events"]).await;
    for upstream in [long(&[]), json, events] {
        let (_files, server) = storing_in_files(&upstream).await;
        let client = Modern::at(&server.url);
        let mut grown = Vec::new();
        for options in [
            json!({ "contents": [5 << 20], "late_id": true }),
            json!({ "blob": 5 << 20 }),
            json!({ "contents": [5 << 20, 5 << 20] }),
            json!({ "contents": [24 << 20], "late_id": true }),
            json!({ "blob": 24 << 20, "late_id": true }),
            json!({ "contents": [12 << 20, 12 << 20] }),
        ] {
            // Resets the peak.
            std::fs::write(format!("/proc/{}/clear_refs", server.id()), "5").unwrap();
            let before = memory(&server, "VmRSS:");
            let read = client.send("resources/read", params_of(&options)).await.result();
            let content = &read["contents"][0];
            let sent = content["text"].as_str().or(content["blob"].as_str()).unwrap();
            assert!(sent.len() >= 5 << 20, "{}", sent.len());
            grown.push(memory(&server, "VmHWM:").saturating_sub(before) >> 10);
        }
        // The first ones warm the server up. The others take a few blocks, and what the
        // allocator and buffers of HTTP hold back.
        assert!(grown[3..].iter().all(|grown| *grown < 10 << 10), "{grown:?}");
    }
}
