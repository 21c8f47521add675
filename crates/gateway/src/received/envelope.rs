//! Reads one message of an upstream, or a batch of them.

use std::borrow::Cow;

use bytes::Bytes;
use larder_protocol::{ErrorResponse, RequestId, consecutive, quote::parse_error};
use serde::{Deserialize, Deserializer};
use serde_json::{Value, value::RawValue};

use super::{
    batch::{Batch, MAX_BATCH},
    error,
    notification::Notification,
    problem::{Problem, shown_bytes},
    question::Question,
    repair::{Repaired, repair},
    result::RawResult,
};

/// A message of an upstream.
pub(crate) enum Received {
    /// The answer to a request.
    Answer(AnswerTo, Outcome),
    /// A request that is passed on to the client of a call.
    Question(Question),
    /// Another request.
    Request {
        id: RequestId,
        method: String,
    },
    Notification(Notification),
    /// Several messages in one.
    Batch(Vec<Bytes>),
    /// More messages in one than may be.
    LongBatch,
    /// No message. The id is that of an answer, if it looks like one.
    Nothing(Option<i64>, Problem),
}

/// Which request a message answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AnswerTo {
    Request(i64),
    /// The upstream does not say, as after a request that it could not read.
    Unnamed,
    /// An id that Larder has not chosen.
    Foreign,
}

/// The response to a request.
#[derive(Debug)]
pub(crate) enum Outcome {
    Result(RawResult),
    Error(ErrorResponse),
    Invalid(Problem),
}

/// The members of a message.
#[derive(Deserialize)]
struct Wire<'a> {
    #[serde(default, borrow, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(default, borrow)]
    method: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    params: Option<&'a RawValue>,
    #[serde(default, borrow, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(default, borrow, deserialize_with = "present")]
    error: Option<&'a RawValue>,
}

/// Distinguishes an explicit `null` from an absent member.
fn present<'de, D: Deserializer<'de>>(d: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(d).map(Some)
}

/// A message that is no JSON.
struct Torn {
    answers: Option<AnswerTo>,
    problem: String,
}

/// Reads a message. What is not quite JSON is repaired where its meaning is clear. `answers` is the
/// request that a message answers by the looks of its ends.
pub(crate) fn read(message: &Bytes, answers: impl FnOnce(&[u8]) -> Option<i64>) -> Received {
    if let Ok(received) = read_json(message, Repaired::default()) {
        return received;
    }

    let (json, repaired) = repair(message);
    let torn = match read_json(&Bytes::from(json), repaired) {
        Ok(received) => return received,
        Err(torn) => torn,
    };

    let problem = format!("{}, in {}", torn.problem, shown_bytes(message));
    let problem = Problem::new(problem);
    match torn.answers {
        Some(to) => Received::Answer(to, Outcome::Invalid(problem)),
        None => Received::Nothing(answers(message), problem),
    }
}

fn read_json(message: &Bytes, repaired: Repaired) -> Result<Received, Torn> {
    let torn = |error: &serde_json::Error| Torn { answers: None, problem: what_is_wrong(error) };
    let text = std::str::from_utf8(message)
        .map_err(|_| Torn { answers: None, problem: "it is not UTF-8".to_owned() })?;

    if text.trim_start().starts_with('[') {
        let Batch(batch) = serde_json::from_str(text).map_err(|error| torn(&error))?;
        return Ok(batch.map_or(Received::LongBatch, |batch| {
            let messages = batch.iter().map(|one| message.slice_ref(one.get().as_bytes()));
            Received::Batch(messages.collect())
        }));
    }

    let wire: Wire<'_> = match serde_json::from_str(text) {
        Ok(wire) => wire,
        Err(error) => return several(message, text).ok_or_else(|| torn(&error)),
    };
    let Some(method) = wire.method else { return answer(&wire, text, repaired) };

    let params = match wire.params {
        Some(params) => serde_json::from_str(params.get()).map_err(|error| torn(&error))?,
        None => Value::Null,
    };
    let id = match wire.id {
        None => return Ok(Received::Notification(Notification::read(&method, params))),
        Some(id) => request_id(id),
    };

    Ok(match id {
        Some(id) => match Question::read(&id, &method, params) {
            Some(question) => Received::Question(question),
            None => Received::Request { id, method: method.into_owned() },
        },
        None => {
            let problem = format!(
                "the id of a request must be a text or an integer, in {}",
                shown_bytes(message)
            );
            Received::Nothing(None, Problem::new(problem))
        }
    })
}

/// Several messages that follow each other, as when a line break between them is lost. `None` for
/// anything else.
fn several(message: &Bytes, text: &str) -> Option<Received> {
    let values = consecutive(text, MAX_BATCH)?;
    if !values.iter().all(|value| value.starts_with('{')) {
        return None;
    }
    if values.len() > MAX_BATCH {
        return Some(Received::LongBatch);
    }

    let messages = values.iter().map(|one| message.slice_ref(one.as_bytes()));
    Some(Received::Batch(messages.collect()))
}

