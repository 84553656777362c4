//! Code that the compiler must reject, with its error messages.
//!
//! The messages are those of the newest stable compiler. After a compiler update changes them, run
//! `TRYBUILD=overwrite cargo test -p tussah-ui` and review the difference.

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
