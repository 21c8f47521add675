//! The client's answers to requests of the server.

use serde_json::{Map, Value, json};

use super::reply::TestError;

type Fill = Box<dyn Fn(&Value) -> Option<Value> + Send + Sync>;
type Sample = Box<dyn Fn(&Value) -> String + Send + Sync>;

/// The answers to requests of the server.
#[derive(Default)]
pub(super) struct Answers {
    pub(super) form: Option<Fill>,
    pub(super) sampling: Option<Sample>,
    pub(super) roots: Option<Vec<String>>,
}

impl Answers {
    /// The capabilities that the client declares.
    pub(super) fn capabilities(&self) -> Value {
        let mut capabilities = Map::new();

        if self.form.is_some() {
            capabilities.insert("elicitation".into(), json!({ "form": {}, "url": {} }));
        }
        if self.sampling.is_some() {
            capabilities.insert("sampling".into(), json!({}));
        }
        if self.roots.is_some() {
            capabilities.insert("roots".into(), json!({}));
        }

        Value::Object(capabilities)
    }

    /// The answers to several requests, by key.
    pub(super) fn all(&self, requests: &Value) -> Result<Value, TestError> {
        let requests = requests.as_object().into_iter().flatten();
        let answers = requests.map(|(key, request)| {
            let method = request["method"].as_str().unwrap_or_default();
            Ok((key.clone(), self.one(method, &request["params"])?))
        });
        Ok(Value::Object(answers.collect::<Result<_, TestError>>()?))
    }

    /// The answer to a request.
    ///
    /// # Errors
    /// The client does not declare what the request needs.
    pub(super) fn one(&self, method: &str, params: &Value) -> Result<Value, TestError> {
        match (method, self) {
            ("elicitation/create", Self { form: Some(fill), .. }) => Ok(match fill(params) {
                Some(content) => json!({ "action": "accept", "content": content }),
                None => json!({ "action": "decline" }),
            }),
            ("sampling/createMessage", Self { sampling: Some(answer), .. }) => Ok(json!({
                "role": "assistant",
                "model": "test",
                "content": { "type": "text", "text": answer(params) },
            })),
            ("roots/list", Self { roots: Some(uris), .. }) => {
                let roots: Vec<_> = uris.iter().map(|uri| json!({ "uri": uri })).collect();
                Ok(json!({ "roots": roots }))
            }
            _ => Err(TestError::local(format!("the test's client has no answer to {method}"))),
        }
    }
}
