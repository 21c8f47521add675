//! What passes through unchanged: definitions, arguments, progress, log messages and
//! cancellation.

use std::process::Stdio;

use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    process::Command,
};

use super::{command_line, in_front_of, lines, listed, odd, package, text};
use crate::support::{Events, Legacy, Modern, eventually, patiently};

/// The tools of a command as a client of its own sees them.
async fn tools_of(command: &[String]) -> Vec<Value> {
    let mut child = Command::new(&command[0]);
    child.args(&command[1..]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = child.kill_on_drop(true).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap()).lines();
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    let opened = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    for body in [Legacy::initialize("2025-11-25"), opened, list] {
        input.write_all(format!("{body}\n").as_bytes()).await.unwrap();
    }
    loop {
        let line = patiently("a line", output.next_line()).await.unwrap().unwrap();
        let mut message: Value = serde_json::from_str(&line).unwrap();
        if message["id"] == 1 {
            return message["result"]["tools"].as_array_mut().unwrap().split_off(0);
        }
    }
}

#[tokio::test]
async fn tools_are_offered_as_they_are() {
    let everything = package("everything", &[]);
    let direct = tools_of(command_line(&everything)).await;
    assert!(direct.len() > 10);
    let server = in_front_of(vec![everything]).await;
    let through = listed(&Legacy::of(&server).await).await;
    for tool in &direct {
        let name = tool["name"].as_str().unwrap();
        for member in ["title", "description", "inputSchema", "annotations", "_meta"] {
            assert_eq!(through[name][member], tool[member], "{name}");
        }
        assert_eq!(through[name]["outputSchema"].is_object(), tool["outputSchema"].is_object());
    }
    let client = Legacy::of(&server).await;
    let sum = client.call("get-sum", json!({ "a": 2, "b": 3 })).await.result();
    assert_eq!(text(&sum), "The sum of 2 and 3 is 5.");
    let image = client.call("get-tiny-image", json!({})).await.result();
    assert_eq!(image["content"][1]["type"], "image");
    let weather =
        client.call("get-structured-content", json!({ "location": "Chicago" })).await.result();
    assert!(weather["structuredContent"]["temperature"].is_number(), "{weather}");
    // The upstream's own words about wrong arguments.
    let wrong = client.call("get-sum", json!({ "a": "x" })).await;
    assert!(String::from_utf8_lossy(&wrong.body).contains("Invalid arguments"), "{wrong:?}");
}

#[tokio::test]
async fn both_eras_of_clients_and_upstreams_work_together() {
    for discover in ["refuse", "modern", "exit"] {
        let server = in_front_of(vec![odd("odd", &[&format!("--discover={discover}")])]).await;
        let arguments = json!({ "n": 1, "deep": { "list": [null, "ä"] } });
        let legacy = Legacy::of(&server).await.call("echo", arguments.clone()).await.result();
        let modern = Modern::of(&server).call("echo", arguments.clone()).await.result();
        for result in [legacy, modern] {
            assert_eq!(serde_json::from_str::<Value>(text(&result)).unwrap(), arguments);
        }
    }
}

#[tokio::test]
async fn progress_comes_in_its_order_under_the_clients_token() {
    let server = in_front_of(vec![odd("odd", &[])]).await;
    let client = Legacy::of(&server).await;
    let mut events = client.stream_call(1, "slow", json!({ "steps": 20 })).await;
    primed(&mut events).await;
    for step in 1..=20 {
        let message = events.message().await;
        assert_eq!(message["method"], "notifications/progress");
        assert_eq!(message["params"]["progressToken"], "token");
        assert_eq!(message["params"]["progress"].as_f64(), Some(f64::from(step)));
        assert_eq!(message["params"]["message"], format!("step {step}"));
    }
    assert_eq!(text(&events.message().await["result"]), "done");
}

#[tokio::test]
async fn a_cancelled_call_is_cancelled_under_the_upstreams_own_id() {
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("received");
    let server = in_front_of(vec![odd("odd", &[&format!("--record={}", record.display())])]).await;
    let client = Legacy::of(&server).await;
    let waiting = {
        let client = client.clone();
        tokio::spawn(async move {
            let call = json!({ "name": "mute", "arguments": {} });
            let body =
                json!({ "jsonrpc": "2.0", "id": "mine", "method": "tools/call", "params": call });
            let _ = client.post(&body).send().await;
        })
    };
    let received = |method: &str| {
        let messages = lines(&record).into_iter().filter_map(|l| serde_json::from_str(&l).ok());
        messages.into_iter().find(|message: &Value| message["method"] == method)
    };
    eventually("the call", async || received("tools/call").is_some()).await;
    client.notify("notifications/cancelled", json!({ "requestId": "mine" })).await;
    eventually("the cancellation", async || received("notifications/cancelled").is_some()).await;
    let (call, cancelled) =
        (received("tools/call").unwrap(), received("notifications/cancelled").unwrap());
    assert!(call["id"].is_number());
    assert_eq!(cancelled["params"]["requestId"], call["id"]);
    waiting.abort();
}

