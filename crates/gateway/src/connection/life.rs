//! [`Life`]: the states of an upstream's process, from its first use to its end, and the ways between
//! them.
//!
//! ```text
//! Idle ─► Starting ─► Probing ─► Listing ─► Ready ◄─► Degraded      any state ─► Stopped
//!            ▲           │          │         │          │
//!            │           ▼          ▼         ▼          ▼
//!            └──────── BackingOff, or NeedsLogin ◄───────┘
//! ```
//!
//! All that is told of an upstream (readiness, `larder upstreams`, `_meta` of lists, the console, the
//! metrics) comes from here, by the matches at the end of this file.

use std::sync::Arc;

use tokio::time::Instant;

use crate::{
    catalogue::{CutList, ReasonReader},
    error::StartError,
    link::Link,
    login::LoginNeeded,
    status::State,
};

/// The life of one process of an upstream, or of one session with a server over HTTP.
#[derive(Clone)]
pub(crate) struct Life {
    /// Counts the attempts to start the upstream; 0 before the first one.
    attempt: u64,
    /// Why the last attempt has failed, until the upstream runs again. An upstream that refuses
    /// one caller has not failed.
    failure: Option<Arc<StartError>>,
    stage: Stage,
}

/// A state in the life of an upstream's process.
#[derive(Clone)]
pub(crate) enum Stage {
    /// Nothing has used the upstream yet.
    Idle,
    /// The process is being started, or the last session resumed.
    Starting,
    /// The upstream is asked for its protocol era, and has not answered yet.
    Probing,
    /// The lists are read for the first time.
    Listing,
    /// The upstream runs, and all that it lists is offered.
    Ready(Arc<Link>),
    /// The upstream runs, and a part of its lists is not offered.
    Degraded { link: Arc<Link>, missing: Vec<CutList> },
    /// The next attempt begins when the caller has logged in.
    NeedsLogin { login: Arc<LoginNeeded>, why: Arc<StartError> },
    /// The upstream could not be started, or has ended: the next attempt begins at the time that the
    /// error names, or with the next call.
    BackingOff(Arc<StartError>),
    /// The connection was stopped for good.
    Stopped,
}

/// The ways between the states.
impl Life {
    pub(super) fn new() -> Self {
        Self { attempt: 0, failure: None, stage: Stage::Idle }
    }

    /// The first use.
    pub(super) fn wake(&mut self) {
        if matches!(self.stage, Stage::Idle) {
            self.stage = Stage::Starting;
        }
    }

    /// Another attempt begins.
    pub(super) fn start(&mut self) {
        self.attempt += 1;
        self.stage = Stage::Starting;
    }

    /// The process runs, or the server was reached: it is asked for its era.
    pub(super) fn probe(&mut self) {
        self.stage = Stage::Probing;
    }

    /// The upstream has answered: its lists are read.
    pub(super) fn list(&mut self) {
        self.stage = Stage::Listing;
    }

    /// The lists were read, without those that are missing.
    pub(super) fn listed(&mut self, link: &Arc<Link>, missing: Vec<CutList>) {
        let link = Arc::clone(link);
        self.failure = None;
        self.stage =
            if missing.is_empty() { Stage::Ready(link) } else { Stage::Degraded { link, missing } };
    }

    /// The attempt has failed, or the process has ended.
    pub(super) fn fail(&mut self, why: Arc<StartError>) {
        self.failure = why.caller.is_none().then(|| Arc::clone(&why));
        self.stage = match why.login() {
            Some(login) => Stage::NeedsLogin { login, why },
            None => Stage::BackingOff(why),
        };
    }

    /// The connection is stopped for good.
    pub(super) fn stop(&mut self) {
        self.stage = Stage::Stopped;
    }
}

/// The answers to calls and lists that wait for the upstream.
impl Life {
    pub(super) fn stage(&self) -> &Stage {
        &self.stage
    }

    /// The number of the attempt whose failure counts for a call that comes now: a failure before
    /// the call does not.
    pub(super) fn attempt_of_call(&self) -> u64 {
        self.attempt + u64::from(!self.is_starting())
    }

    /// Why the upstream does not run, if that was found out by this attempt or a later one.
    pub(super) fn failed_since(&self, attempt: u64) -> Option<&Arc<StartError>> {
        match &self.stage {
            Stage::NeedsLogin { why, .. } | Stage::BackingOff(why) if self.attempt >= attempt => {
                Some(why)
            }
            _ => None,
        }
    }

    /// Whether it is not known yet how the attempt ends.
    pub(super) fn is_starting(&self) -> bool {
        match &self.stage {
            Stage::Idle | Stage::Starting | Stage::Probing | Stage::Listing => true,
            Stage::Ready(_)
            | Stage::Degraded { .. }
            | Stage::NeedsLogin { .. }
            | Stage::BackingOff(_)
            | Stage::Stopped => false,
        }
    }

    /// The link to a process that takes calls.
    pub(super) fn link(&self) -> Option<&Arc<Link>> {
        match &self.stage {
            Stage::Ready(link) | Stage::Degraded { link, .. } => Some(link),
            _ => None,
        }
        .filter(|link| !link.has_ended())
    }

