//! What the compiler must refuse, and how it says so.
//!
//! The messages are those of the newest stable compiler. When that changes them: `TRYBUILD=overwrite cargo test --test it ui`,
//! and look at the difference.

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
