//! The contract suite: what every place for tasks does, told by what its users
//! can observe, in one process or in several.
//!
//! Each function is one rule. [`task_contract!`](crate::task_contract) makes a
//! test of each; it needs a [`Harness`] that sets up tasks.

#![allow(clippy::missing_panics_doc, reason = "panicking is how a check fails")]

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use async_trait::async_trait;
use serde_json::{Value, json};

use crate::{
    auth::{Owner, Principal},
    protocol::Fault,
    task::{TaskEnd, TaskLimits, TaskRun, TaskState, TaskView, Tasks},
};

/// How the suite gets tasks, and how it lets time pass.
#[async_trait]
pub trait Harness: Send + Sync {
    /// No tasks yet, maintained, as two processes see them: what one does the
    /// other finds. Where one process has them for itself, it stands for both.
    async fn processes(&self, limits: TaskLimits) -> [Arc<dyn Tasks>; 2];

    /// Lets that much time pass, and hardly more: by the hands of a clock, or
    /// by waiting.
    async fn pass(&self, span: Duration);

    /// The unit of the life times in the suite, at least a millisecond; they
    /// are a few ticks long. Where time is real, long enough for a few calls
    /// to take less.
    fn tick(&self) -> Duration;
}

/// Makes a test of each rule of the [contract](crate::testing::task). The
/// expression makes a [`Harness`](crate::testing::task::Harness), anew for
/// each test; it may `.await`. The crate that calls it needs tokio.
#[macro_export]
macro_rules! task_contract {
    (@tests ($harness:expr) $($check:ident),+) => {
        $(
            #[tokio::test(flavor = "multi_thread")]
            async fn $check() {
                $crate::testing::task::$check(&$harness).await;
            }
        )+
    };
    ($harness:expr) => {
        $crate::task_contract! {
            @tests ($harness)
            a_task_is_found_by_its_owner_alone,
            a_task_tells_how_it_goes,
            a_task_ends_as_its_run_did,
            questions_are_answered_one_by_one_and_once,
            an_answer_that_nobody_waits_for_changes_nothing,
            what_has_ended_stays_as_it_ended,
            cancelling_stops_the_run,
            an_expired_task_is_gone_and_stopped,
            tasks_of_one_owner_are_bounded
        }
    };
}

/// Far more than anything here takes.
const PATIENCE: Duration = Duration::from_secs(20);

/// Run in one process, followed in the other.
struct Stage {
    one: Arc<dyn Tasks>,
    other: Arc<dyn Tasks>,
    owner: Owner,
    id: Arc<str>,
    run: Arc<dyn TaskRun>,
}

impl Stage {
    async fn new(harness: &dyn Harness) -> Self {
        Self::limited(harness, TaskLimits::default()).await
    }

    async fn limited(harness: &dyn Harness, limits: TaskLimits) -> Self {
        let [one, other] = harness.processes(limits).await;
        let owner = Principal::Local.owner();
        let (view, run) = one.create(&owner).await.expect("it begins");
        assert!(matches!(view.state, TaskState::Working));
        Self { one, other, owner, id: view.id, run }
    }

    async fn find(&self) -> Option<TaskView> {
        self.other.get(&self.owner, &self.id).await.expect("it can be looked up")
    }

    async fn view(&self) -> TaskView {
        self.find().await.expect("it is there")
    }

    async fn end(&self) -> TaskEnd {
        match self.view().await.state {
            TaskState::Ended(end) => end,
            state => panic!("it has not ended: {state:?}"),
        }
    }

    async fn answer(&self, answers: &[(&str, Value)]) -> bool {
        let answers = answers.iter().map(|(key, answer)| ((*key).to_owned(), answer.clone()));
        let answers: BTreeMap<String, Value> = answers.collect();
        self.other.answer(&self.owner, &self.id, answers).await.expect("it can be answered")
    }

