//! The five tasks of docs/code.md, as they are written there.

use larder::tools::CodeWrites;
use serde_json::{Value, json};

use super::calls::{bytes, in_front_of};
use crate::support::Legacy;

/// The blocks of code of the guide.
fn tasks() -> Vec<String> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/code.md");
    let guide = std::fs::read_to_string(path).unwrap();
    let blocks = guide.split("```js\n").skip(1);
    blocks.map(|block| block.split("```").next().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn the_tasks_of_the_guide_do_what_it_says_in_less_than_a_kilobyte_each() {
    let (server, _) = in_front_of(["crm", "shop"], CodeWrites::Ask).await;
    let client = Legacy::of(&server).await;
    let line = |n: u32| {
        format!(
            "{} the line {n} of a document\n",
            if n.is_multiple_of(3) { "DEBUG" } else { "INFO" }
        )
    };
    let document: String = (0..12_000).map(line).collect();
    assert!(document.len() > 300_000);
    let stored = json!({ "uri": "tasks://given", "text": document });
    client.call("create_resource", stored).await.result();

    let expected = [
        json!({ "table": "tasks://issues", "failed": [{ "n": 13, "error": "There is no issue 13." }] }),
        json!([{ "user": 0, "n": 286 }, { "user": 1, "n": 286 }]),
        json!({ "lines": 8_000, "of": 12_000 }),
        json!({ "users": 7, "report": "tasks://report" }),
        json!({ "results": { "1": "value 1", "2": "value 2", "3": "value 3", "4": "value 4" }, "left": [] }),
    ];
    let tasks = tasks();
    assert_eq!(tasks.len(), expected.len());

    for (task, expected) in tasks.iter().zip(expected) {
        let run = json!({ "code": task, "inputs": { "document": "tasks://given" } });
        let answer = client.call("run_code", run).await;
        let result = answer.result();
        let text = result["content"][0]["text"].as_str().unwrap();
        let value: Value =
            serde_json::from_str(text).unwrap_or_else(|_| panic!("{task}: {result}"));
        assert_eq!(value, expected, "{task}");
        assert!(bytes(&answer) < 1_000, "{task}: {} bytes", bytes(&answer));
    }
}
