//! The query of an upload: where the content is stored, and its metadata.

use std::{borrow::Cow, time::Duration};

use http::StatusCode;
use larder_protocol::quote::quoted;
use larder_store::store::{Details, ResourceUri, StoreError};
use percent_encoding::percent_decode_str;

use crate::http::problem::Problem;

/// The parameters of an upload.
#[derive(Debug, Default)]
pub(super) struct Parameters {
    /// The URI to store the content under. The server makes one by default.
    pub(super) uri: Option<ResourceUri>,
    pub(super) details: Details,
    /// Whether the content is bytes even if it is text.
    pub(super) is_binary: bool,
}

impl Parameters {
    /// A `+` is not a space here: URIs have none.
    pub(super) fn of(query: &str) -> Result<Self, Problem> {
        let mut this = Self::default();
        for (name, value) in Self::pairs(query) {
            this.set(name, &value?)?;
        }
        Ok(this)
    }

    /// The names and values of a query.
    pub(super) fn pairs(
        query: &str,
    ) -> impl Iterator<Item = (&str, Result<Cow<'_, str>, Problem>)> {
        let pairs = query.split('&').filter(|pair| !pair.is_empty());
        pairs.map(|pair| pair.split_once('=').unwrap_or((pair, ""))).map(|(name, value)| {
            let value = percent_decode_str(value).decode_utf8();
            (name, value.map_err(|_| problem(format!("{} is not UTF-8.", quoted(name)))))
        })
    }

    pub(super) fn set(&mut self, name: &str, value: &str) -> Result<(), Problem> {
        let details = &mut self.details;
        let is_first = match name {
            "uri" => {
                let uri = ResourceUri::parse(value).map_err(StoreError::from)?;
                self.uri.replace(uri).is_none()
            }
            "name" => details.name.replace(value.to_owned()).is_none(),
            "title" => details.title.replace(value.to_owned()).is_none(),
            "description" => details.description.replace(value.to_owned()).is_none(),
            "kind" if value == "binary" => !std::mem::replace(&mut self.is_binary, true),
            "kind" => {
                return Err(problem(format!("kind can only be binary, not {}.", quoted(value))));
            }
            "ttl" => details.ttl.replace(ttl(value)?).is_none(),
            other => {
                return Err(problem(format!(
                    "Unknown parameter {}. Use uri, name, title, description, ttl and kind, and percent-encode their values.",
                    quoted(other)
                )));
            }
        };

        if is_first {
            Ok(())
        } else {
            Err(problem(format!("The parameter {name} is given twice.")))
        }
    }
}

/// A time to live in seconds. Stores count in milliseconds: less than one would be zero.
fn ttl(text: &str) -> Result<Duration, Problem> {
    let seconds = text.parse::<f64>().ok().filter(|seconds| *seconds > 0.0);
    let ttl = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let ttl = ttl.map(|ttl| ttl.max(Duration::from_millis(1)));
    ttl.ok_or_else(|| problem(format!("ttl must be a number of seconds, not {}.", quoted(text))))
}

fn problem(detail: String) -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, detail)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn the_query_names_the_resource() {
        let query = "uri=x%3A%2F%2Fa%3Fb%26c&name=Gr%C3%B6%C3%9Fe+1&ttl=1.5&";
        let Parameters { uri, details, .. } = Parameters::of(query).unwrap();

        assert_eq!(uri.unwrap().as_str(), "x://a?b&c");
        assert_eq!(details.name.as_deref(), Some("Größe+1"));
        assert_eq!(details.ttl, Some(Duration::from_millis(1500)));

        assert!(Parameters::of("").unwrap().uri.is_none());
    }

    #[test]
    fn what_is_wrong_with_a_query_is_named() {
        for (query, expected) in [
            ("uri=none", "has no scheme"),
            ("uri=a:b&uri=a:c", "uri is given twice"),
            ("urn=a:b", "Unknown parameter \"urn\""),
            ("ttl=-1", "not \"-1\""),
            ("kind=text", "not \"text\""),
            ("ttl=NaN", "not \"NaN\""),
            ("name=%ff", "is not UTF-8"),
        ] {
            let problem = Parameters::of(query).unwrap_err();
            assert_eq!(problem.status, StatusCode::BAD_REQUEST);
            assert!(problem.detail.contains(expected), "{query}: {}", problem.detail);
        }
    }
}
