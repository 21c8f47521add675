//! Tests beyond the contract: keys and their expiry, and failures of Redis and of instances.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use larder_identity::{Owner, Principal};
use larder_protocol::Fault;
use larder_runtime::random::Random;
use serde_json::json;

use super::RedisTasks;
use crate::{
    redis::cmd,
    task::{TaskEnd, TaskLimits, TaskState, Tasks},
    testing::task::{self as contract, Harness},
    testing::{Installations, RedisServer},
};

struct OnRedis(Installations);

impl OnRedis {
    async fn new() -> Self {
        Self::on(RedisServer::start().await)
    }

    fn on(server: RedisServer) -> Self {
        Self(Installations::on(server))
    }

    async fn instance(&self, installation: u32, limits: TaskLimits) -> RedisTasks {
        RedisTasks::new(self.0.instance(installation).await, Random::system(), limits)
    }
}

#[async_trait]
impl Harness for OnRedis {
    async fn processes(&self, limits: TaskLimits) -> [Arc<dyn Tasks>; 2] {
        let installation = self.0.unused();
        [
            Arc::new(self.instance(installation, limits.clone()).await),
            Arc::new(self.instance(installation, limits).await),
        ]
    }

    async fn pass(&self, span: Duration) {
        tokio::time::sleep(span).await;
    }

    fn tick(&self) -> Duration {
        Duration::from_millis(500)
    }
}

crate::task_contract!(OnRedis::new().await);

/// The most time of a step in these tests.
const TEST_TIMEOUT: Duration = Duration::from_secs(20);

fn owner() -> Owner {
    Principal::Local.owner()
}

async fn until_ended(tasks: &RedisTasks, id: &str) -> TaskEnd {
    let ended = async {
        loop {
            // Fails while Redis is unreachable.
            if let Ok(view) = tasks.get(&owner(), id).await
                && let TaskState::Ended(end) = view.expect("it is there").state
            {
                return end;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(TEST_TIMEOUT, ended).await.expect("it ends")
}

#[tokio::test(flavor = "multi_thread")]
async fn the_contract_holds_in_a_cluster() {
    let harness = OnRedis(Installations::in_a_cluster().await);
    contract::a_task_ends_as_its_run_did(&harness).await;
    contract::questions_are_answered_one_by_one_and_once(&harness).await;
    contract::cancelling_stops_the_run(&harness).await;
    contract::tasks_of_one_owner_are_limited(&harness).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expired_task_leaves_no_keys() {
    let harness = OnRedis::new().await;
    let limits = TaskLimits { ttl: Duration::from_millis(500), ..TaskLimits::default() };

    let tasks = harness.instance(0, limits).await;

    let (view, run) = tasks.create(&owner()).await.expect("it begins");
    let _asked = run.ask("q", &json!(1)).await.expect("it is asked");
    let answers = [("q".to_owned(), json!(2))].into();
    assert!(tasks.answer(&owner(), &view.id, answers).await.expect("it is answered"));

    run.finish(TaskEnd::Completed(json!({}))).await;
    assert_eq!(tasks.inner.runs.len(), 1);
    drop(run);
    assert_eq!(tasks.inner.runs.len(), 0, "the process keeps no state of it");
    drop(tasks);

    let redis = harness.0.redis(0).await;
    let gone = async {
        loop {
            let keys: Vec<String> = redis.query(cmd("KEYS").arg("*")).await.expect("it lists");
            if keys.is_empty() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };

    tokio::time::timeout(TEST_TIMEOUT, gone).await.expect("all expires");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_tasks_of_an_instance_that_is_gone_have_failed() {
    let harness = OnRedis::new().await;
    let one = harness.instance(0, TaskLimits::default()).await;
    let other = harness.instance(0, TaskLimits::default()).await;

    let (view, run) = one.create(&owner()).await.expect("it begins");
    let (ended, done) = one.create(&owner()).await.expect("it begins");
    done.finish(TaskEnd::Completed(json!("kept"))).await;

    drop((run, done, one));
    let TaskEnd::Failed(Fault::Unavailable(message)) = until_ended(&other, &view.id).await else {
        panic!("it failed")
    };
    assert!(message.contains("Call the tool again"), "{message}");
    assert_eq!(until_ended(&other, &ended.id).await, TaskEnd::Completed(json!("kept")));
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_continue_while_redis_is_unreachable_and_end_when_it_is_back() {
    let mut harness = OnRedis::on(RedisServer::durable().await);
    let one = harness.instance(0, TaskLimits::default()).await;
    let other = harness.instance(0, TaskLimits::default()).await;

    let (view, run) = one.create(&owner()).await.expect("it begins");
    let asked = run.ask("q", &json!(1)).await.expect("it is asked");

    harness.0.servers[0].kill();
    for tasks in [&one, &other] {
        let away = tasks.get(&owner(), &view.id).await.expect_err("Redis is away");
        assert!(matches!(away, Fault::Unavailable(_)), "{away}");
    }
    run.ask("r", &json!(1)).await.expect_err("Redis is away");

    // A pause that is longer than the time to live of a heartbeat.
    tokio::time::sleep(Duration::from_secs(6)).await;
    harness.0.servers[0].restart().await;

    let answered = async {
        loop {
            let answers = [("q".to_owned(), json!("answer"))].into();
            if other.answer(&owner(), &view.id, answers).await.is_ok() {
                return;
            }
            // A polling client reads the task, which must not end it.
            let _ = other.get(&owner(), &view.id).await;
        }
    };

    tokio::time::timeout(TEST_TIMEOUT, answered).await.expect("it is answered");
    let answer = tokio::time::timeout(TEST_TIMEOUT, asked).await.expect("it arrives in time");
    assert_eq!(answer.expect("it comes"), json!("answer"));

    harness.0.servers[0].kill();
    let finishing = tokio::spawn(async move { run.finish(TaskEnd::Completed(json!(2))).await });
    for _ in 0..5 {
        other.get(&owner(), &view.id).await.expect_err("Redis is away");
    }
    assert!(!finishing.is_finished(), "it keeps retrying");

    harness.0.servers[0].restart().await;
    assert_eq!(until_ended(&other, &view.id).await, TaskEnd::Completed(json!(2)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_redis_has_lost_is_stopped() {
    let mut harness = OnRedis::new().await;
    let tasks = harness.instance(0, TaskLimits::default()).await;

    let (_, run) = tasks.create(&owner()).await.expect("it begins");
    harness.0.servers[0].restart().await;
    let stopped = tokio::time::timeout(TEST_TIMEOUT, run.cancelled().cancelled()).await;
    stopped.expect("the run is cancelled");
}
