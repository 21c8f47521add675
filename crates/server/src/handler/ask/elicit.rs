//! Elicitation: forms to fill in and URLs to open.

use larder_protocol::{describe, quote::quoted, schema::Validator};
use rmcp::model::JsonObject;
use schemars::JsonSchema;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};

use super::{capability::Capability, form, request::AskError};
use crate::handler::{AskMode, Context};

/// The user's reaction to an elicitation request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Elicited<T> {
    /// The user accepted the request; for a form, with this content.
    Accepted(T),
    /// The user declined the request.
    Declined,
    /// The user dismissed the request without a decision.
    Cancelled,
}

impl<S> Context<S> {
    /// Asks the user to fill in a form. The form's fields are those of a flat
    /// struct of strings, numbers, booleans and enums without data;
    /// [`Builder::form`](crate::Builder::form) checks that when the server is built.
    ///
    /// # Errors
    /// [`AskError`]. In the modern era, a client without the capability gets a
    /// protocol error instead, and the handler ends.
    pub async fn elicit<T: DeserializeOwned + JsonSchema>(
        &self,
        key: &str,
        message: &str,
    ) -> Result<Elicited<T>, AskError> {
        let schema = form::describe::<T>().map_err(AskError::Refused)?;
        Ok(match self.elicit_form(key, message, schema).await? {
            Elicited::Accepted(content) => {
                let content = serde_json::from_value(Value::Object(content));
                Elicited::Accepted(content.map_err(|error| AskError::invalid(&describe(&error)))?)
            }
            Elicited::Declined => Elicited::Declined,
            Elicited::Cancelled => Elicited::Cancelled,
        })
    }

    /// Asks the user to fill in a form with this JSON Schema. The returned
    /// content matches it.
    ///
    /// # Errors
    /// The errors of [`Context::elicit`].
    pub async fn elicit_form(
        &self,
        key: &str,
        message: &str,
        schema: JsonObject,
    ) -> Result<Elicited<JsonObject>, AskError> {
        form::check(&schema).map_err(AskError::Refused)?;
        let validator = Validator::new(schema.clone()).map_err(AskError::Refused)?;

        let params = json!({ "message": message, "requestedSchema": schema });
        let parse = move |result| {
            parse_elicited(result, |content| {
                validator.check(&content)?;
                match content {
                    Value::Object(content) => Ok(content),
                    _ => Err("content must be an object".to_owned()),
                }
            })
        };

        self.ask(key, Capability::FormElicitation, "elicitation/create", params, parse).await
    }

    /// Asks the user to open a URL.
    ///
    /// # Errors
    /// The errors of [`Context::elicit`].
    pub async fn elicit_url(
        &self,
        key: &str,
        message: &str,
        url: &str,
    ) -> Result<Elicited<()>, AskError> {
        let mut params = json!({ "mode": "url", "message": message, "url": url });
        if matches!(self.scope().asking, AskMode::OnStream(_)) {
            params["elicitationId"] = json!(self.scope().random.id());
        }

        let parse = |result| parse_elicited(result, |_| Ok(()));
        self.ask(key, Capability::UrlElicitation, "elicitation/create", params, parse).await
    }
}

fn parse_elicited<T>(
    result: Value,
    parse_content: impl FnOnce(Value) -> Result<T, String>,
) -> Result<Elicited<T>, String> {
    #[derive(Deserialize)]
    struct ElicitResult {
        action: String,
        #[serde(default)]
        content: Value,
    }

    let ElicitResult { action, content } =
        serde_json::from_value(result).map_err(|error| describe(&error))?;

    match action.as_str() {
        "accept" => Ok(Elicited::Accepted(parse_content(content)?)),
        "decline" => Ok(Elicited::Declined),
        "cancel" => Ok(Elicited::Cancelled),
        other => {
            Err(format!("the action must be accept, decline or cancel, not {}", quoted(other)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_for_a_wrong_answer_shows_little_of_it() {
        let long = "x".repeat(10_000);
        for result in [json!({ "action": &long }), json!(long)] {
            let error = parse_elicited(result, |_| Ok(())).expect_err("it is invalid");
            assert!(error.len() < 300, "{error}");
        }
    }
}
