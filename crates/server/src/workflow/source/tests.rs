//! Sources have the value that they name.

#![allow(clippy::unwrap_used)]

use serde_json::json;

use super::*;

fn bindings() -> Bindings {
    let arguments = json!({ "topic": " Foo ", "evil": "'; DROP {topic}" });
    let Value::Object(arguments) = arguments else { unreachable!() };
    let user = json!({ "id": 123, "api": { "endpoint_name": "v1" }, "items": [{ "id": "a" }], "none": null });
    Bindings { arguments, steps: HashMap::from([("user".into(), user.into())]), item: None }
}

#[test]
fn each_origin_gives_its_value_with_its_type() {
    let b = bindings();
    assert_eq!(prompt_arg("topic").value(&b).unwrap(), " Foo ");
    assert_eq!(field("user", "id").value(&b).unwrap(), 123);
    assert_eq!(field("user", "id").text(&b).unwrap(), "123");
    assert_eq!(field("user", "api.endpoint_name").text(&b).unwrap(), "v1");
    assert_eq!(field("user", "items.0.id").text(&b).unwrap(), "a");
    assert_eq!(from_step("user").value(&b).unwrap()["id"], 123);
    assert_eq!(constant("{topic}").text(&b).unwrap(), "{topic}");
    assert_eq!(prompt_arg("topic").trim().to_lowercase().text(&b).unwrap(), "foo");
    assert_eq!(prompt_arg("none").or(5).text(&b).unwrap(), "5");
}

#[test]
fn a_missing_value_says_where_the_path_ended() {
    let b = bindings();
    let problem = |source: DataSource| source.text(&b).unwrap_err().to_string();

    assert!(problem(field("user", "items.3.id")).contains("out of range in a list of 1"));
    assert!(problem(field("user", "items.x")).contains("not an index"));
    assert!(problem(field("user", "api.nope")).contains("endpoint_name"));
    assert!(problem(field("user", "none")).contains("null is not text"));
    assert!(problem(from_step("user")).contains("an object is not text"));
    assert!(problem(prompt_arg("nope")).contains("was not given"));
}

#[test]
fn variables_in_text_are_replaced_once() {
    let b = bindings();
    let text = template("{a}, {b} and {c d}", [("a", prompt_arg("evil")), ("b", constant("{a}"))]);

    assert_eq!(text.text(&b).unwrap(), "'; DROP {topic}, {a} and {c d}");
}

#[test]
fn a_source_is_written_and_read_again() {
    for source in [
        prompt_arg("a").trim().or("x"),
        field("s", "a.b").to_uppercase(),
        from_step("s"),
        item(),
        item_field("value.id"),
        constant(json!({ "a": [1] })),
        constant(Value::Null),
        prompt_arg("a").or(Value::Null),
        template("{x}", [("x", field("s", "y"))]),
    ] {
        let text = serde_json::to_string(&source).unwrap();
        assert_eq!(serde_json::from_str::<DataSource>(&text).unwrap(), source, "{text}");
    }

    for wrong in ["{}", r#"{"field":"a"}"#, r#"{"step":"a","constant":1}"#, r#"{"stepp":"a"}"#] {
        assert!(serde_json::from_str::<DataSource>(wrong).is_err(), "{wrong}");
    }
}
