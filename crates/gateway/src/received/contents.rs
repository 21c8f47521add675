//! The answer of `resources/read`.

use serde_json::{Map, Value};

use super::{
    members::drop_long,
    object::Object,
    problem::{Problem, shown},
    result::{Answer, RawResult},
};

/// The contents of a resource, at least one.
pub(crate) struct ReadAnswer {
    pub(crate) first: ReceivedContent,
    pub(crate) further: Vec<ReceivedContent>,
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
        let contents = result.object()?.take_list("contents")?;
        let mut contents = contents.into_iter().map(content).collect::<Result<Vec<_>, _>>()?;
        if contents.is_empty() {
            return Err(Problem::new(format!("a resource must have a content, in {what}")));
        }

        let further = contents.split_off(1);
        let first = contents.into_iter().next();
        let first = first.ok_or_else(|| Problem::new("a resource must have a content"))?;
        Ok(Self { first, further })
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

    // Without one of its own, the content has the URI that was asked for.
    drop_long(&mut content);
    Ok(ReceivedContent {
        uri: content.take_text("uri"),
        mime_type: content.take_text("mimeType"),
        meta: content.take_members("_meta"),
        body,
    })
}
