//! The README's transcript, run as it stands there.

use tokio::process::Command;

use crate::{process::serving, support::patiently};

/// The commands of the README's console blocks, each with what it says.
fn transcript() -> Vec<(String, String)> {
    let readme = include_str!("../../README.md");
    let mut steps: Vec<(String, String)> = Vec::new();
    for block in readme.split("```console\n").skip(1) {
        for line in block.split("```").next().unwrap().lines() {
            match line.strip_prefix("$ ") {
                Some(command) => steps.push((command.to_owned(), String::new())),
                None => steps.last_mut().unwrap().1.push_str(line),
            }
        }
    }
    steps
}

/// Whether `said` is `expected`, where … stands for anything.
fn agrees(expected: &str, said: &str) -> bool {
    let Some((first, rest)) = expected.split_once('…') else { return expected == said };
    let Some(said) = said.strip_prefix(first) else { return false };
    (0..=said.len()).filter(|at| said.is_char_boundary(*at)).any(|at| agrees(rest, &said[at..]))
}

#[tokio::test]
async fn the_transcript_is_true() {
    let (_child, url) = serving(&[]).await;
    let address = url.trim_start_matches("http://").trim_end_matches("/mcp");
    let steps = transcript();
    assert!(steps.len() >= 5, "the transcript is found");
    for (command, expected) in steps {
        let here = command.replace("localhost:8000", address);
        let output = Command::new("bash").args(["-c", &here]).output();
        let output = patiently(&command, output).await.unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(agrees(&expected, said.trim_end()), "{command}\n says {said}\nnot {expected}");
    }
}

#[test]
fn dots_stand_for_anything_and_nothing_else_does() {
    assert!(agrees("a … c", "a b c") && agrees("abc", "abc") && agrees("a…", "abc"));
    assert!(!agrees("a … c", "a b d") && !agrees("abc", "abcd") && !agrees("abc", "ab"));
}
