//! `run_code`: JavaScript over tools and stored content.

mod callers;
mod calls;
mod confined;
mod guide;
mod hostile;
mod runs;

use serde_json::{Value, json};

use crate::tools::query::{Service, text_of};

/// A server that runs code, with these variables of its environment.
async fn coding(environment: &[(&str, &str)]) -> Service {
    let mut all = vec![("LARDER_CODE__ENABLED", "true")];
    all.extend_from_slice(environment);
    Service::start_in(&[], &all).await
}

impl Service {
    /// The result of code, which succeeds.
    async fn run(&self, code: &str) -> Value {
        let result = self.call("run_code", json!({ "code": code })).await;
        assert_eq!(result["isError"], false, "{code}: {result}");
        result
    }

    /// The value that code returns.
    async fn value(&self, code: &str) -> Value {
        let result = self.run(code).await;
        serde_json::from_str(&text_of(&result)).unwrap_or_else(|_| panic!("{code}: {result}"))
    }

    /// The error of code that fails.
    async fn failure(&self, code: &str) -> String {
        let result = self.call("run_code", json!({ "code": code })).await;
        assert_eq!(result["isError"], true, "{code}: {result}");
        text_of(&result)
    }
}
