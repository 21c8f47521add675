//! Agents get their answers, and look at little for them.

use std::process::Stdio;

use tokio::process::Command;

use super::program;
use crate::support::patiently;

#[tokio::test]
async fn agents_find_their_answers() {
    let mut command = Command::new(program("eval"));
    command.arg("5000").stdin(Stdio::null()).kill_on_drop(true);
    let output = patiently("the evaluation", command.output()).await.unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{printed}{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(printed.matches(" right ").count(), 4, "{printed}");
    assert!(printed.ends_with("all within budget\n"), "{printed}");
}