    /// The login that the caller needs first.
    pub(super) fn login_needed(&self) -> Option<&Arc<LoginNeeded>> {
        match &self.stage {
            Stage::NeedsLogin { login, .. } => Some(login),
            _ => None,
        }
    }

    /// Whether its caller lacks access, which other credentials may give.
    pub(super) fn lacks_access(&self) -> bool {
        match &self.stage {
            Stage::NeedsLogin { .. } => true,
            Stage::BackingOff(why) => why.caller.is_some(),
            _ => false,
        }
    }
}

/// The state, as others read it.
impl Life {
    /// The state, for operators.
    pub(crate) fn state(&self) -> State {
        match &self.stage {
            Stage::Idle | Stage::Stopped => State::Idle,
            Stage::Starting | Stage::Probing | Stage::Listing => State::Starting,
            // The end was seen, and is dealt with next.
            Stage::Ready(link) | Stage::Degraded { link, .. } if link.has_ended() => State::Down,
            Stage::Ready(_) => State::Up,
            Stage::Degraded { .. } => State::Degraded,
            Stage::NeedsLogin { .. } => State::NeedsLogin,
            Stage::BackingOff(why) if why.caller.is_some() => State::NoAccess,
            Stage::BackingOff(_) => State::Down,
        }
    }

    /// Whether the upstream has failed, and does not run since.
    pub(crate) fn is_failing(&self) -> bool {
        self.failure.is_some() || self.state() == State::Down
    }

    /// Why a part of the lists is not offered.
    pub(crate) fn degraded(&self, reader: ReasonReader) -> Option<String> {
        match &self.stage {
            Stage::Degraded { link, missing } if !link.has_ended() => {
                let reasons: Vec<_> = missing.iter().map(|list| list.show(reader)).collect();
                Some(reasons.join("; "))
            }
            _ => None,
        }
    }

    /// The event that comes next in its life, if there is one.
    pub(crate) fn waits_for(&self) -> Option<String> {
        match &self.stage {
            Stage::Starting => Some("its start".to_owned()),
            Stage::Probing => Some("its first answer".to_owned()),
            Stage::Listing => Some("its lists".to_owned()),
            Stage::NeedsLogin { .. } => Some("the login of a caller".to_owned()),
            Stage::BackingOff(why) => {
                let wait = why.next_try.saturating_duration_since(Instant::now());
                Some(format!("its next start, in {} s", wait.as_secs_f64().ceil()))
            }
            Stage::Idle | Stage::Ready(_) | Stage::Degraded { .. } | Stage::Stopped => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use serde_json::json;

    use super::*;
    use crate::{error::UpstreamError, settings::Settings};

    fn link() -> Arc<Link> {
        let settings = Arc::new(Settings::new("odd", vec!["odd".to_owned()]));
        Link::new(settings, Arc::default(), json!({})).0
    }

    fn missing() -> Vec<CutList> {
        let problem = "later".to_owned();
        vec![CutList::of_all(UpstreamError::Unavailable { name: "odd".into(), problem })]
    }

    fn failure(caller: Option<UpstreamError>) -> Arc<StartError> {
        let next_try = Instant::now() + Duration::from_millis(7_500);
        let (name, reason) = ("odd".into(), "exit code 3".to_owned());
        Arc::new(StartError { name, reason, next_try, caller: caller.map(Box::new) })
    }

    #[tokio::test(start_paused = true)]
    async fn each_stage_has_a_state_and_an_event_that_comes_next() {
        let mut life = Life::new();
        let mut seen = Vec::new();
        let mut see = |life: &Life| {
            let waits_for = life.waits_for().unwrap_or_default();
            seen.push((life.state(), waits_for, life.is_failing()));
        };

        see(&life);
        life.wake();
        see(&life);
        life.start();
        life.probe();
        see(&life);
        let first = link();
        life.list();
        see(&life);
        life.listed(&first, missing());
        see(&life);
        life.listed(&first, Vec::new());
        see(&life);
        first.end("exit code 3");
        see(&life);
        life.fail(failure(None));
        see(&life);
        life.start();
        see(&life);
        life.listed(&link(), Vec::new());
        see(&life);
        let problem = "the store is down".to_owned();
        life.fail(failure(Some(UpstreamError::StoredLogin { name: "odd".into(), problem })));
        see(&life);
        life.stop();
        see(&life);

        let next_start = "its next start, in 8 s";
        let expected = [
            (State::Idle, "", false),
            (State::Starting, "its start", false),
            (State::Starting, "its first answer", false),
            (State::Starting, "its lists", false),
            (State::Degraded, "", false),
            (State::Up, "", false),
            (State::Down, "", true),
            (State::Down, next_start, true),
            (State::Starting, "its start", true),
            (State::Up, "", false),
            (State::NoAccess, next_start, false),
            (State::Idle, "", false),
        ];
        let expected = expected.map(|(state, event, fails)| (state, event.to_owned(), fails));
        assert_eq!(seen, expected);
    }

    #[test]
    fn a_failure_counts_for_the_calls_that_came_before_it() {
        let mut life = Life::new();
        life.start();
        let during = life.attempt_of_call();
        life.fail(failure(None));
        assert!(life.failed_since(during).is_some());

        let after = life.attempt_of_call();
        assert!(life.failed_since(after).is_none());
        life.start();
        life.fail(failure(None));
        assert!(life.failed_since(after).is_some());
    }
}
