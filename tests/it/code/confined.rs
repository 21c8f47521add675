//! The process of a run.

use std::fs;

use serde_json::json;

use super::coding;
use crate::{
    support::eventually,
    tools::{query::text_of, query_limits::workers},
};

#[tokio::test]
async fn a_run_has_a_process_of_its_own_as_confined_as_that_of_a_query() {
    let limits = [("LARDER_CODE__SECONDS", "20"), ("TEST_SECRET", "hidden")];
    let service = coding(&limits).await;
    let server = service.process.id();
    eventually("the worker of the start to be gone", async || workers(server).is_empty()).await;

    let running = service.call("run_code", json!({ "code": "while (true);", "seconds": 4 }));
    let checking = async {
        eventually("a confined worker", async || {
            let [(id, false)] = workers(server)[..] else { return false };
            let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
            status.contains("Seccomp:\t2\n")
        })
        .await;

        let [(id, false)] = workers(server)[..] else { panic!("{:?}", workers(server)) };
        let environment = fs::read_to_string(format!("/proc/{id}/environ")).unwrap();
        let mut variables = environment.split_terminator('\0');
        assert!(variables.all(|v| v.starts_with("MIMALLOC_ARENA_RESERVE=")), "{environment:?}");
        // The process that started the server may have left others open, which seccomp forbids.
        for file in 0..3 {
            let file = fs::read_link(format!("/proc/{id}/fd/{file}")).unwrap();
            assert!(file.to_string_lossy().starts_with("pipe:"), "{file:?}");
        }
    };

    let (result, ()) = tokio::join!(running, checking);
    let said = text_of(&result);
    assert_eq!(said, "Stopped after 4 s (the argument seconds).\nNo tool was called.");
    eventually("the worker to be gone", async || workers(server).is_empty()).await;
}
