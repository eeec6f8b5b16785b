//! Tests programs that the attribute must reject, with the pinned compiler's exact output.

#[test]
fn compile_errors_match_word_for_word() {
    trybuild::TestCases::new().compile_fail("tests/ui/fail/*/*.rs");
}
