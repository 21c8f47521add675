//! [`Ledger`]: the calls that a run has made, and how each has ended.

use std::collections::BTreeMap;

use larder_protocol::quote::quoted;
use larder_query::ScriptOutcome;
use larder_records::words::{count, cut, number};
use serde_json::{Value, json, value::RawValue};

/// The longest arguments that the ledger keeps, in bytes.
const KEPT_ARGUMENT_BYTES: usize = 2_000;
/// The most names of calls with an unknown end that are told.
const TOLD_NAMES: usize = 5;
/// The longest error that is told.
const TOLD_ERROR_BYTES: usize = 160;

/// The calls of one run, by number.
#[derive(Debug, Default)]
pub(super) struct Ledger(BTreeMap<u64, Call>);

#[derive(Debug)]
struct Call {
    name: String,
    arguments: Option<Box<RawValue>>,
    /// `None` while it runs.
    end: Option<ScriptOutcome>,
}

impl Ledger {
    /// Notes a call that begins.
    pub(super) fn begin(&mut self, id: u64, name: &str, arguments: Option<&RawValue>) {
        let arguments = arguments.filter(|json| json.get().len() <= KEPT_ARGUMENT_BYTES);
        let arguments = arguments.map(ToOwned::to_owned);
        let call = Call { name: name.to_owned(), arguments, end: None };
        self.0.insert(id, call);
    }

    /// Notes the end of a call.
    pub(super) fn end(&mut self, id: u64, outcome: &ScriptOutcome) {
        if let Some(call) = self.0.get_mut(&id) {
            call.end = Some(outcome.clone());
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// `3 calls: 1 done, 1 failed (first: get: No such issue.), 1 unknown (create_issue)`
    pub(super) fn summary(&self) -> String {
        let calls = self.0.values();
        let failed: Vec<_> = calls.clone().filter_map(Call::error).collect();
        let unknown: Vec<_> =
            calls.filter(|call| call.end.is_none()).map(|call| &*call.name).collect();
        let done = self.0.len() - failed.len() - unknown.len();

        let mut text =
            format!("{}: {} done", count(self.0.len() as u64, "call"), number(done as u64));
        if let Some((name, error)) = failed.first() {
            let error = cut(error.trim(), TOLD_ERROR_BYTES).replace('\n', " ");
            text += &format!(", {} failed (first: {name}: {error})", number(failed.len() as u64));
        }
        if !unknown.is_empty() {
            let names = unknown.iter().take(TOLD_NAMES).copied().collect::<Vec<_>>().join(", ");
            text += &format!(
                ", {} unknown: they may have been executed ({names})",
                number(unknown.len() as u64)
            );
        }
        text
    }

    /// A line of JSON for each call.
    pub(super) fn lines(&self) -> String {
        let line = |(id, call): (&u64, &Call)| {
            let (state, end) = match &call.end {
                None => ("unknown", String::new()),
                Some(ScriptOutcome::Value(value)) => ("done", format!(r#","value":{value}"#)),
                Some(ScriptOutcome::Handle(handle)) => {
                    ("done", format!(r#","uri":{}"#, json!(handle.uri)))
                }
                Some(ScriptOutcome::Error { message, .. }) => {
                    ("failed", format!(r#","error":{}"#, json!(message)))
                }
            };

            let arguments = call.arguments.as_deref().map_or("null", RawValue::get);
            let name = Value::from(&*call.name);
            format!(
                "{{\"call\":{id},\"tool\":{name},\"arguments\":{arguments},\"state\":\"{state}\"{end}}}\n"
            )
        };
        self.0.iter().map(line).collect()
    }
}

impl Call {
    /// The name and the error of a call that has failed.
    fn error(&self) -> Option<(String, &str)> {
        match &self.end {
            Some(ScriptOutcome::Error { message, .. }) => Some((quoted(&self.name), message)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn done_failed_and_unknown_calls_are_told_apart() {
        let mut ledger = Ledger::default();
        let arguments = serde_json::from_str::<Box<RawValue>>(r#"{"n": 1}"#).unwrap();
        for id in 1..=3 {
            ledger.begin(id, "get", Some(&arguments));
        }
        let value = ScriptOutcome::Value(serde_json::from_str("[7]").unwrap());
        ledger.end(1, &value);
        let error = ScriptOutcome::Error { message: "No such issue.".into(), value: None };
        ledger.end(2, &error);

        assert_eq!(
            ledger.summary(),
            "3 calls: 1 done, 1 failed (first: \"get\": No such issue.), 1 unknown: they may have been executed (get)"
        );
        assert_eq!(
            ledger.lines(),
            r#"{"call":1,"tool":"get","arguments":{"n": 1},"state":"done","value":[7]}
{"call":2,"tool":"get","arguments":{"n": 1},"state":"failed","error":"No such issue."}
{"call":3,"tool":"get","arguments":{"n": 1},"state":"unknown"}
"#
        );
    }
}
