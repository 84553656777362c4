//! The command line of `tussah web`, and the example configuration.

use std::path::Path;
use std::process::{Command, Output};

use clap::{Args, FromArgMatches};
use tussah_services::web::config::{Arguments, Config};

/// Runs the command with an environment that has nothing of its own.
fn tussah(words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tussah"));
    command.env_clear().args(words).output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    str::from_utf8(bytes).unwrap()
}

/// The repository's examples.
pub(crate) fn examples() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples"))
}

/// The example configuration, as the server gets it.
pub(crate) fn example() -> Config {
    let file = examples().join("site.toml");
    let command = Arguments::augment_args(clap::Command::new("web"));
    let matches = command.get_matches_from(["web", "--config", file.to_str().unwrap()]);
    let arguments = Arguments::from_arg_matches(&matches).unwrap();
    Config::load_from(&arguments, []).unwrap_or_else(|errors| panic!("{errors}"))
}

#[test]
fn the_example_has_every_key() {
    let shown = example().show();
    let left_out: Vec<_> = shown
        .lines()
        .filter(|line| line.ends_with("# default"))
        .collect();
    assert!(left_out.is_empty(), "{left_out:?}");
}

#[test]
fn the_example_says_what_the_defaults_are() {
    // What it changes, it says so beside.
    const OTHERS: [&str; 6] = [
        "root =",
        "listing =",
        "cache-control =",
        "headers = [",
        "errors =",
        "types =",
    ];
    let values = |config: &Config| {
        let shown = config.show();
        let lines = shown
            .lines()
            .filter_map(|line| Some(line.rsplit_once(" # ")?.0.trim().to_owned()));
        lines.collect::<Vec<_>>()
    };
    for (default, example) in values(&Config::default())
        .into_iter()
        .zip(values(&example()))
    {
        let other = OTHERS.iter().any(|other| default.starts_with(other));
        assert_eq!(default == example, !other, "{default}");
    }
}

#[test]
fn a_configuration_is_checked_without_serving() {
    let file = examples().join("site.toml");
    let output = tussah(&[
        "web",
        "--config",
        file.to_str().unwrap(),
        "--check-config",
        "--workers=7",
    ]);
    assert_eq!(text(&output.stderr), "");
    assert_eq!(output.status.code(), Some(0));
    let shown = text(&output.stdout);
    assert!(
        shown.contains("workers = 7                             # --workers\n"),
        "{shown}"
    );
}

#[test]
fn all_errors_are_printed() {
    let output = tussah(&["web", "--check-config", "--workers=none", "--listen=here"]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(text(&output.stdout), "");
    let places = text(&output.stderr)
        .lines()
        .map(|line| line.split(' ').next().unwrap());
    assert_eq!(places.collect::<Vec<_>>(), ["--listen:", "--workers:"]);
}

#[test]
fn missing_files_are_reported() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path().to_str().unwrap();
    let words = ["web", place, "--check-config", "--fallback=app.html"];
    let tls = [
        format!("--tls-cert={place}/c.pem"),
        format!("--tls-key={place}/k.pem"),
    ];
    let output = tussah(&[&words[..], &tls.each_ref().map(String::as_str)].concat());
    assert_eq!(output.status.code(), Some(2));
    let expected = format!(
        "cannot open \"app.html\" in {place}, the fallback: no such file\n\
         {place}/c.pem: expected a certificate in PEM (-----BEGIN CERTIFICATE-----): \
         No such file or directory (os error 2)\n"
    );
    assert_eq!(text(&output.stderr), expected);
}

#[test]
fn shells_get_completions() {
    for (shell, expected) in [
        ("bash", "_tussah()"),
        ("zsh", "#compdef tussah"),
        ("fish", "complete -c tussah"),
    ] {
        let output = tussah(&["completions", shell]);
        let script = text(&output.stdout);
        assert!(
            script.contains(expected) && script.contains("cache-size"),
            "{shell}"
        );
    }
}
