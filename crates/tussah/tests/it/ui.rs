//! What the compiler must refuse.
//!
//! The messages are those of the newest stable compiler, so the cases run with that one only; that the code does not
//! compile is checked with each, by the `compile_fail` examples.

#[test]
fn ui() {
    let cases = trybuild::TestCases::new();
    cases.pass("tests/ui/*_pass_*.rs");
    for entry in std::fs::read_dir("tests/ui").expect("the cases are there") {
        let path = entry.expect("the directory can be read").path();
        let is_case = path.extension().is_some_and(|extension| extension == "rs");
        if is_case && !path.to_string_lossy().contains("_pass_") {
            cases.compile_fail(path);
        }
    }
}
