//! The contract suite for implementations of [`Tasks`]: the behaviour that users can observe, in one
//! process or in several.
//!
//! Each function is one rule, and [`task_contract!`](crate::task_contract) makes a test of each. It
//! needs a [`Harness`] that sets up the tasks.

#![allow(clippy::missing_panics_doc, reason = "panicking is how a check fails")]

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use async_trait::async_trait;
use larder_identity::{Owner, Principal};
use larder_protocol::Fault;
use serde_json::{Value, json};

use crate::task::{TaskEnd, TaskLimits, TaskRun, TaskState, TaskView, Tasks};

/// Sets up tasks for the suite, and lets time pass.
#[async_trait]
pub trait Harness: Send + Sync {
    /// Two handles to one empty storage, as in two processes, with maintenance running. If the
    /// storage belongs to one process, both may be one handle.
    async fn processes(&self, limits: TaskLimits) -> [Arc<dyn Tasks>; 2];

    /// Lets `span` pass, and little more, by moving a clock or by waiting.
    async fn pass(&self, span: Duration);

    /// The unit of lifetimes in the suite, which are a few ticks long. At least a millisecond; with
    /// a real clock, longer than a few calls take.
    fn tick(&self) -> Duration;
}

/// Makes a test of each rule of the [contract](crate::testing::task). The expression creates a
/// [`Harness`](crate::testing::task::Harness) for each test and may `.await`. The calling crate
/// needs tokio.
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
            a_task_has_a_status_message_and_times,
            a_task_ends_as_its_run_did,
            questions_are_answered_one_by_one_and_once,
            an_answer_without_a_question_is_ignored,
            an_ended_task_does_not_change,
            cancelling_stops_the_run,
            an_expired_task_is_gone_and_stopped,
            tasks_of_one_owner_are_limited,
            tasks_of_all_owners_are_limited
        }
    };
}

/// The most time of a step in the suite.
const TEST_TIMEOUT: Duration = Duration::from_secs(20);

/// A task that runs in one process and is followed in the other.
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
        let (view, run) = one.create(&owner).await.expect("the task is created");
        assert!(matches!(view.state, TaskState::Working));
        Self { one, other, owner, id: view.id, run }
    }

    async fn find(&self) -> Option<TaskView> {
        self.other.get(&self.owner, &self.id).await.expect("it can be looked up")
    }

    async fn view(&self) -> TaskView {
        self.find().await.expect("the task exists")
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
        let stopped = tokio::time::timeout(TEST_TIMEOUT, self.run.cancelled().cancelled()).await;
        stopped.expect("it is stopped");
    }
}