    async fn cancel(&self) -> bool {
        self.other.cancel(&self.owner, &self.id).await.expect("it can be cancelled")
    }

    async fn stopped(&self) {
        let stopped = tokio::time::timeout(PATIENCE, self.run.cancelled().cancelled()).await;
        stopped.expect("it is stopped");
    }
}

/// From either process; anybody else finds nothing, and changes nothing.
pub async fn a_task_is_found_by_its_owner_alone(harness: &dyn Harness) {
    let stage = Stage::new(harness).await;
    for tasks in [&stage.one, &stage.other] {
        let view = tasks.get(&stage.owner, &stage.id).await.expect("it can be looked up");
        assert_eq!(view.expect("it is there").id, stage.id);
        for stranger in ["eve", "", "local:", &format!("local:{}", stage.id)] {
            let eve = Owner::new(stranger);
            let found = tasks.get(&eve, &stage.id).await.expect("it can be looked up");
            assert!(found.is_none(), "{stranger}");
            assert!(!tasks.cancel(&eve, &stage.id).await.expect("it answers"));
            assert!(!tasks.answer(&eve, &stage.id, BTreeMap::new()).await.expect("it answers"));
        }
        for unknown in ["", "x", ":", &format!("{}:", stage.id)] {
            let found = tasks.get(&stage.owner, unknown).await.expect("it can be looked up");
            assert!(found.is_none(), "{unknown}");
        }
    }
    assert!(matches!(stage.view().await.state, TaskState::Working));
}

/// With what its maker says of it, and when that was.
pub async fn a_task_tells_how_it_goes(harness: &dyn Harness) {
    let limits = TaskLimits::default();
    let stage = Stage::limited(harness, limits.clone()).await;
    let begun = stage.view().await;
    assert_eq!((begun.ttl, begun.poll), (limits.ttl, limits.poll));
    assert_eq!((begun.message, begun.created), (None, begun.updated));
    harness.pass(harness.tick()).await;
    stage.run.note("half done: 50 %, \"so far\"\r\n").await;
    let noted = stage.view().await;
    assert_eq!(noted.message.as_deref(), Some("half done: 50 %, \"so far\"\r\n"));
    assert_eq!(noted.created, begun.created);
    assert!(noted.updated > begun.updated);
}

/// With its result, or with its fault, every word of it.
pub async fn a_task_ends_as_its_run_did(harness: &dyn Harness) {
    let fault = Fault::InvalidParams {
        message: "No such name: ünïcode \u{1}".into(),
        data: Some(json!({ "names": ["a", 1, null] })),
    };
    let ends = [
        TaskEnd::Completed(json!({ "content": [{ "type": "text", "text": "done \u{0}" }] })),
        TaskEnd::Failed(fault),
        TaskEnd::Failed(Fault::SessionNotFound),
    ];
    for end in ends {
        let stage = Stage::new(harness).await;
        stage.run.finish(end.clone()).await;
        assert_eq!(stage.end().await, end);
        assert!(!stage.run.cancelled().is_cancelled());
    }
}

/// By the other process, while the run waits in this one.
pub async fn questions_are_answered_one_by_one_and_once(harness: &dyn Harness) {
    let stage = Stage::new(harness).await;
    let one = stage.run.ask("one", &json!({ "q": 1 })).await.expect("it is asked");
    let two = stage.run.ask("two: %", &json!(2)).await.expect("it is asked");
    let both = [("one".to_owned(), json!({ "q": 1 })), ("two: %".to_owned(), json!(2))];
    let TaskState::InputRequired(asked) = stage.view().await.state else { panic!("it asks") };
    assert_eq!(asked, BTreeMap::from(both));
    assert!(stage.answer(&[("one", json!("1")), ("none", json!(0))]).await);
    let TaskState::InputRequired(left) = stage.view().await.state else { panic!("one is left") };
    assert_eq!(left, BTreeMap::from([("two: %".to_owned(), json!(2))]));
    // What was answered is answered, whoever says something else.
    assert!(stage.answer(&[("one", json!("other"))]).await);
    assert!(stage.answer(&[("two: %", json!(["2"]))]).await);
    let answers = tokio::time::timeout(PATIENCE, async { (one.await, two.await) }).await;
    let (one, two) = answers.expect("they come");
    assert_eq!((one.expect("it comes"), two.expect("it comes")), (json!("1"), json!(["2"])));
    assert!(matches!(stage.view().await.state, TaskState::Working));
}

