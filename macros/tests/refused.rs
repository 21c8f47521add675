//! What the macros refuse, with the message at the culprit.

#[test]
fn faults_are_reported_where_they_are() {
    trybuild::TestCases::new().compile_fail("tests/refused/*.rs");
}