/// An answer: an `error` that is null beside a result says nothing, nor does a result that is null
/// beside an error.
fn answer(wire: &Wire<'_>, text: &str, repaired: Repaired) -> Result<Received, Torn> {
    let to = answers(wire.id);
    let torn =
        |error: &serde_json::Error| Torn { answers: Some(to), problem: what_is_wrong(error) };
    let says = |member: Option<&RawValue>| member.as_ref().is_some_and(|json| json.get() != "null");
    let invalid = |problem: &str| {
        let problem = format!("{problem}, in {}", shown_bytes(text.as_bytes()));
        Outcome::Invalid(Problem::new(problem))
    };

    let outcome = match (wire.result, wire.error) {
        (None, None) if to == AnswerTo::Unnamed => {
            let problem = format!("no message of JSON-RPC: {}", shown_bytes(text.as_bytes()));
            return Ok(Received::Nothing(None, Problem::new(problem)));
        }
        (None, None) => invalid("it has neither a result nor an error"),
        (result, error) if says(result) && says(error) => {
            invalid("it has both a result and an error")
        }
        (_, Some(error)) if says(Some(error)) => {
            let error = serde_json::from_str(error.get()).map_err(|error| torn(&error))?;
            Outcome::Error(error::read(error))
        }
        (result, _) => {
            let result = result.map_or("null", RawValue::get);
            let result = RawResult::of_json(result, repaired).map_err(|error| torn(&error))?;
            Outcome::Result(result)
        }
    };

    Ok(Received::Answer(to, outcome))
}

/// The request that an id names. Some write the number as a text or as a fraction.
fn answers(id: Option<&RawValue>) -> AnswerTo {
    let id = id.map_or("null", RawValue::get);
    let text = serde_json::from_str::<String>(id);
    let number = text.as_deref().unwrap_or(id).trim();
    let number = number.strip_suffix(".0").unwrap_or(number);

    match number.parse() {
        Ok(number) => AnswerTo::Request(number),
        Err(_) if id == "null" => AnswerTo::Unnamed,
        Err(_) => AnswerTo::Foreign,
    }
}

fn request_id(id: &RawValue) -> Option<RequestId> {
    match serde_json::from_str(id.get()).ok()? {
        Value::String(text) => Some(RequestId::String(text.into())),
        Value::Number(number) => number.as_i64().map(RequestId::Number),
        _ => None,
    }
}

/// The error of the parser without its position, which would count from the start of a part.
fn what_is_wrong(error: &serde_json::Error) -> String {
    let text = error.to_string();
    parse_error(text.rfind(" at line ").map_or(&*text, |position| &text[..position]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(text: &str) -> Received {
        read(&Bytes::from(text.to_owned()), |_| Some(9))
    }

    #[test]
    fn an_answer_is_found_by_an_id_of_any_form() {
        for (id, to) in [
            ("7", AnswerTo::Request(7)),
            (r#""7""#, AnswerTo::Request(7)),
            ("7.0", AnswerTo::Request(7)),
            ("null", AnswerTo::Unnamed),
            (r#""a""#, AnswerTo::Foreign),
            ("[7]", AnswerTo::Foreign),
        ] {
            let received = read_text(&format!(r#"{{"id":{id},"result":{{}}}}"#));
            let Received::Answer(found, Outcome::Result(_)) = received else { panic!("{id}") };
            assert_eq!(found, to, "{id}");
        }
    }

    #[test]
    fn what_answers_nothing_clear_is_invalid() {
        for text in [
            r#"{"id":7}"#,
            r#"{"id":7,"result":{},"error":{"message":"m"}}"#,
            r#"{"id":7,"result":{"a":"\x"}}"#,
            &format!(r#"{{"id":7,"result":{}{}}}"#, "[".repeat(500), "]".repeat(500)),
        ] {
            let received = read_text(text);
            let is_invalid = matches!(
                received,
                Received::Answer(AnswerTo::Request(7), Outcome::Invalid(_))
                    | Received::Nothing(Some(9), _)
            );
            assert!(is_invalid, "{text}");
        }

        for text in ["5", "", "{}", "[", "listening on 3000", r#"{"id":{},"method":"m"}"#] {
            assert!(matches!(read_text(text), Received::Nothing(..)), "{text}");
        }
    }

    #[test]
    fn a_batch_is_its_messages() {
        let Received::Batch(messages) = read_text(r#" [{"id":1}, 5 ,[]]"#) else { panic!() };
        assert_eq!(messages, [&br#"{"id":1}"#[..], b"5", b"[]"]);
    }

    #[test]
    fn messages_that_follow_each_other_are_a_batch() {
        for text in [r#"{"id":1}{"id":2}"#, r#"{"id":1} {"id":2} "#, "{\"id\":1}\n{\"id\":2}\r"] {
            let Received::Batch(messages) = read_text(text) else { panic!("{text}") };
            assert_eq!(messages, [&br#"{"id":1}"#[..], br#"{"id":2}"#]);
        }
        for text in [r#"{"id":1}{"id""#, r#"{"id":1} 5"#, r#"{"id":1}]"#, r#"{"id":1}["a"]"#] {
            assert!(!matches!(read_text(text), Received::Batch(_)), "{text}");
        }
        let many = r#"{"id":1}"#.repeat(MAX_BATCH + 1);
        assert!(matches!(read_text(&many), Received::LongBatch));
    }

    #[test]
    fn a_batch_has_only_so_many_messages() {
        let batch = |messages: usize| format!("[{}5]", "5,".repeat(messages - 1));
        let Received::Batch(messages) = read_text(&batch(MAX_BATCH)) else { panic!() };
        assert_eq!(messages.len(), MAX_BATCH);

        assert!(matches!(read_text(&batch(MAX_BATCH + 1)), Received::LongBatch));
        let torn = read_text(&format!("[{}", "5,".repeat(MAX_BATCH + 1)));
        assert!(matches!(torn, Received::Nothing(..)));
    }
}