/// Nor does it wait for a later question.
pub async fn an_answer_that_nobody_waits_for_changes_nothing(harness: &dyn Harness) {
    let stage = Stage::new(harness).await;
    assert!(stage.answer(&[("early", json!(0))]).await);
    let early = stage.run.ask("early", &json!("?")).await.expect("it is asked");
    assert!(matches!(stage.view().await.state, TaskState::InputRequired(_)));
    assert!(stage.answer(&[("early", json!(1))]).await);
    let answer = tokio::time::timeout(PATIENCE, early).await.expect("it comes");
    assert_eq!(answer.expect("it comes"), json!(1));
}

/// Whatever is done to it afterwards.
pub async fn what_has_ended_stays_as_it_ended(harness: &dyn Harness) {
    let stage = Stage::new(harness).await;
    let asked = stage.run.ask("left", &json!(1)).await.expect("it is asked");
    let end = TaskEnd::Completed(json!({}));
    stage.run.finish(end.clone()).await;
    asked.await.expect_err("nobody can answer any more");
    assert!(stage.cancel().await);
    assert!(stage.answer(&[("left", json!(1))]).await);
    stage.run.note("late").await;
    stage.run.finish(TaskEnd::Failed(Fault::SessionNotFound)).await;
    assert!(!stage.run.cancelled().is_cancelled());
    assert_eq!(stage.end().await, end);
    assert_eq!(stage.view().await.message, None);
}

/// Wherever it runs; its questions with it.
pub async fn cancelling_stops_the_run(harness: &dyn Harness) {
    let stage = Stage::new(harness).await;
    let asked = stage.run.ask("left", &json!(1)).await.expect("it is asked");
    assert!(stage.cancel().await);
    assert_eq!(stage.end().await, TaskEnd::Cancelled);
    stage.stopped().await;
    let answer = tokio::time::timeout(PATIENCE, asked).await.expect("it is let go");
    answer.expect_err("nobody answers");
    stage.run.finish(TaskEnd::Completed(json!({}))).await;
    assert_eq!(stage.end().await, TaskEnd::Cancelled);
}

/// Counted from its beginning, whatever happens to it.
pub async fn an_expired_task_is_gone_and_stopped(harness: &dyn Harness) {
    let limits = TaskLimits { ttl: 4 * harness.tick(), ..TaskLimits::default() };
    let stage = Stage::limited(harness, limits).await;
    harness.pass(harness.tick()).await;
    stage.run.note("still here").await;
    assert!(stage.find().await.is_some());
    harness.pass(3 * harness.tick()).await;
    assert!(stage.find().await.is_none());
    assert!(!stage.cancel().await);
    stage.stopped().await;
}

/// And when one expires there is room for another.
pub async fn tasks_of_one_owner_are_bounded(harness: &dyn Harness) {
    let limits = TaskLimits { ttl: 4 * harness.tick(), per_owner: 1, ..TaskLimits::default() };
    let stage = Stage::limited(harness, limits).await;
    let fault = stage.other.create(&stage.owner).await.expect_err("there is one already");
    assert!(matches!(fault, Fault::TooMany(_)), "{fault}");
    stage.other.create(&Owner::new("another")).await.expect("others have room");
    harness.pass(4 * harness.tick()).await;
    stage.other.create(&stage.owner).await.expect("there is room again");
}
