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

#[test]
fn the_arguments_of_all_instances_are_checked_first() {
    let params = "burst: count, ticks: count, rate: rate = 10/s";
    let statements = "  t = Timer(1 ms, ticks)
  a = Throttle(rate, burst)
  b = Throttle(rate, 2 * burst)
  l = Logger()
  t -> a -> b -> l
";
    let options = ["--burst", "0", "--ticks", "1"];
    let (code, stdout, stderr) =
        run_with("use Timer, Logger, Throttle", params, statements, &options);
    let expected = "error: g.weave:4:3: `a` cannot start: the argument `burst` is 0: expected at least 1\n\
                    error: g.weave:5:3: `b` cannot start: the argument `burst` is 0: expected at least 1\n";
    assert_eq!((code, stdout.as_str(), stderr.as_str()), (2, "", expected));
    let options = ["--burst", "1", "--ticks", "1", "--rate", "5"];
    let (code, _, stderr) = run_with("use Timer, Logger, Throttle", params, statements, &options);
    let expected = "error: --rate: 5 is a count, expected a rate, for example 10 k/s\n";
    assert_eq!((code, stderr.as_str()), (2, expected));
}

#[test]
fn the_workers_are_as_many_as_a_runtime_may_have() {
    let run = |workers: &str| run_with("", "", "", &["--workers", workers]);
    let (code, _, stderr) = run("65535");
    assert_eq!(code, 2, "{stderr}");
    assert!(stderr.contains("65535 is not in 1..=1024"), "{stderr}");
    assert_eq!(run("3").0, 0);
}
