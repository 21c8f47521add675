//! `larder admin sessions`: an operator counts the sessions of owners, and ends those of one.

use std::fmt::Write;

use serde_json::json;

use crate::support::{
    Legacy, RedisServer,
    process::{Finished, larder, run, serving},
    sha256,
};

/// Runs `larder admin sessions` on a Redis.
async fn sessions(redis: &RedisServer, arguments: &[&str]) -> Finished {
    let url = redis.url();
    run(larder(&[&["admin", "sessions", "--store", &url], arguments].concat())).await
}

/// The same, which succeeds; what it prints.
async fn said(redis: &RedisServer, arguments: &[&str]) -> String {
    let finished = sessions(redis, arguments).await;
    assert_eq!(finished.code, Some(0), "{finished:?}");
    finished.stdout
}

#[tokio::test]
async fn an_operator_counts_sessions_and_ends_those_of_one_owner() {
    let redis = RedisServer::start().await;
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("larder.toml");
    let mut settings = "[auth]\nmode = \"static\"\n".to_owned();
    for name in ["alice", "bob"] {
        let hash = sha256(&format!("token-of-{name}"));
        writeln!(settings, "[[auth.tokens]]\nname = {name:?}\nsha256 = {hash:?}").unwrap();
    }
    std::fs::write(&config, settings).unwrap();
    let url = redis.url();
    let arguments = ["--store", &url, "--migrate", "--config", config.to_str().unwrap()];
    let (_a, a) = serving(&arguments).await;
    let (_b, b) = serving(&arguments).await;
    let alice = [
        Legacy::bearing_at(&a, "token-of-alice").await,
        Legacy::bearing_at(&b, "token-of-alice").await,
    ];
    let bob = Legacy::bearing_at(&a, "token-of-bob").await;
    let mut stream = alice[0].listen().await;
    assert_eq!(stream.next().await.unwrap().data, "", "a priming event");

    let list = said(&redis, &[]).await;
    let mut counts: Vec<_> = list.lines().filter_map(|line| line.split_once('\t')).collect();
    counts.sort_by_key(|(_, count)| *count);
    let [(bobs, "1"), (alices, "2")] = counts[..] else { panic!("{list}") };
    assert_eq!(said(&redis, &["--static", "alice"]).await, format!("{alices}: 2 sessions\n"));

    // Nobody answers, and nothing is ended.
    let asked = sessions(&redis, &[alices, "--end"]).await;
    assert_eq!(asked.code, Some(1), "{asked:?}");
    assert!(asked.stderr.contains("No session was ended") && asked.stderr.contains("[y/N]"));
    assert_eq!(alice[1].send("ping", json!({})).await.result(), json!({}));

    let ended = sessions(&redis, &["--static", "alice", "--end", "--yes"]).await;
    assert_eq!(ended.stdout, format!("Ended 2 sessions of {alices}.\n"), "{ended:?}");
    assert!(ended.stderr.contains("audit") && ended.stderr.contains("end sessions"), "{ended:?}");
    // Running servers know of it at once, on every instance.
    stream.end().await;
    for (session, url) in [(&alice[0], &b), (&alice[1], &a)] {
        assert_eq!(session.send("ping", json!({})).await.status, 404);
        assert_eq!(session.at(url).send("ping", json!({})).await.status, 404);
    }
    assert_eq!(bob.at(&b).send("ping", json!({})).await.result(), json!({}));
    assert_eq!(said(&redis, &[]).await, format!("{bobs}\t1\n"));
    let again = said(&redis, &[alices, "--end", "--yes"]).await;
    assert_eq!(again, format!("Ended 0 sessions of {alices}.\n"));
}

#[tokio::test]
async fn sessions_that_no_command_can_reach_are_refused() {
    let redis = RedisServer::start().await;
    let nobody = sessions(&redis, &["--end"]).await;
    assert_eq!(nobody.code, Some(2), "{nobody:?}");
    assert!(nobody.stderr.contains("Give the owner"), "{nobody:?}");
    let memory = run(larder(&["admin", "sessions"])).await;
    assert_eq!(memory.code, Some(2), "{memory:?}");
    assert!(memory.stderr.contains("sessions.url"), "{memory:?}");
    // Sessions may be in another Redis than resources.
    let mut command = larder(&["admin", "sessions"]);
    command.env("LARDER_SESSIONS__URL", redis.url());
    let elsewhere = run(command).await;
    assert_eq!((elsewhere.code, elsewhere.stdout.as_str()), (Some(0), ""), "{elsewhere:?}");
}
