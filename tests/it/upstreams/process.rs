//! The processes of upstreams: their environment and their end.

use std::time::Duration;

use larder::upstream::Settings;
use serde_json::{Value, json};

use super::{
    FOLDER, command_line, exists, for_ana_and_bob, gateway, in_front_of, lines, odd, text,
};
use crate::support::{Legacy, Modern, Server, eventually, process::serving_in};

#[tokio::test]
async fn a_child_inherits_nothing_but_what_it_needs() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("larder.toml");
    let upstream = format!(
        "[[upstreams]]\nname = \"odd\"\ncommand = [\"node\", \"{FOLDER}/odd.mjs\"]\n\
        env = {{ Token = \"key ${{GIVEN}}\" }}\n"
    );
    std::fs::write(&config, upstream).unwrap();
    let environment = [
        ("GIVEN", "given"),
        ("AWS_SECRET_ACCESS_KEY", "hush"),
        ("LARDER_TOOLS__WRITE", "false"),
        ("LARDER_TOKEN", "hush"),
    ];
    let (process, url) = serving_in(&["--config", config.to_str().unwrap()], &environment).await;
    let result = Legacy::at_url(&url).await.call("env", json!({})).await.result();
    let seen: Value = serde_json::from_str(text(&result)).unwrap();
    let seen = seen.as_object().unwrap();
    assert_eq!(seen["Token"], "key given");
    let allowed = ["PATH", "HOME", "LANG", "TMPDIR", "Token"];
    assert!(seen.keys().all(|name| allowed.contains(&&**name)), "{:?}", seen.keys());
    drop(process);
}

#[tokio::test]
async fn nothing_is_left_of_a_stopped_upstream() {
    let folder = tempfile::tempdir().unwrap();
    let pids = folder.path().join("pids");
    let flag = format!("--pid={}", pids.display());
    // As npx does: a shell that starts the server.
    let odd = odd("odd", &[&flag, "--stubborn=1"]);
    let line = format!("{}; true", command_line(&odd).join(" "));
    let nested = Settings::new("nested", vec!["sh".to_owned(), "-c".into(), line]);
    let server = in_front_of(vec![odd, nested]).await;
    let client = Legacy::of(&server).await;
    for tool in ["odd__echo", "nested__echo"] {
        assert_eq!(text(&client.call(tool, json!({})).await.result()), "{}");
    }
    let started = lines(&pids);
    assert_eq!(started.len(), 2, "{started:?}");
    server.stop().finished().await;
    eventually("the end of all", async || !started.iter().any(|pid| exists(pid))).await;
}

/// The processes that were started and still run.
fn running(pids: &std::path::Path) -> Vec<String> {
    lines(pids).into_iter().filter(|pid| exists(pid)).collect()
}

#[tokio::test]
async fn a_process_ends_with_its_session_and_without_one_when_nobody_uses_it() {
    let folder = tempfile::tempdir().unwrap();
    let pids = folder.path().join("pids");
    let flags = [format!("--pid={}", pids.display()), "--discover=modern".into()];
    let mut settings = odd("odd", &[&flags[0], &flags[1]]);
    settings.idle = Some(Duration::from_secs(3600));
    let server = in_front_of(vec![settings.clone()]).await;
    let (one, other) = (Legacy::of(&server).await, Legacy::of(&server).await);
    for client in [&one, &other, &one] {
        assert_eq!(text(&client.call("echo", json!({})).await.result()), "{}");
    }
    assert_eq!(running(&pids).len(), 2);
    one.delete().await;
    eventually("the end of one", async || running(&pids).len() == 1).await;
    assert_eq!(text(&other.call("echo", json!({})).await.result()), "{}");
    drop(server);
    eventually("the end of both", async || running(&pids).is_empty()).await;

    settings.idle = Some(Duration::from_secs(1));
    let server = in_front_of(vec![settings]).await;
    let clients = [json!({}), json!({ "roots": {} })];
    let clients = clients.map(|capabilities| Modern::at(&server.url).with(capabilities));
    for client in &clients {
        assert_eq!(text(&client.call("echo", json!({})).await.result()), "{}");
    }
    eventually("the end of idle ones", async || running(&pids).is_empty()).await;
    assert_eq!(text(&clients[0].call("echo", json!({})).await.result()), "{}");
}

#[tokio::test]
async fn fifty_abandoned_sessions_leave_no_process() {
    let folder = tempfile::tempdir().unwrap();
    let pids = folder.path().join("pids");
    let pid = format!("--pid={}", pids.display());
    let mut settings = odd("odd", &[&pid, "--discover=modern"]);
    settings.idle = Some(Duration::from_secs(1));
    let registry = gateway(vec![settings]);
    let server = Server::configured(|setup| {
        setup.config.sessions.idle = 60;
        setup.offers = Box::new(|_, _| registry);
    })
    .await;
    for _ in 0..50 {
        let abandoned = Legacy::of(&server).await;
        assert_eq!(text(&abandoned.call("echo", json!({})).await.result()), "{}");
    }
    assert_eq!(lines(&pids).len(), 50);
    server.clock.advance(Duration::from_secs(61));
    eventually("the end of all", async || running(&pids).is_empty()).await;
}

#[tokio::test]
async fn processes_have_a_limit() {
    let folder = tempfile::tempdir().unwrap();
    let pids = folder.path().join("pids");
    let flags = [format!("--pid={}", pids.display()), "--discover=modern".into()];
    let mut settings = odd("odd", &[&flags[0], &flags[1]]);
    settings.max_processes = 2;
    settings.start_timeout = Duration::from_secs(10);
    let server = in_front_of(vec![settings]).await;
    for _ in 0..5 {
        let client = Legacy::of(&server).await;
        assert_eq!(text(&client.call("echo", json!({})).await.result()), "{}");
    }
    eventually("the end of the others", async || running(&pids).len() == 2).await;
    // Those in use do not end for another.
    let clients = [Legacy::of(&server).await, Legacy::of(&server).await];
    let waiting =
        clients.map(|client| tokio::spawn(async move { client.call("mute", json!({})).await }));
    let third = Legacy::of(&server).await;
    let expected = "odd cannot be used: all of its 2 processes are in use (upstreams.max_processes). Try again shortly.";
    eventually("the refusal", async || {
        text(&third.call("echo", json!({})).await.result()) == expected
    })
    .await;
    waiting.iter().for_each(tokio::task::JoinHandle::abort);
}

#[tokio::test]
async fn one_caller_leaves_processes_to_the_others() {
    let mut settings = odd("odd", &["--discover=modern"]);
    settings.max_processes = 4;
    settings.start_timeout = Duration::from_secs(10);
    let server = for_ana_and_bob(vec![settings]).await;
    let mut waiting = Vec::new();
    for _ in 0..3 {
        let ana = Legacy::bearing(&server, "ana").await;
        waiting.push(tokio::spawn(async move { ana.call("mute", json!({})).await }));
    }
    let fourth = Legacy::bearing(&server, "ana").await;
    let expected = "odd cannot be used: your calls use 3 of its 4 processes, which is your share (upstreams.max_processes). Try again shortly.";
    eventually("the refusal", async || {
        text(&fourth.call("echo", json!({})).await.result()) == expected
    })
    .await;
    let bob = Legacy::bearing(&server, "bob").await;
    assert_eq!(text(&bob.call("echo", json!({})).await.result()), "{}");
    waiting.iter().for_each(tokio::task::JoinHandle::abort);
}
