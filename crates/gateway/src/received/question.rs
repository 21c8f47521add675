//! Requests of an upstream to the client of a call.

use std::collections::BTreeMap;

use larder_protocol::RequestId;
use serde::Serialize;
use serde_json::{Map, Value};

use super::{object::Object, problem::Problem};
use crate::budget::Charge;

/// The requests that are passed on.
const METHODS: [&str; 3] = ["elicitation/create", "sampling/createMessage", "roots/list"];

/// A request of an upstream that is passed on to the client of a call.
pub(crate) struct Question {
    pub(crate) id: RequestId,
    pub(crate) request: InputRequest,
    /// The memory that it takes until it is answered.
    pub(crate) charge: Charge,
}

/// The question for the client.
#[derive(Debug, Serialize)]
pub(crate) struct InputRequest {
    pub(crate) method: String,
    /// An object.
    pub(crate) params: Value,
}

impl Question {
    /// `None` for a request that is not passed on.
    pub(super) fn read(id: &RequestId, method: &str, params: Value) -> Option<Self> {
        let is_known = METHODS.contains(&method);
        is_known.then(|| {
            let request = InputRequest { method: method.to_owned(), params: object(params) };
            Self { id: id.clone(), request, charge: Charge::default() }
        })
    }

    /// The question with the memory that it takes.
    pub(crate) fn with_charge(self, charge: Charge) -> Self {
        Self { charge, ..self }
    }
}

/// The ID of the visit that a question asks for, if it asks to visit a URL.
pub(crate) fn visit_of_question(params: &Value) -> Option<&str> {
    let is_visit = params.get("mode").is_some_and(|mode| mode == "url");
    params.get("elicitationId").and_then(Value::as_str).filter(|_| is_visit)
}

/// Params, which are an empty object unless they are one.
fn object(params: Value) -> Value {
    if params.is_object() { params } else { Value::Object(Map::new()) }
}

/// The questions of a round, by key.
pub(super) fn read_all(requests: Option<Value>) -> Result<BTreeMap<String, InputRequest>, Problem> {
    let members = match requests {
        None => return Ok(BTreeMap::new()),
        Some(Value::Object(members)) => members,
        Some(other) => return Err(Problem::of("inputRequests must be an object", &other)),
    };

    let requests = members.into_iter().map(|(key, value)| {
        let mut request = Object::of(value, "a request for input")?;
        let Some(method) = request.take_text("method") else {
            return Err(Problem::of(
                "a request for input must have a method",
                &request.into_value(),
            ));
        };
        let params = object(request.take("params").unwrap_or_default());
        Ok((key, InputRequest { method, params }))
    });
    requests.collect()
}
