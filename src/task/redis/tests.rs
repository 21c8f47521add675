//! What the contract does not say: what lies in Redis, and what happens when
//! it or a replica goes.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use serde_json::json;

use super::RedisTasks;
use crate::{
    auth::{Owner, Principal},
    protocol::Fault,
    random::Random,
    redis::cmd,
    task::{TaskEnd, TaskLimits, TaskState, Tasks},
    testing::{
        Installations, RedisServer,
        task::{self as contract, Harness},
    },
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

/// Far more than anything here takes.
const PATIENCE: Duration = Duration::from_secs(20);

fn owner() -> Owner {
    Principal::Local.owner()
}

async fn until_ended(tasks: &RedisTasks, id: &str) -> TaskEnd {
    let ended = async {
        loop {
            // While Redis is away it says so.
            if let Ok(view) = tasks.get(&owner(), id).await
                && let TaskState::Ended(end) = view.expect("it is there").state
            {
                return end;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(PATIENCE, ended).await.expect("it ends")
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_holds_in_a_cluster() {
    let harness = OnRedis(Installations::in_a_cluster().await);
    contract::a_task_ends_as_its_run_did(&harness).await;
    contract::questions_are_answered_one_by_one_and_once(&harness).await;
    contract::cancelling_stops_the_run(&harness).await;
    contract::tasks_of_one_owner_are_bounded(&harness).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn after_its_expiry_nothing_is_left_of_a_task() {
    let harness = OnRedis::new().await;
    let limits = TaskLimits { ttl: Duration::from_millis(500), ..TaskLimits::default() };
    let tasks = harness.instance(0, limits).await;
    let (view, run) = tasks.create(&owner()).await.expect("it begins");
    let _asked = run.ask("q", &json!(1)).await.expect("it is asked");
    let answers = [("q".to_owned(), json!(2))].into();
    assert!(tasks.answer(&owner(), &view.id, answers).await.expect("it is answered"));
    run.finish(TaskEnd::Completed(json!({}))).await;
    assert_eq!(tasks.inner.held.len(), 1);
    drop(run);
    assert_eq!(tasks.inner.held.len(), 0, "nothing stands for it in the process");
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
    tokio::time::timeout(PATIENCE, gone).await.expect("all expires");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_tasks_of_a_replica_that_is_gone_have_failed() {
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
async fn tasks_go_on_while_redis_is_away_and_end_when_it_is_back() {
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
    // For longer than replicas are trusted to live that say nothing.
    tokio::time::sleep(Duration::from_secs(6)).await;
    harness.0.servers[0].restart().await;
    let answered = async {
        loop {
            let answers = [("q".to_owned(), json!("answer"))].into();
            if other.answer(&owner(), &view.id, answers).await.is_ok() {
                return;
            }
            // Polled as a client would that might take it for dead.
            let _ = other.get(&owner(), &view.id).await;
        }
    };
    tokio::time::timeout(PATIENCE, answered).await.expect("it is answered");
    let answer = tokio::time::timeout(PATIENCE, asked).await.expect("it is told");
    assert_eq!(answer.expect("it comes"), json!("answer"));
    harness.0.servers[0].kill();
    let finishing = tokio::spawn(async move { run.finish(TaskEnd::Completed(json!(2))).await });
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(!finishing.is_finished(), "it is tried on");
    harness.0.servers[0].restart().await;
    assert_eq!(until_ended(&other, &view.id).await, TaskEnd::Completed(json!(2)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_redis_has_lost_is_stopped() {
    let mut harness = OnRedis::new().await;
    let tasks = harness.instance(0, TaskLimits::default()).await;
    let (_, run) = tasks.create(&owner()).await.expect("it begins");
    harness.0.servers[0].restart().await;
    let stopped = tokio::time::timeout(PATIENCE, run.cancelled().cancelled()).await;
    stopped.expect("nobody can ever ask for it");
}
