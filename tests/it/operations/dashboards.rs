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

#[test]
fn each_alert_leads_to_its_section_of_the_runbook() {
    let alerts = include_str!("../../../deploy/prometheus/alerts.yml");
    let runbook = include_str!("../../../docs/runbook.md");
    for rule in alerts.split("- alert: ").skip(1) {
        let name = rule.lines().next().unwrap();
        let link = format!("#{}'", name.to_lowercase());
        let url = rule.lines().find(|line| line.trim().starts_with("runbook_url: "));
        assert!(url.is_some_and(|url| url.ends_with(&link)), "{name}: {url:?}");
        assert!(runbook.contains(&format!("\n## {name}\n")), "{name}");
    }
}

#[test]
fn the_dashboard_is_of_the_chosen_source_and_instances() {
    let dashboard: Value =
        serde_json::from_str(include_str!("../../../deploy/grafana/larder.json")).unwrap();
    let names = dashboard["templating"]["list"].as_array().unwrap().iter();
    assert_eq!(
        names.map(|one| one["name"].as_str().unwrap()).collect::<Vec<_>>(),
        ["datasource", "instance"]
    );
    for panel in dashboard["panels"].as_array().unwrap() {
        assert_eq!(panel["datasource"]["uid"], "${datasource}", "{}", panel["title"]);
        for target in panel["targets"].as_array().unwrap() {
            let expression = target["expr"].as_str().unwrap();
            let chosen = expression.matches("instance=~\"$instance\"").count();
            assert_eq!(chosen, expression.matches('{').count(), "{expression}");
            assert!(chosen >= 1, "{expression}");
        }
    }
}
