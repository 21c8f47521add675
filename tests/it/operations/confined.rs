//! Queries under filters of system calls: that of the systemd unit, and those of systems that
//! cannot confine a process.

use std::{collections::BTreeMap, path::Path, thread};

use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, apply_filter};
use serde_json::json;
use tokio::runtime;

use super::metrics::Measured;
use crate::support::{
    Modern, eventually,
    process::{larder, run},
};

const UNIT: &str = include_str!("../../../deploy/systemd/larder.service");
const CONFIG: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/systemd/larder.toml");
/// Of another architecture there is no list.
#[cfg(target_arch = "x86_64")]
const SYSTEM_SERVICE: &str = include_str!("system-service-252.txt");

/// Runs a test on a thread with a filter of system calls, which the processes inherit that it
/// starts.
fn under(filter: SeccompFilter, test: impl AsyncFnOnce() + Send + 'static) {
    let tested = thread::spawn(move || {
        let program: BpfProgram = filter.try_into().unwrap();
        apply_filter(&program).unwrap();
        let runtime = runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(test());
    });
    if let Err(panic) = tested.join() {
        std::panic::resume_unwind(panic);
    }
}

fn filter(calls: &[i64], of_others: SeccompAction, of_calls: SeccompAction) -> SeccompFilter {
    let rules: BTreeMap<_, _> = calls.iter().map(|call| (*call, Vec::new())).collect();
    let arch = std::env::consts::ARCH.try_into().unwrap();
    SeccompFilter::new(rules, of_others, of_calls, arch).unwrap()
}

/// A system without these calls.
fn without(calls: &[i64]) -> SeccompFilter {
    let refused = SeccompAction::Errno(libc::ENOSYS.unsigned_abs());
    filter(calls, SeccompAction::Allow, refused)
}

/// The values of a directive of the unit, from all its lines.
fn directive(name: &str) -> Vec<&'static str> {
    let values = UNIT.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    values.flat_map(str::split_whitespace).collect()
}

/// The filter that systemd 252 makes of the unit.
#[cfg(target_arch = "x86_64")]
fn filter_of_unit() -> SeccompFilter {
    let numbers: BTreeMap<&str, i64> = SYSTEM_SERVICE
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| line.split_once(' ').unwrap())
        .map(|(name, number)| (name, number.parse().unwrap()))
        .collect();
    let named = |name: &str| match name {
        "landlock_create_ruleset" => libc::SYS_landlock_create_ruleset,
        "landlock_add_rule" => libc::SYS_landlock_add_rule,
        "landlock_restrict_self" => libc::SYS_landlock_restrict_self,
        "seccomp" => libc::SYS_seccomp,
        name => numbers[name],
    };

    let mut allowed = Vec::new();
    for value in directive("SystemCallFilter") {
        match value {
            "@system-service" => allowed.extend(numbers.values()),
            name => allowed.push(named(name)),
        }
    }
    let of_others = match directive("SystemCallErrorNumber")[..] {
        ["EPERM"] => SeccompAction::Errno(libc::EPERM.unsigned_abs()),
        [] => SeccompAction::KillProcess,
        ref other => panic!("{other:?}"),
    };
    filter(&allowed, of_others, SeccompAction::Allow)
}

/// A server that runs one query; the answer and the confinement that it measures.
async fn query_once(environment: &[(&str, &str)]) -> (Result<serde_json::Value, String>, [u64; 2]) {
    let mut command = larder(&["serve"]);
    command.envs(environment.iter().copied());
    let server = Measured::start(command).await;
    let client = Modern::at(&server.process.url);
    client.create(json!({ "uri": "x:1", "text": "a\n1\n2\n", "mime_type": "text/csv" })).await;

    let query = json!({ "from": "x:1", "sql": "SELECT sum(a) FROM t" });
    let answer = client.call("query_resource", query).await;
    let result = answer.result();
    let answer = if result["isError"] == true {
        Err(answer.failure())
    } else {
        Ok(result["structuredContent"]["rows"].clone())
    };

    let metrics = server.metrics.scrape().await;
    let holds = |barrier: &str| {
        let label = format!("barrier=\"{barrier}\"");
        metrics.sum("larder_query_confinement", &[&label])
    };
    (answer, [holds("landlock"), holds("seccomp")])
}

#[cfg(target_arch = "x86_64")]
#[test]
fn a_query_runs_confined_under_the_filter_of_the_systemd_unit() {
    under(filter_of_unit(), async || {
        let (answer, confinement) = query_once(&[]).await;
        assert_eq!(answer, Ok(json!([[3]])));
        assert_eq!(confinement, [1, 1]);
    });
}

#[tokio::test]
async fn the_unit_keeps_content_in_its_state_directory() {
    let [directory] = directive("StateDirectory")[..] else { panic!("one state directory") };
    let shown = run(larder(&["config", "show", "--config", CONFIG])).await;
    let url = format!("url = \"file:///var/lib/{directory}\"");
    assert!(shown.stdout.contains(&url), "{shown:?}");

    let guide = include_str!("../../../docs/deployment.md");
    let path = Path::new(CONFIG).file_name().unwrap().to_str().unwrap();
    assert!(guide.contains(&format!("deploy/systemd/{path} /etc/larder/larder.toml")));
}

#[test]
fn queries_are_refused_where_the_system_cannot_confine_them() {
    for (call, missing, holds) in [
        (libc::SYS_landlock_create_ruleset, "Landlock", [0, 1]),
        (libc::SYS_seccomp, "seccomp", [1, 0]),
    ] {
        under(without(&[call]), async move || {
            let (answer, confinement) = query_once(&[]).await;
            let refused = answer.unwrap_err();
            let says = format!("cannot confine them by {missing} (query.confinement)");
            assert!(refused.contains(&says), "{refused}");
            assert_eq!(confinement, holds);

            let accepted = [("LARDER_QUERY__CONFINEMENT", "best_effort")];
            let (answer, confinement) = query_once(&accepted).await;
            assert_eq!(answer, Ok(json!([[3]])));
            assert_eq!(confinement, holds);
        });
    }
}

#[test]
fn the_start_says_which_barriers_are_missing() {
    under(without(&[libc::SYS_landlock_create_ruleset]), async || {
        for (policy, says) in [
            (
                "required",
                "queries are refused: this system cannot confine query workers by Landlock",
            ),
            ("best_effort", "query workers are not confined by Landlock (query.confinement"),
        ] {
            let mut command = larder(&["serve"]);
            command.env("LARDER_QUERY__CONFINEMENT", policy);
            let mut server = Measured::start(command).await;
            server.process.logs(says).await;
        }
    });
}

#[tokio::test]
async fn the_start_says_that_queries_are_confined() {
    let mut command = larder(&["serve"]);
    command.env("LARDER_LOG__LEVEL", "info");
    let server = Measured::start(command).await;

    // The line may come before those that the start waits for.
    let said = "query workers are confined by Landlock and seccomp";
    eventually(said, async || server.process.stderr().contains(said)).await;
}
