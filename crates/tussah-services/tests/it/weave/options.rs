//! The options of `run` for the parameters of a graph.

use super::tussah;

/// Runs a graph with these parameters and statements, and with these options. The graph may use
/// only these modules.
fn run_with(uses: &str, params: &str, statements: &str, options: &[&str]) -> (i32, String, String) {
    let directory = tempfile::tempdir().expect("a directory");
    let text = format!("{uses}\ngraph G({params}) {{\n{statements}}}\n");
    std::fs::write(directory.path().join("g.weave"), text).expect("a file");
    let arguments: Vec<&str> = ["run", "g.weave"].iter().chain(options).copied().collect();
    tussah(directory.path(), &arguments)
}

/// Logs `n` numbers, or none.
const LOG: &str = "  if !quiet { t = Timer(1 ms, n) l = Logger() t -> l }\n";

#[test]
fn an_option_after_a_flag_is_not_its_value() {
    let check = |options: &[&str], lines: usize| {
        let params = "quiet: flag = false, n: count = 1";
        let (code, _, stderr) = run_with("use Timer, Logger", params, LOG, options);
        assert_eq!((code, stderr.lines().count()), (0, lines), "{stderr}");
    };
    check(&["--quiet", "--n", "2"], 0);
    check(&["--n", "2", "--quiet"], 0);
    check(&["--quiet", "false", "--n", "2"], 2);
    check(&["--quiet=false"], 1);
}

#[test]
fn a_parameter_may_begin_with_underscores() {
    let params = "_at_once: count, _: count = 1, quiet: flag = true, n: count = _at_once + _";
    let (code, stdout, stderr) = run_with("use Timer, Logger", params, LOG, &["--help"]);
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.contains("--_at-once <COUNT>"), "{stdout}");
    let (code, _, stderr) = run_with(
        "use Timer, Logger",
        params,
        LOG,
        &["--_at-once", "2", "--_", "3"],
    );
    assert_eq!((code, stderr.as_str()), (0, ""));
}
