//! The life of a process: its start, its environment, and its end.

use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;

use super::{FOLDER, env, exists, host::Host, in_front_of, lines, listed, odd, text};
use crate::support::{Legacy, Server, eventually};

/// Starts a server in front of the misbehaving one, and returns how often that was started.
async fn started(flags: &[&str]) -> (Server, Legacy, impl Fn() -> usize + use<>) {
    let folder = tempfile::tempdir().unwrap();
    let pids = folder.path().join("pids");
    let flag = format!("--pid={}", pids.display());
    let mut all = vec![flag.as_str()];
    all.extend(flags);
    let mut settings = odd("odd", &all);
    settings.list_timeout = settings.start_timeout;
    let server = in_front_of(vec![settings]).await;
    let client = Legacy::of(&server).await;
    (server, client, move || {
        let _folder = &folder;
        lines(&pids).len()
    })
}

#[tokio::test]
async fn a_process_that_starts_slowly_is_started_once() {
    for flags in [
        &["--slow=3600"][..],
        &["--slow=3600", "--discover=modern", "--modern=1"],
        &["--slow=3600", "--discover=modern"],
        &["--slow=3600", "--discover=silent"],
        &["--discover=silent"],
        &["--discover=refuse"],
        &["--discover=modern"],
    ] {
        let (_server, client, starts) = started(flags).await;
        assert!(listed(&client).await.contains_key("echo"), "{flags:?}");
        assert_eq!(text(&client.call("echo", json!({})).await.result()), "{}", "{flags:?}");
        assert_eq!(starts(), 1, "{flags:?}");
    }
}

#[tokio::test]
async fn a_process_that_the_first_question_has_confused_is_started_again() {
    for flags in [&["--discover=exit"][..], &["--discover=lock"]] {
        let (_server, client, starts) = started(flags).await;
        assert!(listed(&client).await.contains_key("echo"), "{flags:?}");
        assert_eq!(starts(), 2, "{flags:?}");
    }
}

#[tokio::test]
async fn a_process_that_never_answers_is_told_of_after_the_time_for_starts() {
    let mut settings = odd("odd", &["--hang=1"]);
    settings.start_timeout = Duration::from_secs(4);
    let server = in_front_of(vec![settings]).await;
    let refused = Legacy::of(&server).await.call("echo", json!({})).await.result();
    let expected = "odd could not be started (no answer within 4 s, upstreams.start_timeout). ";
    assert!(text(&refused).starts_with(expected), "{refused}");
}

#[tokio::test]
async fn a_process_has_its_time_to_end_over_stdio() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    let settings = odd("odd", &[&format!("--flushes={}", file.display())]);
    let mut host = Host::start(&settings, json!({}), &[]).await;
    assert_eq!(host.call("echo", json!({})).await, "{}");
    host.end().await;
    assert_eq!(lines(&file), ["flushed"]);
}

#[tokio::test]
async fn a_process_that_does_not_end_is_killed_over_stdio() {
    let folder = tempfile::tempdir().unwrap();
    let pids = folder.path().join("pids");
    let settings = odd("odd", &[&format!("--pid={}", pids.display()), "--stubborn=1"]);
    let mut host = Host::start(&settings, json!({}), &[]).await;
    assert_eq!(host.call("echo", json!({})).await, "{}");
    let begun = Instant::now();
    host.end().await;
    assert!(begun.elapsed() >= Duration::from_secs(6), "{:?}", begun.elapsed());
    let pids = lines(&pids);
    assert!(!pids.is_empty() && !pids.iter().any(|pid| exists(pid)), "{pids:?}");
}

#[tokio::test]
async fn a_process_of_an_ended_session_has_its_time_to_end() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    let server = in_front_of(vec![odd("odd", &[&format!("--flushes={}", file.display())])]).await;
    let client = Legacy::of(&server).await;
    assert_eq!(text(&client.call("echo", json!({})).await.result()), "{}");
    client.delete().await;
    server.stop().finished().await;
    assert_eq!(lines(&file), ["flushed"]);
}

#[tokio::test]
async fn over_stdio_a_program_has_the_environment_of_the_host() {
    let environment = [
        ("USER", "ada"),
        ("SSH_AUTH_SOCK", "/tmp/agent"),
        ("HTTPS_PROXY", "http://proxy:3128"),
        ("NODE_EXTRA_CA_CERTS", "/nowhere"),
        ("KUBECONFIG", "/k"),
        ("AWS_PROFILE", "mine"),
        ("EMPTY", ""),
        ("LARDER_TOKEN", "hush"),
        ("LARDER_LIMITS__BODY_BYTES", "5000000"),
    ];
    let settings = odd("odd", &["--tools=living"]);
    let mut host = Host::start(&settings, json!({}), &environment).await;
    let seen: serde_json::Value = serde_json::from_str(&host.call("env", json!({})).await).unwrap();
    for (name, value) in environment {
        let expected = (!name.starts_with("LARDER_")).then_some(value);
        assert_eq!(seen[name].as_str(), expected, "{name}");
    }
    assert!(seen.as_object().unwrap().keys().all(|name| !name.starts_with("LARDER_")));
    host.end().await;
}

