//! The evaluation: simulated agents find their answers within a small budget of bytes.

use crate::support::process::{example, run};

#[tokio::test]
async fn agents_find_their_answers() {
    let mut command = example("eval");
    command.arg("5000");
    let evaluation = run(command).await;
    assert_eq!(evaluation.code, Some(0), "{evaluation:?}");
    let printed = evaluation.stdout;
    assert_eq!(printed.matches(" right ").count(), 4, "{printed}");
    assert!(printed.ends_with("all within budget\n"), "{printed}");
}
