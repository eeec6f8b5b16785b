//! What the attribute says to mistakes, word for word in the pinned compiler's output, and programs
//! that must compile and run with it.

#[test]
fn mistakes_get_one_clear_message_each() {
    trybuild::TestCases::new().compile_fail("tests/ui/fail/*/*.rs");
}

#[test]
fn sound_programs_compile_and_run() {
    trybuild::TestCases::new().pass("tests/ui/pass/*.rs");
}
