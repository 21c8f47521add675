//! `tests/run`, which runs these tests: a test that fails runs again by itself.

use std::{env, fs, os::unix::fs::PermissionsExt, path::Path, process::Command};

/// A program with three tests: the second one fails when it runs first, the third one as `$BROKEN` says.
const PROGRAM: &str = r#"#!/bin/bash
if [[ " $* " = *" --list "* ]]; then printf '%s: test\n' steady shaky broken; exit; fi
names=(steady shaky broken)
if [ "$1" = --exact ]; then shift; names=("$@"); fi
for name in "${names[@]}"; do
    result=ok
    if [ "$name" = shaky ] && ! [ -e "$0.ran" ]; then touch "$0.ran"; result=FAILED; fi
    if [ "$name" = broken ] && [ "$BROKEN" = fails ]; then result=FAILED; fi
    if [ "$name" = broken ] && [ "$BROKEN" = aborts ]; then exit 134; fi
    echo "test $name ... $result"
    [ $result = ok ] || code=101
done
exit ${code:-0}
"#;

/// Runs the runner over that program. Returns whether it succeeds, what it prints, and its list of flaky tests.
fn run(broken: &str) -> (bool, String, String) {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("program");
    let artifact = serde_json::json!({
        "reason": "compiler-artifact",
        "executable": program,
        "profile": { "test": true },
        "manifest_path": folder.path().join("Cargo.toml"),
        "target": { "name": "it" },
    });
    let cargo =
        format!("#!/bin/bash\n[[ \" $* \" = *\" --no-run \"* ]] && echo '{artifact}'\nexit 0\n");
    write_program(&program, PROGRAM);
    write_program(&folder.path().join("cargo"), &cargo);

    let path = format!("{}:{}", folder.path().display(), env::var("PATH").unwrap());
    let output = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/run"))
        .env("PATH", path)
        .env("CARGO_TARGET_DIR", folder.path())
        .env("BROKEN", broken)
        .output()
        .unwrap();

    let flaky = fs::read_to_string(folder.path().join("tests/flaky.txt")).unwrap_or_default();
    (output.status.success(), String::from_utf8(output.stdout).unwrap(), flaky)
}

fn write_program(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn a_test_that_passes_when_run_again_is_listed_as_flaky() {
    let (passed, printed, flaky) = run("passes");

    assert!(passed, "{printed}");
    assert!(printed.contains("\nflaky (failed, and passed when run again):\n"), "{printed}");
    assert!(printed.ends_with("\n3 passed, 0 failed\n"), "{printed}");
    assert!(flaky.ends_with("/it: shaky\n"), "{flaky}");
}

#[test]
fn a_test_that_fails_three_times_fails_the_run() {
    let (passed, printed, flaky) = run("fails");

    assert!(!passed, "{printed}");
    assert_eq!(printed.matches("test broken ... FAILED").count(), 3, "{printed}");
    assert!(printed.contains("/it: broken\n"), "{printed}");
    assert!(printed.ends_with("\n2 passed, 1 failed\n"), "{printed}");
    assert!(!flaky.contains("broken"), "{flaky}");
}

#[test]
fn a_program_that_aborts_fails_only_the_tests_that_do_not_pass_by_themselves() {
    let (passed, printed, flaky) = run("aborts");

    assert!(!passed, "{printed}");
    assert!(flaky.contains("/it: shaky\n"), "{flaky}");
    assert!(printed.contains("FAILED 3 times: "), "{printed}");
    assert!(printed.ends_with("\n2 passed, 1 failed\n"), "{printed}");
}
