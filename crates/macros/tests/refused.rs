//! The code that the macros refuse, with the message at the culprit.

#[test]
fn faults_are_reported_at_the_code_that_has_them() {
    trybuild::TestCases::new().compile_fail("tests/refused/*.rs");
}
