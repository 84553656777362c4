//! What the compiler must refuse, and how it says so.
//!
//! The messages are those of the newest stable compiler. When that changes them: `TRYBUILD=overwrite cargo test -p tussah-ui`,
//! and look at the difference.

mod accepted;

#[test]
fn ui() {
    let cases = trybuild::TestCases::new();
    for entry in std::fs::read_dir("tests/ui").expect("the cases are there") {
        let path = entry.expect("the directory can be read").path();
        if path.extension().is_some_and(|extension| extension == "rs") {
            cases.compile_fail(path);
        }
    }
}
