//! Completions of the arguments of prompts and the variables of templates.

use std::sync::Arc;

use larder::{Builder, Prompt, Template, Tool, ToolError, Variables, tools};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    sharing::links::Callers,
    support::{Answer, Ctx, Legacy, Modern, Server, ToolControl},
};

/// Reviews code.
#[derive(Deserialize, JsonSchema)]
struct Review {
    /// The language.
    language: String,
    /// The framework.
    framework: String,
    /// How strictly; there is no completer for this argument.
    #[allow(dead_code, reason = "only listed")]
    strictness: Option<String>,
}

fn offers(builder: Builder<Arc<ToolControl>>) -> Builder<Arc<ToolControl>> {
    let review = Prompt::new(|_: Ctx, args: Review| async move {
        format!("{} {}", args.language, args.framework)
    });
    let review = review
        .complete("language", |_: Ctx, typed| async move {
            let all = (0..250).map(|n| format!("lang{n:03}"));
            all.filter(|v| v.starts_with(&typed.value)).collect()
        })
        .complete("framework", |_: Ctx, typed| async move {
            match typed.arguments.get("language").map(String::as_str) {
                Some("python") => vec!["flask".into()],
                Some(other) => vec![format!("none for {other}")],
                None => Vec::new(),
            }
        });
    let read = |_: Ctx, v: Variables| async move { v.into_values().collect::<Vec<_>>().join(" ") };
    let colours = Template::new("paint://{colour}/{shade}", "paint", read)
        .complete("colour", |_: Ctx, _| async { vec!["red".into(), "blue".into()] })
        .complete("shade", |_: Ctx, _| async { panics_with_a_secret() });
    builder
        .prompt(review)
        .template(colours)
        .template(Template::new("logs://{service}/{date}", "logs", read))
        .with(tools::writing())
}

fn panics_with_a_secret() -> Vec<String> {
    panic!("a secret in a panic")
}

async fn complete(client: &Modern, reference: Value, argument: (&str, &str)) -> Answer {
    let argument = json!({ "name": argument.0, "value": argument.1 });
    let params = json!({ "ref": reference, "argument": argument });
    client.send("completion/complete", params).await
}

fn prompt(name: &str) -> Value {
    json!({ "type": "ref/prompt", "name": name })
}

fn template(uri: &str) -> Value {
    json!({ "type": "ref/resource", "uri": uri })
}

fn values(answer: &Answer) -> Vec<String> {
    let result = answer.result();
    assert_eq!(result["resultType"], "complete");
    serde_json::from_value(result["completion"]["values"].clone()).unwrap()
}

#[tokio::test]
async fn arguments_of_prompts_are_completed_with_at_most_a_hundred_values() {
    let server = Server::offering(offers).await;
    let client = Modern::of(&server);
    let all = complete(&client, prompt("review"), ("language", "lang")).await;
    assert_eq!(values(&all).len(), 100);
    let completion = &all.result()["completion"];
    assert_eq!((&completion["total"], &completion["hasMore"]), (&json!(250), &json!(true)));
    let few = complete(&client, prompt("review"), ("language", "lang24")).await;
    assert_eq!(values(&few).len(), 10);
    let completion = &few.result()["completion"];
    assert_eq!((&completion["total"], &completion["hasMore"]), (&json!(10), &json!(false)));
    let exactly = complete(&client, prompt("review"), ("language", "lang1")).await;
    let completion = &exactly.result()["completion"];
    assert_eq!((&completion["total"], &completion["hasMore"]), (&json!(100), &json!(false)));
}

#[tokio::test]
async fn the_other_arguments_reach_the_completer() {
    let server = Server::offering(offers).await;
    let client = Modern::of(&server);
    let reference = prompt("review");
    for (context, expected) in [
        (json!({ "arguments": { "language": "python" } }), vec!["flask"]),
        (json!({ "arguments": { "language": "rust" } }), vec!["none for rust"]),
        (json!({}), vec![]),
        (json!({ "arguments": {} }), vec![]),
    ] {
        let argument = json!({ "name": "framework", "value": "" });
        let params = json!({ "ref": reference, "argument": argument, "context": context });
        let answer = client.send("completion/complete", params).await;
        assert_eq!(values(&answer), expected);
    }
}

#[tokio::test]
async fn variables_of_templates_are_completed() {
    let server = Server::offering(offers).await;
    let answer =
        complete(&Modern::of(&server), template("paint://{colour}/{shade}"), ("colour", "")).await;
    assert_eq!(values(&answer), ["red", "blue"]);
}

#[tokio::test]
async fn without_a_completer_the_uris_of_the_callers_resources_are_suggested() {
    let server = Server::offering(offers).await;
    let client = Modern::of(&server);
    let logs = template("logs://{service}/{date}");
    assert_eq!(values(&complete(&client, logs.clone(), ("service", "")).await).len(), 0);
    for uri in [
        "logs://web/monday",
        "logs://web/tuesday",
        "logs://db/monday",
        "logs://db/friday",
        "logs://caf%C3%A9/monday",
        "logs://web/too/deep",
        "other://web/sunday",
    ] {
        client.create(json!({ "uri": uri, "text": "" })).await;
    }
    let mut services = values(&complete(&client, logs.clone(), ("service", "")).await);
    services.sort();
    assert_eq!(services, ["café", "db", "web"]);
    let mut dates = values(&complete(&client, logs.clone(), ("date", "")).await);
    dates.sort();
    assert_eq!(dates, ["friday", "monday", "tuesday"]);
    assert_eq!(values(&complete(&client, logs.clone(), ("date", "mo")).await), ["monday"]);
    assert_eq!(values(&complete(&client, logs, ("date", "x")).await).len(), 0);
}

