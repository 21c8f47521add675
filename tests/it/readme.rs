//! The README's transcript, run as it is printed there.

use std::{env, path::Path};

use tokio::process::Command;

use crate::{process::serving, support::patiently};

/// The commands of the README's console blocks, each with its output.
fn transcript() -> Vec<(String, String)> {
    let readme = include_str!("../../README.md");
    let mut steps: Vec<(String, String)> = Vec::new();
    for block in readme.split("```console\n").skip(1) {
        let mut lines = block.split("```").next().unwrap().lines();
        while let Some(line) = lines.next() {
            let Some(command) = line.strip_prefix("$ ") else {
                steps.last_mut().unwrap().1 += &format!("{line}\n");
                continue;
            };
            let mut command = command.to_owned();
            // Up to the closing quote.
            while command.matches('\'').count() % 2 == 1 {
                command += &format!("\n{}", lines.next().unwrap());
            }
            steps.push((command, String::new()));
        }
    }
    steps
}

/// Text without its line breaks: the README wraps long lines.
fn unwrapped(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether `actual` is `expected`, where … matches any text.
fn agrees(expected: &str, actual: &str) -> bool {
    let Some((first, rest)) = expected.split_once('…') else { return expected == actual };
    let Some(actual) = actual.strip_prefix(first) else { return false };
    (0..=actual.len())
        .filter(|at| actual.is_char_boundary(*at))
        .any(|at| agrees(rest, &actual[at..]))
}

#[tokio::test]
async fn the_transcript_is_true() {
    let (_child, url) = serving(&[]).await;
    let address = url.trim_start_matches("http://").trim_end_matches("/mcp");
    let directory = tempfile::tempdir().unwrap();
    let binary = Path::new(env!("CARGO_BIN_EXE_larder")).parent().unwrap();
    let path = format!("{}:{}", binary.display(), env::var("PATH").unwrap());
    let steps = transcript();
    assert!(steps.len() >= 5, "the transcript is found");
    for (command, expected) in steps {
        let mut bash = Command::new("bash");
        bash.args(["-c", &command.replace("localhost:8000", address)]);
        bash.current_dir(&directory).env("PATH", &path).env("LARDER_URL", &url);
        let output = patiently(&command, bash.output()).await.unwrap();
        let actual = String::from_utf8(output.stdout).unwrap();
        let agrees = agrees(&unwrapped(&expected), &unwrapped(&actual));
        assert!(agrees, "{command}\nprints\n{actual}\nbut the README has\n{expected}");
    }
}

#[test]
fn an_ellipsis_matches_any_text_and_other_characters_match_themselves() {
    assert!(agrees("a … c", "a b c") && agrees("abc", "abc") && agrees("a…", "abc"));
    assert!(!agrees("a … c", "a b d") && !agrees("abc", "abcd") && !agrees("abc", "ab"));
}
