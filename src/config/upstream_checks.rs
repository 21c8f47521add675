//! Checks of `[[upstreams]]` that its types cannot make.

use std::{collections::BTreeSet, time::Duration};

use larder_gateway::{SessionPolicy, Settings};
use larder_oauth::check_url;

use super::{AuthMode, ConfigError, UpstreamConfig};

/// A setting of one upstream, and what is wrong with it.
struct Problem {
    setting: &'static str,
    text: String,
}

fn problem(setting: &'static str, text: impl Into<String>) -> Result<(), Problem> {
    Err(Problem { setting, text: text.into() })
}

impl UpstreamConfig {
    /// Checks all upstreams together.
    pub(super) fn check_all(
        upstreams: &[Self],
        max_ttl: Duration,
        mode: AuthMode,
    ) -> Result<(), ConfigError> {
        let mut names = BTreeSet::new();

        for upstream in upstreams {
            let checked = upstream.check(max_ttl, mode).and_then(|()| {
                let is_new = names.insert(&upstream.name);
                if is_new { Ok(()) } else { problem("name", "two upstreams have it") }
            });
            checked.map_err(|Problem { setting, text }| {
                let setting = format!("upstreams.{setting}");
                ConfigError::new(&setting, format!("{:?}: {text}", upstream.name))
            })?;

            upstream.settings()?;
        }

        Ok(())
    }

    fn check(&self, max_ttl: Duration, mode: AuthMode) -> Result<(), Problem> {
        if !Settings::is_name(&self.name) {
            return problem("name", "it must be 1 to 24 of a-z, 0-9 and -, with no - at an end");
        }

        self.check_target()?;
        self.check_projections()?;
        self.check_headers()?;
        self.check_auth()?;
        self.check_exchange(mode)?;
        self.check_limits(max_ttl)
    }

    /// An upstream is either a program or a URL.
    fn check_target(&self) -> Result<(), Problem> {
        match (&self.url, self.command.first().map(String::as_str)) {
            (Some(_), Some(_)) => problem("url", "there is a command as well"),
            (None, None | Some("")) => {
                problem("command", "it must name a program, or url a server")
            }
            (Some(url), None) if !is_url(url) => {
                problem("url", "it must begin with http:// or https://")
            }
            _ => Ok(()),
        }
    }

    fn check_projections(&self) -> Result<(), Problem> {
        for (tool, filter) in &self.project {
            if filter.trim().is_empty() {
                return problem("project", format!("{tool} needs a jq filter"));
            }
            #[cfg(feature = "query")]
            if let Err(error) = larder_query::worker::check_jq(filter) {
                return problem("project", format!("{tool}: {error}"));
            }
        }
        Ok(())
    }

    fn check_headers(&self) -> Result<(), Problem> {
        if self.url.is_none() && !self.header_files.is_empty() {
            return problem("header_files", "it is for upstreams with a url");
        }

        let is_twice =
            |name: &&String| self.headers.keys().any(|other| other.eq_ignore_ascii_case(name));
        match self.header_files.keys().find(is_twice) {
            Some(name) => problem("header_files", format!("{name} is in headers as well")),
            None => Ok(()),
        }
    }

    fn check_auth(&self) -> Result<(), Problem> {
        let Some(auth) = &self.auth else { return Ok(()) };

        match self.url.as_deref().map(check_url) {
            None => return problem("auth", "it is for upstreams with a url"),
            Some(Err(why)) => return problem("url", why),
            Some(Ok(())) => {}
        }
        if self.session == SessionPolicy::All {
            return problem("session", "with auth, each caller needs its own");
        }

        match auth.issuer.as_deref().map(check_url) {
            Some(Err(why)) => problem("auth.issuer", why),
            None | Some(Ok(())) => Ok(()),
        }
    }

    fn check_limits(&self, max_ttl: Duration) -> Result<(), Problem> {
        for (setting, span) in [
            ("idle", self.idle),
            ("start_timeout", self.start_timeout),
            ("list_timeout", self.list_timeout),
            ("call_timeout", self.call_timeout),
            ("answer_timeout", self.answer_timeout),
        ] {
            if span.0.is_zero() {
                return problem(setting, "it must be more than 0");
            }
        }

        if self.ttl.values().any(|ttl| ttl.0.is_zero() || ttl.0 > max_ttl) {
            return problem("ttl", "it must be more than 0 and at most store.max_ttl");
        }

        for (setting, size) in
            [("max_message", self.max_message), ("max_catalogue", self.max_catalogue)]
        {
            if size.0 < 1024 {
                return problem(setting, "it must be at least 1KiB");
            }
        }
        for (setting, number) in
            [("max_processes", self.max_processes), ("max_values", self.max_values)]
        {
            if number == 0 {
                return problem(setting, "it must be more than 0");
            }
        }

        Ok(())
    }

    /// Checks what `exchange` needs of the other settings.
    fn check_exchange(&self, mode: AuthMode) -> Result<(), Problem> {
        if self.exchange.is_none() {
            return Ok(());
        }

        let mut names = self.headers.keys().chain(self.header_files.keys());
        if self.url.is_none() {
            return problem("exchange", "it is for upstreams with a url");
        }
        if self.auth.is_some() {
            return problem("exchange", "there is auth as well");
        }
        if self.session == SessionPolicy::All {
            return problem("session", "with exchange, each caller needs its own");
        }
        if names.any(|name| name.eq_ignore_ascii_case("authorization")) {
            return problem("headers", "with exchange, authorization is not set here");
        }
        if mode != AuthMode::OAuth {
            return problem("exchange", "it needs tokens of callers: auth.mode = \"oauth\"");
        }

        Ok(())
    }
}

fn is_url(url: &str) -> bool {
    ["http://", "https://"].iter().any(|scheme| url.len() > scheme.len() && url.starts_with(scheme))
}
