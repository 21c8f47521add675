//! The answer of `resources/read`.

use serde_json::{Map, Value};

use super::{
    definition::DEFINITION_BYTES,
    members::{carry_others, drop_long},
    object::Object,
    problem::{Problem, shown},
    result::{Answer, RawResult},
    shapes,
};

/// The member of metadata that says which contents are left out.
const LEFT_OUT: &str = "larder/left_out";
/// The most contents of which it says so.
const MAX_TOLD: usize = 20;

/// The contents of a resource, at least one.
pub(crate) struct ReadAnswer {
    pub(crate) first: ReceivedContent,
    pub(crate) further: Vec<ReceivedContent>,
    /// The metadata of the result.
    pub(crate) meta: Option<Map<String, Value>>,
}

/// One content of a resource.
pub(crate) struct ReceivedContent {
    pub(crate) uri: Option<String>,
    pub(crate) mime_type: Option<String>,
    pub(crate) meta: Option<Map<String, Value>>,
    pub(crate) body: ReceivedBody,
}

pub(crate) enum ReceivedBody {
    Text(String),
    /// Base64, which is not checked yet.
    Blob(String),
}

impl Answer for ReadAnswer {
    fn read(result: RawResult) -> Result<Self, Problem> {
        let what = shown(&result.value);
        let mut result = result.object()?;
        let contents = match result.take("contents") {
            None => Vec::new(),
            Some(Value::Array(contents)) => contents,
            Some(one @ Value::Object(_)) => vec![one],
            Some(other) => return Err(Problem::of("contents must be a list", &other)),
        };

        let mut left_out = Vec::new();
        let mut read = Vec::with_capacity(contents.len());
        for (index, value) in contents.into_iter().enumerate() {
            match content(value) {
                Ok(content) => read.push(content),
                Err(problem) => left_out.push((index + 1, problem)),
            }
        }

        let mut read = read.into_iter();
        let Some(mut first) = read.next() else {
            let none = || Problem::new(format!("a resource must have a content, in {what}"));
            return Err(left_out.into_iter().next().map_or_else(none, |(_, problem)| problem));
        };
        first.tell_left_out(&left_out);

        drop_long(&mut result);
        carry_others(&mut result, &shapes::READ_RESULT, "resources/read");
        Ok(Self { first, further: read.collect(), meta: result.take_members("_meta") })
    }
}

impl ReceivedContent {
    /// Adds to the metadata which contents of the resource are left out, by their numbers from 1.
    fn tell_left_out(&mut self, left_out: &[(usize, Problem)]) {
        if left_out.is_empty() {
            return;
        }
        let told = left_out.iter().take(MAX_TOLD);
        let told = told.map(|(number, problem)| format!("content {number}: {problem}").into());
        let told: Vec<Value> = told.collect();
        self.meta.get_or_insert_default().insert(LEFT_OUT.to_owned(), told.into());
    }
}

fn content(value: Value) -> Result<ReceivedContent, Problem> {
    let what = shown(&value);
    let mut content = Object::of(value, "a content of a resource")?;
    let body = match (content.take("text"), content.take("blob")) {
        (Some(Value::String(text)), _) => ReceivedBody::Text(text),
        (_, Some(Value::String(blob))) => ReceivedBody::Blob(blob),
        _ => return Err(Problem::new(format!("a content must have a text or a blob, in {what}"))),
    };

    let others = content.take_others(&shapes::CONTENTS);
    // Without one of its own, the content has the URI that was asked for.
    drop_long(&mut content);
    if others.exceed(DEFINITION_BYTES) {
        tracing::debug!("the other members of an upstream's content are too long");
    } else {
        content.carry(others);
    }

    Ok(ReceivedContent {
        uri: content.take_text("uri"),
        mime_type: content.take_text("mimeType"),
        meta: content.take_members("_meta"),
        body,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{super::repair::Repaired, *};

    fn read(contents: &Value) -> Result<ReadAnswer, Problem> {
        let result = json!({ "contents": contents }).to_string();
        ReadAnswer::read(RawResult::of_json(&result, Repaired::default()).expect("it is JSON"))
    }

    #[test]
    fn a_bad_content_costs_no_other_one_and_is_told() {
        let good = json!({ "uri": "a:b", "text": "t", "_meta": { "a": 1 } });
        let answer = read(&json!(["x", good, null, { "uri": "a:c" }, good]));
        let ReadAnswer { first, further, .. } = answer.expect("two are clear");

        assert!(matches!(first.body, ReceivedBody::Text(text) if text == "t"));
        assert_eq!(further.len(), 1);
        let meta = first.meta.expect("it has metadata");
        let told = meta[LEFT_OUT].as_array().expect("a list");
        let begins = |index: usize, with: &str| {
            told[index].as_str().is_some_and(|text| text.starts_with(with))
        };
        assert!(begins(0, "content 1: ") && begins(1, "content 3: ") && begins(2, "content 4: "));
        assert_eq!((meta["a"].clone(), told.len()), (json!(1), 3));

        let one = read(&good).expect("it is clear");
        assert!(one.further.is_empty() && one.first.meta == good["_meta"].as_object().cloned());
        for none in [json!([]), json!(null), json!([null]), json!("x"), json!({})] {
            assert!(read(&none).is_err(), "{none}");
        }
    }
}
