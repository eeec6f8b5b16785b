//! Tests programs that the attribute must reject, with the pinned compiler's exact output, and
//! programs that must compile and run with it.

#[test]
fn compile_errors_match_word_for_word() {
    trybuild::TestCases::new().compile_fail("tests/ui/fail/*/*.rs");
}

#[test]
fn valid_programs_compile_and_run() {
    trybuild::TestCases::new().pass("tests/ui/pass/*.rs");
}