#[tokio::test]
async fn over_stdio_a_program_has_no_secret_of_another_server() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("larder.toml");
    let upstreams = format!(
        r#"
        [[upstreams]]
        name = "odd"
        command = ["node", "{FOLDER}/odd.mjs", "--tools=living"]
        env = {{ MINE = "${{GIVEN}}", WHO = "${{USER}}" }}

        [[upstreams]]
        name = "far"
        url = "http://127.0.0.1:1/mcp"
        headers = {{ authorization = "Bearer ${{FAR_TOKEN}}" }}
        "#
    );
    std::fs::write(&config, upstreams).unwrap();
    let environment =
        [("GIVEN", "given"), ("FAR_TOKEN", "hush"), ("USER", "ada"), ("OTHER", "other")];
    let arguments = ["serve", "--stdio", "--config", config.to_str().unwrap()];
    let mut host = Host::run(&arguments, json!({}), &environment).await;
    let seen: serde_json::Value =
        serde_json::from_str(&host.call("odd__env", json!({})).await).unwrap();
    for (name, value) in [
        ("MINE", Some("given")),
        ("GIVEN", None),
        ("FAR_TOKEN", None),
        ("WHO", Some("ada")),
        ("USER", Some("ada")),
        ("OTHER", Some("other")),
    ] {
        assert_eq!(seen[name].as_str(), value, "{name}");
    }
    host.end().await;
}

/// The blocks of a result, as texts.
fn texts(result: &serde_json::Value) -> Vec<&str> {
    let blocks = result["content"].as_array().unwrap();
    blocks.iter().map(|block| block["text"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_caller_is_told_once_that_the_process_is_another_one() {
    let folder = tempfile::tempdir().unwrap();
    let pids = folder.path().join("pids");
    let pid = format!("--pid={}", pids.display());
    let mut settings = odd("odd", &[&pid, "--tools=living", "--discover=modern"]);
    settings.idle = Some(Duration::from_millis(300));
    let server = in_front_of(vec![settings]).await;
    let client = crate::support::Modern::at(&server.url);
    let count = async || client.call("count", json!({})).await.result();
    assert_eq!(texts(&count().await), ["101"]);
    eventually("the end of the idle process", async || !exists(&lines(&pids)[0])).await;
    let after = count().await;
    let note = "[odd was started anew since your last call, because nobody had used it for 0.3 s (upstreams.idle). What it had kept in memory is gone.]";
    assert_eq!(texts(&after), ["101", note]);

    client.call("die_later", json!({})).await.result();
    let mut died = serde_json::Value::Null;
    eventually("another process", async || {
        died = count().await;
        texts(&died).len() == 2
    })
    .await;
    let note = "[odd was started anew since your last call, because it had ended (signal 9). What it had kept in memory is gone.]";
    assert_eq!(texts(&died), ["101", note]);
}

#[tokio::test]
async fn a_process_of_a_session_stays_until_the_session_expires() {
    let folder = tempfile::tempdir().unwrap();
    let pids = folder.path().join("pids");
    let mut settings = odd("odd", &[&format!("--pid={}", pids.display()), "--tools=living"]);
    settings.idle = Some(Duration::from_millis(50));
    let registry = super::gateway(vec![settings]);
    let server = Server::configured(|setup| {
        setup.config.sessions.idle = 600;
        setup.offers = Box::new(|_, _| registry);
    })
    .await;
    let [kept, abandoned] = [Legacy::of(&server).await, Legacy::of(&server).await];
    for client in [&kept, &abandoned] {
        assert_eq!(texts(&client.call("count", json!({})).await.result()), ["101"]);
    }
    for minutes in 1..=5 {
        server.clock.advance(Duration::from_secs(60 * 5));
        let counted = kept.call("count", json!({})).await.result();
        assert_eq!(texts(&counted), [format!("{}", 101 * (minutes + 1))]);
    }
    let running = || lines(&pids).into_iter().filter(|pid| exists(pid)).count();
    eventually("the end of the abandoned one", async || running() == 1).await;
    server.clock.advance(Duration::from_secs(60 * 11));
    eventually("the end of both", async || running() == 0).await;
}

#[tokio::test]
async fn a_process_that_another_session_needs_is_told_of() {
    let mut settings = odd("odd", &["--tools=living"]);
    settings.max_processes = 1;
    env(&mut settings).insert("A".into(), "1".into());
    let server = in_front_of(vec![settings]).await;
    let [one, other] = [Legacy::of(&server).await, Legacy::of(&server).await];
    for client in [&one, &other] {
        assert_eq!(texts(&client.call("count", json!({})).await.result()), ["101"]);
    }
    let again = one.call("count", json!({})).await.result();
    let note = "[odd was started anew since your last call, because its process was needed for other calls (upstreams.max_processes). What it had kept in memory is gone.]";
    assert_eq!(texts(&again), ["101", note]);
}
