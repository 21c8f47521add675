//! The dashboard and the alerts under `deploy/`: they use metrics that exist.

use std::collections::BTreeSet;

use larder::telemetry::{Kind, METRICS};
use serde_json::Value;

/// The names of Larder's metrics in an expression.
fn named(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
    let ours = |word: &&str| {
        ["larder_", "mcp_server_", "http_server_"].iter().any(|start| word.starts_with(start))
    };
    words.filter(ours).map(str::to_owned).collect()
}

/// The expressions of the dashboard and the alerts. Each uses a metric of Larder, or
/// `up`, which Prometheus provides.
fn expressions() -> Vec<String> {
    let dashboard: Value =
        serde_json::from_str(include_str!("../../../deploy/grafana/larder.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap().iter();
    let targets = panels.flat_map(|panel| panel["targets"].as_array().unwrap());
    let mut expressions: Vec<_> =
        targets.map(|target| target["expr"].as_str().unwrap().to_owned()).collect();
    let alerts = include_str!("../../../deploy/prometheus/alerts.yml");
    let rules = alerts.lines().filter_map(|line| line.trim().strip_prefix("expr: "));
    let rules: Vec<_> = rules.map(str::to_owned).collect();
    assert_eq!(alerts.matches("- alert:").count(), rules.len());
    assert!(rules.len() >= 5, "{rules:?}");
    expressions.extend(rules);
    for expression in &expressions {
        assert!(!named(expression).is_empty() || expression.starts_with("up{"), "{expression}");
    }
    expressions
}

#[test]
fn gauges_that_instances_share_are_not_added_up() {
    let mut used = BTreeSet::new();
    for expression in expressions() {
        for (kind, name, _) in METRICS {
            if kind == Kind::SharedGauge && named(&expression).contains(name) {
                let once = format!("max by (store) ({name}");
                let uses = expression.matches(name).count();
                assert_eq!(expression.matches(&once).count(), uses, "{expression}");
                used.insert(name);
            }
        }
    }
    let shared = METRICS.iter().filter(|(kind, ..)| *kind == Kind::SharedGauge);
    assert_eq!(used, shared.map(|(_, name, _)| *name).collect());
}

#[test]
fn alerts_and_dashboard_use_only_metrics_that_exist() {
    let known: BTreeSet<String> = METRICS
        .iter()
        .flat_map(|(kind, name, _)| match kind {
            Kind::Histogram => {
                ["_bucket", "_sum", "_count"].map(|end| format!("{name}{end}")).to_vec()
            }
            _ => vec![(*name).to_owned()],
        })
        .collect();
    let mut used = BTreeSet::new();
    for expression in expressions() {
        used.extend(named(&expression));
    }
    let unknown: Vec<_> = used.difference(&known).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
    assert!(used.len() >= 8, "{used:?}");
}