#[tokio::test]
async fn the_uris_of_another_caller_are_not_suggested() {
    let Callers { server: _server, alice, bob, .. } = Callers::new().await;
    alice.create(json!({ "uri": "logs://web/monday", "text": "" })).await;
    let logs = template("logs://{service}/{date}");
    assert_eq!(values(&complete(&alice, logs.clone(), ("service", "")).await), ["web"]);
    assert!(values(&complete(&bob, logs, ("service", "")).await).is_empty());
}

#[tokio::test]
async fn an_argument_without_a_completer_has_no_suggestions() {
    let server = Server::offering(offers).await;
    let answer = complete(&Modern::of(&server), prompt("review"), ("strictness", "v")).await;
    assert_eq!(
        answer.result()["completion"],
        json!({ "values": [], "total": 0, "hasMore": false })
    );
}

#[tokio::test]
async fn unknown_references_and_arguments_are_refused() {
    let server = Server::offering(offers).await;
    let client = Modern::of(&server);
    for (reference, argument, named) in [
        (prompt("nope"), "language", "nope"),
        (prompt("review"), "nope", "nope"),
        (template("logs://{service}"), "service", "logs://{service}"),
        (template("logs://{service}/{date}"), "nope", "nope"),
        (json!({ "type": "ref/tool", "name": "review" }), "language", ""),
        (json!({ "type": "ref/prompt" }), "language", "name"),
        (json!("review"), "language", ""),
    ] {
        let answer = complete(&client, reference.clone(), (argument, "")).await;
        assert_eq!(answer.refusal(), (200, -32602, Some(json!(1))), "{reference}");
        let message = answer.error()["message"].as_str().unwrap().to_owned();
        assert!(message.contains(named), "{message}");
    }
    for params in [
        json!({}),
        json!({ "ref": prompt("review") }),
        json!({ "ref": prompt("review"), "argument": { "name": "language" } }),
        json!({ "ref": prompt("review"), "argument": { "name": "language", "value": 7 } }),
    ] {
        let answer = client.send("completion/complete", params.clone()).await;
        assert_eq!(answer.refusal(), (200, -32602, Some(json!(1))), "{params}");
    }
}

#[tokio::test]
async fn a_panic_is_the_failure_of_its_request_only() {
    let server = Server::offering(offers).await;
    let client = Modern::of(&server);
    let paint = template("paint://{colour}/{shade}");
    let answer = complete(&client, paint.clone(), ("shade", "")).await;
    assert_eq!(answer.refusal(), (200, -32603, Some(json!(1))));
    assert!(!answer.error().to_string().contains("secret"));
    assert_eq!(values(&complete(&client, paint, ("colour", "")).await).len(), 2);
}

#[tokio::test]
async fn the_capability_is_declared_if_something_can_be_completed() {
    let with = Server::offering(offers).await;
    let without = Server::offering(|builder| builder.with(tools::writing())).await;
    for (server, declared) in [(with, json!({})), (without, Value::Null)] {
        let discovered = Modern::of(&server).send("server/discover", json!({})).await.result();
        assert_eq!(discovered["capabilities"]["completions"], declared);
        let session = Legacy::of(&server).await;
        assert_eq!(session.initialized["capabilities"]["completions"], declared);
        let answer = complete(&Modern::of(&server), prompt("review"), ("language", "")).await;
        let refused = answer.status == 404 && answer.error()["code"] == -32601;
        assert_eq!(refused, declared.is_null(), "{answer:?}");
    }
}

#[tokio::test]
async fn the_same_in_a_session() {
    let server = Server::offering(offers).await;
    let argument = json!({ "name": "language", "value": "lang249" });
    let params = json!({ "ref": prompt("review"), "argument": argument });
    let result = Legacy::of(&server).await.send("completion/complete", params).await.result();
    let completion = json!({ "values": ["lang249"], "total": 1, "hasMore": false });
    assert_eq!(result, json!({ "completion": completion }));
}

/// Stores resources of two services.
#[derive(Deserialize, JsonSchema)]
struct Fill {
    /// How many of the first.
    count: usize,
}

#[tokio::test]
async fn values_are_found_beyond_any_number_of_resources() {
    let server = Server::offering(|builder| {
        let fill = Tool::new(|ctx: Ctx, args: Fill| async move {
            for n in 0..args.count {
                ctx.create_resource(format!("logs://many/{n:05}"), "").await?;
            }
            ctx.create_resource("logs://zeta/2026", "").await?;
            Ok::<_, ToolError>("done")
        });
        offers(builder.tool(fill))
    })
    .await;
    let client = Modern::of(&server);
    client.call("fill", json!({ "count": 2_500 })).await.text();
    let template = json!({ "type": "ref/resource", "uri": "logs://{service}/{date}" });
    let completed = complete(&client, template.clone(), ("service", "")).await.result();
    let completion = &completed["completion"];
    assert_eq!(completion["values"], json!(["many", "zeta"]));
    assert_eq!((&completion["total"], &completion["hasMore"]), (&json!(2), &json!(false)));
    let completed = complete(&client, template.clone(), ("service", "z")).await.result();
    assert_eq!(completed["completion"]["values"], json!(["zeta"]));
    // With the service known, only its resources are looked at.
    let params = json!({
        "ref": template,
        "argument": { "name": "date", "value": "" },
        "context": { "arguments": { "service": "zeta" } },
    });
    let completed = client.send("completion/complete", params.clone()).await.result();
    assert_eq!(completed["completion"]["values"], json!(["2026"]));
    let mut many = params;
    many["context"]["arguments"]["service"] = json!("many");
    let completed = client.send("completion/complete", many).await.result();
    assert_eq!(completed["completion"]["total"], 2_500);
    assert_eq!(completed["completion"]["values"].as_array().unwrap().len(), 100);
}