/// Each process finds a task for its owner. Another owner neither finds nor changes the task.
pub async fn a_task_is_found_by_its_owner_alone(harness: &dyn Harness) {
    let stage = Stage::new(harness).await;

    for tasks in [&stage.one, &stage.other] {
        let view = tasks.get(&stage.owner, &stage.id).await.expect("it can be looked up");
        assert_eq!(view.expect("the task exists").id, stage.id);

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

/// A task has the message of its run, and the times of its creation and last change.
pub async fn a_task_has_a_status_message_and_times(harness: &dyn Harness) {
    let limits = TaskLimits::default();
    let stage = Stage::limited(harness, limits.clone()).await;
    let begun = stage.view().await;
    assert_eq!((begun.ttl, begun.poll_interval), (limits.ttl, limits.poll_interval));
    assert_eq!((begun.message, begun.created), (None, begun.updated));

    harness.pass(harness.tick()).await;

    stage.run.set_message("half done: 50 %, \"so far\"\r\n").await;
    let noted = stage.view().await;
    assert_eq!(noted.message.as_deref(), Some("half done: 50 %, \"so far\"\r\n"));
    assert_eq!(noted.created, begun.created);

    assert!(noted.updated > begun.updated);
}

/// A task ends with the result or the fault of its run, complete.
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

/// Another process answers the questions while the run waits. Each answer counts once.
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

    // An answered question stays answered.
    assert!(stage.answer(&[("one", json!("other"))]).await);
    assert!(stage.answer(&[("two: %", json!(["2"]))]).await);

    let answers = tokio::time::timeout(TEST_TIMEOUT, async { (one.await, two.await) }).await;
    let (one, two) = answers.expect("the answers arrive");
    assert_eq!(
        (one.expect("the answer arrives"), two.expect("the answer arrives")),
        (json!("1"), json!(["2"]))
    );

    assert!(matches!(stage.view().await.state, TaskState::Working));
}

/// An answer without a question is not kept for a later question either.
pub async fn an_answer_without_a_question_is_ignored(harness: &dyn Harness) {
    let stage = Stage::new(harness).await;
    assert!(stage.answer(&[("early", json!(0))]).await);

    let early = stage.run.ask("early", &json!("?")).await.expect("it is asked");
    assert!(matches!(stage.view().await.state, TaskState::InputRequired(_)));

    assert!(stage.answer(&[("early", json!(1))]).await);
    let answer = tokio::time::timeout(TEST_TIMEOUT, early).await.expect("the answer arrives");
    assert_eq!(answer.expect("the answer arrives"), json!(1));
}

/// An ended task stays as it is, whichever method is called afterwards.
pub async fn an_ended_task_does_not_change(harness: &dyn Harness) {
    let stage = Stage::new(harness).await;
    let asked = stage.run.ask("left", &json!(1)).await.expect("it is asked");
    let end = TaskEnd::Completed(json!({}));
    stage.run.finish(end.clone()).await;
    asked.await.expect_err("the task has ended");

    assert!(stage.cancel().await);
    assert!(stage.answer(&[("left", json!(1))]).await);
    stage.run.set_message("late").await;
    stage.run.finish(TaskEnd::Failed(Fault::SessionNotFound)).await;

    assert!(!stage.run.cancelled().is_cancelled());
    assert_eq!(stage.end().await, end);
    assert_eq!(stage.view().await.message, None);
}

/// Cancelling stops the run in any process, and ends its questions.
pub async fn cancelling_stops_the_run(harness: &dyn Harness) {
    let stage = Stage::new(harness).await;
    let asked = stage.run.ask("left", &json!(1)).await.expect("it is asked");

    assert!(stage.cancel().await);
    assert_eq!(stage.end().await, TaskEnd::Cancelled);
    stage.stopped().await;

    let answer = tokio::time::timeout(TEST_TIMEOUT, asked).await.expect("the receiver is released");
    answer.expect_err("there is no answer");

    stage.run.finish(TaskEnd::Completed(json!({}))).await;
    assert_eq!(stage.end().await, TaskEnd::Cancelled);
}

/// The lifetime of a task counts from its creation, regardless of changes.
pub async fn an_expired_task_is_gone_and_stopped(harness: &dyn Harness) {
    let limits = TaskLimits { ttl: 4 * harness.tick(), ..TaskLimits::default() };
    let stage = Stage::limited(harness, limits).await;

    harness.pass(harness.tick()).await;
    stage.run.set_message("still running").await;
    assert!(stage.find().await.is_some());

    harness.pass(3 * harness.tick()).await;
    assert!(stage.find().await.is_none());
    assert!(!stage.cancel().await);
    stage.stopped().await;
}

/// An owner with too many tasks has to wait until one expires.
pub async fn tasks_of_one_owner_are_limited(harness: &dyn Harness) {
    let limits = TaskLimits { ttl: 4 * harness.tick(), per_owner: 1, ..TaskLimits::default() };
    let stage = Stage::limited(harness, limits).await;

    let fault = stage.other.create(&stage.owner).await.expect_err("there is one already");
    assert!(matches!(fault, Fault::TooMany(_)), "{fault}");
    stage.other.create(&Owner::new("another")).await.expect("others have room");

    harness.pass(4 * harness.tick()).await;
    stage.other.create(&stage.owner).await.expect("there is room again");
}

/// All owners of all processes share a limit. A refused owner leaves nothing behind.
pub async fn tasks_of_all_owners_are_limited(harness: &dyn Harness) {
    let limits = TaskLimits { ttl: 8 * harness.tick(), total: 1, ..TaskLimits::default() };
    let stage = Stage::limited(harness, limits).await;
    let another = Owner::new("another");

    let fault = stage.other.create(&another).await.expect_err("there is one already");
    assert!(matches!(&fault, Fault::Busy { message, .. } if message.contains("tasks.total")));

    harness.pass(8 * harness.tick()).await;
    let begun = async {
        while stage.other.create(&another).await.is_err() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(TEST_TIMEOUT, begun).await.expect("there is room again");
}