#[tokio::test]
async fn log_messages_come_at_the_level_that_the_client_wants() {
    let server = in_front_of(vec![odd("odd", &[])]).await;
    let client = Legacy::of(&server).await;
    client.send("logging/setLevel", json!({ "level": "error" })).await.result();
    let quiet = client.call("log", json!({})).await.result();
    assert_eq!(text(&quiet), "logged");
    client.send("logging/setLevel", json!({ "level": "info" })).await.result();
    let mut events = client.stream_call(2, "log", json!({})).await;
    primed(&mut events).await;
    let message = events.message().await;
    assert_eq!(message["method"], "notifications/message");
    let logged = json!({ "level": "warning", "logger": "odd", "data": "careful" });
    assert_eq!(message["params"], logged);
}

/// The first event of a stream that can be resumed is empty.
async fn primed(events: &mut Events) {
    assert_eq!(events.next().await.unwrap().data, "");
}

#[tokio::test]
async fn schemas_that_clients_cannot_use_do_not_spoil_the_list() {
    let server = in_front_of(vec![odd("odd", &["--tools=schemas"])]).await;
    let client = Legacy::of(&server).await;
    let tools = listed(&client).await;
    assert!(tools["broken"].get("outputSchema").is_none());
    let tuple = &tools["tuple"]["outputSchema"];
    let validator = jsonschema::draft202012::new(tuple).unwrap();
    for fill in [0, 100_000] {
        let result = client.call("tuple", json!({ "fill": fill })).await.result();
        assert!(validator.is_valid(&result["structuredContent"]), "{result}");
        assert_eq!(result["structuredContent"].get("spilled").is_some(), fill > 0);
    }
    let long = json!({ "pair": ["a", 1, "too many"] });
    assert!(!validator.is_valid(&long) && !jsonschema::draft7::new(tuple).unwrap().is_valid(&long));
    // Small answers pass even where they violate their schema.
    let fine = client.call("fine", json!({})).await.result();
    assert_eq!(fine["structuredContent"], json!({ "a": 7 }));
}

#[tokio::test]
async fn names_are_told_apart_and_lists_are_read_to_their_end() {
    let one = in_front_of(vec![odd("odd", &[])]).await;
    let client = Legacy::of(&one).await;
    let tools = listed(&client).await;
    assert!(tools.contains_key("again") && tools.contains_key("grow"), "{:?}", tools.keys());
    assert!(tools["read_resource"]["inputSchema"]["properties"]["uri"].is_object());
    let own = client.call("odd__read_resource", json!({})).await.result();
    assert_eq!(text(&own), "the read_resource of the upstream");

    let several = [odd("a", &[]), odd("b", &["--discover=modern"]), package("memory", &[])];
    let server = in_front_of(several.into()).await;
    let client = Legacy::of(&server).await;
    let tools = listed(&client).await;
    for name in
        ["a__echo", "b__echo", "a__grow", "b__grow", "memory__create_entities", "read_resource"]
    {
        assert!(tools.contains_key(name), "{name}: {:?}", tools.keys());
    }
    assert!(tools.keys().all(|name| name.len() <= 50));
    let unknown = client.call("a__nothing", json!({})).await;
    assert_eq!(unknown.json()["error"]["code"], -32602);
}

#[tokio::test]
async fn the_order_of_tools_is_the_same_after_a_restart() {
    let order = async || {
        let several = [package("memory", &[]), odd("b", &["--discover=modern"]), odd("a", &[])];
        let server = in_front_of(several.into()).await;
        let tools = Modern::of(&server).list("tools/list", "tools").await;
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let first = order().await;
    assert!(first.iter().any(|name| name.starts_with("memory__")), "{first:?}");
    assert_eq!(first, order().await);
}

#[tokio::test]
async fn tools_can_be_withheld_and_renamed() {
    let mut settings = odd("odd", &["--discover=modern"]);
    settings.tools.deny = vec!["e*".into()];
    settings.tools.rename = [("again".to_owned(), "repeat".to_owned())].into();
    let server = in_front_of(vec![settings]).await;
    let client = Legacy::of(&server).await;
    let tools = listed(&client).await;
    assert!(tools.contains_key("repeat") && tools.contains_key("slow"), "{:?}", tools.keys());
    assert!(!["echo", "env", "again"].iter().any(|name| tools.contains_key(*name)));
    assert_eq!(text(&client.call("repeat", json!({})).await.result()), "survived");
    assert_eq!(client.call("echo", json!({})).await.json()["error"]["code"], -32602);
    // Pages of the upstream call its tools by its own names.
    assert_eq!(text(&client.call("again", json!({})).await.result()), "survived");
}

#[tokio::test]
async fn a_changed_list_is_announced_and_offered() {
    let server = in_front_of(vec![odd("odd", &[])]).await;
    let client = Legacy::of(&server).await;
    assert!(!listed(&client).await.contains_key("grown"));
    let mut events = client.listen().await;
    primed(&mut events).await;
    client.call("grow", json!({})).await.result();
    assert_eq!(events.message().await["method"], "notifications/tools/list_changed");
    assert!(listed(&client).await.contains_key("grown"));
    assert_eq!(text(&client.call("grown", json!({})).await.result()), "new");
}
