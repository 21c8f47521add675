//! The sessions in docs/querying.md and docs/small-answers.md, run as they are printed there, on a
//! file of an installed npm package.

use std::{
    env,
    path::{Path, PathBuf},
};

use tokio::process::Command;

use crate::support::{
    patiently,
    process::{Process, larder, serving},
};

/// The commands of the page's console blocks, each with its output.
fn session(page: &str) -> Vec<(String, String)> {
    let blocks = page.split("```console\n").skip(1).map(|block| block.split("```").next().unwrap());
    let commands = blocks.flat_map(|block| block.split("$ ").skip(1));
    let step = |command: &str| {
        // A command goes on to its closing quote.
        let ends = command.match_indices('\n').map(|(at, _)| at);
        let end =
            ends.into_iter().find(|at| command[..*at].matches('\'').count().is_multiple_of(2));
        let (command, output) = command.split_at(end.unwrap() + 1);
        (command.to_owned(), output.trim_end_matches('\n').to_owned())
    };
    commands.map(step).collect()
}

#[tokio::test]
async fn the_session_in_the_guide_is_true() {
    let (_larder, url) = serving(&[]).await;
    check(session(include_str!("../../../docs/querying.md")), &url).await;
}

#[tokio::test]
async fn the_answers_in_the_guide_are_those_of_the_filesystem_server() {
    let page = include_str!("../../../docs/small-answers.md");
    let (_, rest) = page.split_once("\nlarder serve -- ").unwrap();
    let command: Vec<_> = rest.lines().next().unwrap().split(' ').collect();

    let mut serve = larder(&[&["serve", "--"], command.as_slice()].concat());
    serve.current_dir(packages());
    let larder = Process::start(serve).await;
    check(session(page), &larder.url).await;
}

/// The folder with the packages.
fn packages() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/upstreams")
}

/// Runs the commands and compares what they print.
async fn check(steps: Vec<(String, String)>, url: &str) {
    let programs = Path::new(env!("CARGO_BIN_EXE_larder")).parent().unwrap();
    let path = format!("{}:{}", programs.display(), env::var("PATH").unwrap());
    assert!(steps.len() >= 6, "the session is found");
    for (command, expected) in steps {
        let mut bash = Command::new("bash");
        bash.args(["-c", &command]).current_dir(packages());
        bash.env("PATH", &path).env("LARDER_URL", url);
        let output = patiently(&command, bash.output()).await.unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        let printed = String::from_utf8(output.stdout).unwrap();
        assert_eq!(printed.trim_end_matches('\n'), expected, "{command}{errors}");
    }
}
