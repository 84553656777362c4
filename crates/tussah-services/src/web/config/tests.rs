//! Tests of configurations from all sources.

use std::ffi::OsString;
use std::time::Duration;

use clap::{Args, Command, FromArgMatches};
use proptest::prelude::*;

use super::keys::{KEYS, Kind};
use super::*;
use crate::web::site::{Coding, Codings, Symlinks};

fn arguments(words: &[&str]) -> Arguments {
    let command = Arguments::augment_args(Command::new("web"));
    let matches = command
        .try_get_matches_from([&["web"], words].concat())
        .unwrap();
    Arguments::from_arg_matches(&matches).unwrap()
}

/// Loads from a command line, an environment and a file `site.toml`.
fn load(words: &[&str], environment: &[(&str, &str)], file: &str) -> Result<Config, String> {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("site.toml");
    std::fs::write(&path, file).unwrap();
    let mut arguments = arguments(words);
    arguments.config = Some(path);
    let environment = environment
        .iter()
        .map(|(name, text)| (name.into(), text.into()));
    let environment: Vec<(OsString, OsString)> = environment.collect();
    let shown = format!("{}/", place.path().display());
    Config::load_from(&arguments, environment)
        .map_err(|errors| errors.to_string().replace(&shown, ""))
}

/// A value for each key that differs from its default: as a word, and as TOML in the form of
/// `show`.
const SAMPLES: &[(&str, &str, &str)] = &[
    ("root", "/srv/www", r#""/srv/www""#),
    ("index", "a.html,b/c.htm", r#"["a.html", "b/c.htm"]"#),
    ("listing", "true", "true"),
    ("fallback", "/app.html", r#""/app.html""#),
    ("symlinks", "all", r#""all""#),
    ("dotfiles", "served", r#""served""#),
    ("precompressed", "gzip", r#"["gzip"]"#),
    ("cache-control", "no-cache", r#""no-cache""#),
    (
        "headers",
        "/a/* X-A: \"b\"",
        r#"[{ match = "/a/*", set = { "X-A" = "\"b\"" } }]"#,
    ),
    (
        "errors",
        "404=404.html,500=e/5.html",
        r#"{ "404" = "404.html", "500" = "e/5.html" }"#,
    ),
    ("types", "md=text/markdown", r#"{ "md" = "text/markdown" }"#),
    ("php", "unix:/run/php.sock", r#""unix:/run/php.sock""#),
    (
        "fastcgi",
        ".cgi=127.0.0.1:9000,/app/=unix:/run/app",
        concat!(
            r#"[{ address = "127.0.0.1:9000", suffix = ".cgi", connections = 5, queue = 1024, "#,
            r#"timeout-queue = "10s", timeout-connect = "5s", timeout = "1min", timeout-idle = "5s", path-info = true, "#,
            r#"buffering = true, params = {} }, { address = "unix:/run/app", prefix = "/app/", connections = 5, "#,
            r#"queue = 1024, timeout-queue = "10s", timeout-connect = "5s", timeout = "1min", timeout-idle = "5s", "#,
            r#"path-info = true, buffering = true, params = {} }]"#,
        ),
    ),
    (
        "listen",
        "[::1]:0,unix:/run/web",
        r#"["[::1]:0", "unix:/run/web"]"#,
    ),
    ("workers", "3", "3"),
    ("colors", "one", r#""one""#),
    ("target", "500ms", r#""500ms""#),
    ("overload", "observe", r#""observe""#),
    ("half-close", "serve", r#""serve""#),
    ("drain", "0", r#""0s""#),
    ("server-header", "off", r#""off""#),
    (
        "trusted-proxies",
        "10.0.0.0/8,::1",
        r#"["10.0.0.0/8", "::1/128"]"#,
    ),
    ("cache.kind", "none", r#""none""#),
    ("cache.size", "1.5GiB", r#""1536MiB""#),
    ("cache.file-size", "0", r#""0B""#),
    ("limits.head", "4096", r#""4KiB""#),
    ("limits.headers", "50", "50"),
    ("limits.body", "0B", r#""0B""#),
    ("limits.connections", "7", "7"),
    ("limits.requests", "100", "100"),
    ("limits.rejecting", "10", "10"),
    ("timeouts.head", "1s", r#""1s""#),
    ("timeouts.body", "2m", r#""2min""#),
    ("timeouts.idle", "1.5s", r#""1500ms""#),
    ("timeouts.write", "1h", r#""1h""#),
    ("timeouts.rate", "1KiB", r#""1KiB""#),
    ("timeouts.linger", "0", r#""0s""#),
    ("tls.cert", "/c.pem", r#""/c.pem""#),
    ("tls.key", "/k.pem", r#""/k.pem""#),
    ("log.file", "-", r#""-""#),
    ("log.format", "common", r#""common""#),
    ("diagnostics.level", "debug", r#""debug""#),
    ("diagnostics.format", "json", r#""json""#),
    ("status.path", "/_/status", r#""/_/status""#),
    ("status.from", "0.0.0.0/0,unix", r#"["0.0.0.0/0", "unix"]"#),
    ("status.work", "true", "true"),
];

/// Returns the shown configuration without the origins.
fn shown(config: &Config) -> String {
    let shown = config.show();
    let values = shown
        .lines()
        .map(|line| line.rsplit_once(" # ").map_or(line, |(value, _)| value));
    values
        .map(|value| format!("{}\n", value.trim_end()))
        .collect()
}

#[test]
fn every_key_comes_from_every_source() {
    let names = SAMPLES.iter().map(|(name, ..)| *name);
    assert_eq!(
        names.collect::<Vec<_>>(),
        KEYS.iter().map(|key| key.name).collect::<Vec<_>>()
    );

    let (mut words, mut variables, mut file) = (Vec::new(), Vec::new(), String::new());
    let mut section = "";
    for (key, (_, word, toml)) in KEYS.iter().zip(SAMPLES) {
        match key.kind {
            _ if key.name == "root" => words.push((*word).to_owned()),
            _ => words.push(format!("--{}={word}", key.flag)),
        }
        variables.push((key.variable(), *word));
        let (inside, name) = key.name.rsplit_once('.').unwrap_or(("", key.name));
        if inside != section {
            section = inside;
            file.push_str(&format!("\n[{section}]\n"));
        }
        file.push_str(&format!("{name} = {toml}\n"));
    }
    let words: Vec<_> = words.iter().map(String::as_str).collect();
    let variables: Vec<_> = variables
        .iter()
        .map(|(name, word)| (name.as_str(), *word))
        .collect();
    let from_file = load(&[], &[], &file).unwrap();
    assert_eq!(shown(&from_file), file);
    assert_eq!(shown(&load(&[], &variables, "").unwrap()), file);
    assert_eq!(shown(&load(&words, &[], "").unwrap()), file);
    let defaults = shown(&Config::default());
    for (default, sample) in defaults.lines().zip(file.lines()) {
        assert!(
            default != sample || default.is_empty() || default.starts_with('['),
            "{default}"
        );
    }
    // The output, comments included, is a file with the same meaning.
    assert_eq!(shown(&load(&[], &[], &from_file.show()).unwrap()), file);
    assert_eq!(
        shown(&load(&[], &[], &Config::default().show()).unwrap()),
        defaults
    );
}

#[test]
fn values_have_the_meaning_that_was_given() {
    let words = [
        "--symlinks=none",
        "--precompressed",
        "zstd,br",
        "--workers=auto",
        "--listing",
    ];
    let more = [
        "--header",
        "X: a, b",
        "--header",
        "*.css Y: c",
        "--listen",
        "80",
        "--drain=1m",
    ];
    let config = load(&[&words[..], &more[..]].concat(), &[], "").unwrap();
    assert_eq!(config.site.symlinks, Symlinks::None);
    let expected = Codings::NONE.with(Coding::Zstd).with(Coding::Brotli);
    assert_eq!(config.site.precompressed, expected);
    assert_eq!((config.workers, config.site.listing), (None, true));
    assert_eq!(config.drain, Duration::from_secs(60));
    let [first, second] = &config.site.rules[..] else {
        panic!("two rules")
    };
    assert_eq!((first.pattern(), &first.fields()[0].1[..]), ("*", "a, b"));
    assert_eq!(
        (second.pattern(), &second.fields()[0].0[..]),
        ("*.css", "Y")
    );
    assert_eq!(
        config.listen,
        [ListenAddress::Tcp(([127, 0, 0, 1], 80).into())]
    );
    let environment = [("TUSSAH_WEB_HEADER", "X: a, b\n*.css Y: c")];
    assert_eq!(
        load(&[], &environment, "").unwrap().site.rules,
        config.site.rules
    );
}

#[test]
fn higher_sources_go_before_lower_ones() {
    let file = "workers = 2\nindex = [\"f\"]\ntarget = \"2s\"\n[cache]\nsize = \"2MB\"\n";
    let environment = [
        ("TUSSAH_WEB_WORKERS", "3"),
        ("TUSSAH_WEB_CACHE_SIZE", "3MB"),
        ("OTHER", "1"),
    ];
    let config = load(
        &["--workers=4", "--index=a", "--index=b"],
        &environment,
        file,
    )
    .unwrap();
    assert_eq!(config.workers, Some(4));
    assert_eq!(config.site.index, ["a", "b"]);
    assert_eq!(
        (config.cache.bytes, config.target),
        (3_000_000, Duration::from_secs(2))
    );
    let shown = config.show();
    for (line, origin) in [
        ("workers = 4", "--workers"),
        ("size = \"3MB\"", "TUSSAH_WEB_CACHE_SIZE"),
        ("drain = \"30s\"", "default"),
    ] {
        let found = shown.lines().find(|shown| shown.starts_with(line)).unwrap();
        assert_eq!(found.rsplit_once(" # ").unwrap().1, origin);
    }
    let target = shown
        .lines()
        .find(|shown| shown.starts_with("target"))
        .unwrap();
    assert!(target.ends_with("site.toml:3:10"), "{target}");
}

#[test]
fn paths_in_files_are_relative_to_them() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("site.toml");
    let text = "root = \"site\"\nlisten = [\"unix:web.sock\"]\n[log]\nfile = \"/var/log/web\"\n";
    std::fs::write(&path, text).unwrap();
    let environment = [("TUSSAH_WEB_CONFIG".into(), path.clone().into_os_string())];
    let config = Config::load_from(&Arguments::default(), environment).unwrap();
    assert_eq!(config.root, place.path().join("site"));
    assert_eq!(
        config.listen,
        [ListenAddress::Unix(place.path().join("web.sock"))]
    );
    assert_eq!(config.log.file, Some(LogFile::Path("/var/log/web".into())));
    assert_eq!(
        load(&["site"], &[], "").unwrap().root.to_str(),
        Some("site")
    );
}

/// Checks the errors, one line each.
fn check_errors(words: &[&str], environment: &[(&str, &str)], file: &str, expected: &[&str]) {
    let errors = load(words, environment, file).expect_err("something is wrong");
    assert_eq!(errors.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn all_errors_of_a_configuration_are_reported() {
    check_errors(
        &["--cache-size=lots", "--target=1"],
        &[
            ("TUSSAH_WEB_WROKERS", "3"),
            ("TUSSAH_WEB_LOG_FORMAT", "json"),
        ],
        "lisen = 1\nworkers = 0\nheaders = [{ match = \"a\", set = {} }]\n\
         [limits]\nhead = \"16 kilos\"\nsize = 5\n[limit]\nhead = 5\n[cache]\nkind = true\n\
         [status]\nfrom = [\"10.0.0.0/8\", \"localhost\", 5]\n",
        &[
            "site.toml:1:1: unknown key `lisen`; did you mean `listen`?",
            "site.toml:2:11: workers: expected \"auto\" or a whole number from 1 to 1024, found 0",
            "site.toml:3:12: headers: expected a pattern that begins with `/` or `*`",
            "site.toml:5:8: limits.head: expected a size such as \"64KiB\" or \"200MB\", from 512B to 65535B, found \"16 kilos\"",
            "site.toml:6:1: unknown key `limits.size`; did you mean `cache.size`?",
            "site.toml:7:2: unknown section `limit`; did you mean `limits`?",
            "site.toml:10:8: cache.kind: expected \"sharded\" or \"none\", found true",
            "site.toml:12:23: status.from: expected an address or a network such as \"10.0.0.0/8\" or \"::1\", or \"unix\", found \"localhost\"",
            "site.toml:12:36: status.from: expected an address or a network such as \"10.0.0.0/8\" or \"::1\", or \"unix\", found 5",
            "TUSSAH_WEB_WROKERS: unknown environment variable; did you mean `TUSSAH_WEB_WORKERS`?",
            "TUSSAH_WEB_LOG_FORMAT: log.format: expected \"common\" or \"combined\", found \"json\"",
            "--target: expected a duration such as \"250ms\" or \"1.5s\", from 1ms to 1d, found \"1\"",
            "--cache-size: expected a size such as \"64KiB\" or \"200MB\", from 0B to 1TiB, found \"lots\"",
        ],
    );
}

#[test]
fn each_kind_of_value_is_checked() {
    let table = [
        (
            "[limits]\nhead = \"64KiB\"",
            "2:8: limits.head: expected a size such as \"64KiB\" or \"200MB\", from 512B to 65535B, found \"64KiB\"",
        ),
        (
            "listing = \"true\"",
            "1:11: listing: expected true or false, found \"true\"",
        ),
        (
            "listen = []",
            "1:10: listen: expected at least one address, found none",
        ),
        (
            "listen = \"80\"",
            "1:10: listen: expected a list such as [\"80\"], found \"80\"",
        ),
        (
            "listen = [70000]",
            "1:11: listen: expected an address such as \"127.0.0.1:8080\", \"[::]:8080\", \"8080\" or \"unix:/run/web\", found 70000",
        ),
        (
            "errors = { 200 = \"a\" }",
            "1:18: errors: expected a status code from 400 to 599, found \"200\"",
        ),
        (
            "errors = 5",
            "1:10: errors: expected a table of status codes and files, found 5",
        ),
        (
            "types = { a = \"b\" }",
            "1:15: types: expected a media type such as \"text/plain\", found \"b\"",
        ),
        (
            "fallback = \"../x\"",
            "1:12: fallback: expected \"off\" or the path of a file in the directory that is served, found \"../x\"",
        ),
        (
            "cache-control = \"a\\nb\"",
            "1:17: cache-control: expected \"off\" or text without control characters and spaces around it, found \"a\\nb\"",
        ),
        (
            "headers = [{ match = \"*\" }]",
            "1:12: headers: expected a table with \"match\" and \"set\", found a table",
        ),
        (
            "headers = [{ match = \"*\", sets = {} }]",
            "1:34: headers: expected a table with \"match\" and \"set\" and not \"sets\", found a table",
        ),
        (
            "headers = [{ match = \"*\", set = { Date = \"x\" } }]",
            "1:12: headers: `Date` is set by the server itself",
        ),
        (
            "workers = 1.5",
            "1:11: workers: expected \"auto\" or a whole number from 1 to 1024, found a number with a fraction",
        ),
        (
            "workers = 99999999999999999999",
            "1:11: workers: expected \"auto\" or a whole number from 1 to 1024, found a number that is too large",
        ),
        (
            "drain = 1979-05-27",
            "1:9: drain: expected a duration such as \"250ms\" or \"1.5s\", from 0s to 1d, found a date",
        ),
        (
            "cache = 5",
            "1:1: expected a section [cache], found integer",
        ),
        (
            "tls.cert = \"/c.pem\"",
            "1:12: tls.key: missing, but tls.cert is set; set both or neither",
        ),
        (
            "[status]\npath = \"status\"",
            "2:8: status.path: expected \"off\" or a path that begins with \"/\", found \"status\"",
        ),
        (
            "precompressed = [\"lzma\"]",
            "1:18: precompressed: expected \"br\", \"zstd\" or \"gzip\", found \"lzma\"",
        ),
        ("root = \"\"", "1:8: root: expected a path, found \"\""),
    ];
    for (file, expected) in table {
        check_errors(&[], &[], file, &[&format!("site.toml:{expected}")]);
    }
    check_errors(
        &["--header=X", "--type=md", "--listen="],
        &[],
        "",
        &[
            "--header: expected \"[PATTERN] NAME: VALUE\", found \"X\"",
            "--type: expected a table of extensions and media types, as NAME=VALUE, found \"md\"",
            "--listen: expected at least one address, found none",
        ],
    );
}

#[test]
fn a_file_that_is_no_toml_is_described_as_far_as_it_can_be_read() {
    let errors = load(&[], &[], "workers = \n= 5\nlisen = 5\ntarget = 5\n").unwrap_err();
    let places: Vec<_> = errors
        .lines()
        .map(|line| line.split(':').nth(1).unwrap())
        .collect();
    assert_eq!(places.first(), Some(&"1"), "{errors}");
    assert!(
        errors.contains("unknown key `lisen`; did you mean `listen`?"),
        "{errors}"
    );
    assert!(errors.contains("site.toml:4:10: target: "), "{errors}");
    let environment = [("TUSSAH_WEB_CONFIG".into(), "/nobody/site.toml".into())];
    let error = Config::load_from(&Arguments::default(), environment)
        .unwrap_err()
        .to_string();
    let expected = "TUSSAH_WEB_CONFIG: cannot read the configuration file /nobody/site.toml: \
                    No such file or directory (os error 2)";
    assert_eq!(error, expected);
}

#[test]
fn the_command_line_is_sound() {
    Arguments::augment_args(Command::new("web")).debug_assert();
    // A switch takes no separate word: that word is the directory.
    let config = load(&["--listing", "site"], &[], "").unwrap();
    assert_eq!(
        (config.site.listing, config.root.to_str()),
        (true, Some("site"))
    );
    assert!(
        KEYS.iter()
            .filter(|key| key.kind == Kind::Switch)
            .all(|key| key.value == "BOOL")
    );
    let help = Arguments::augment_args(Command::new("web").term_width(100)).render_long_help();
    for key in KEYS {
        assert!(help.to_string().contains(&key.variable()), "{}", key.name);
    }
}

proptest! {
    #[test]
    fn no_file_makes_it_panic(text in "(\\PC|[\n\r\t\"=\\[\\]{}.,']|headers|match|set|errors|cache){0,60}") {
        let _ = load(&[], &[], &text);
    }

    #[test]
    fn no_word_makes_it_panic(at in 0..KEYS.len(), word in "(\\PC|[=:, /]){0,12}") {
        let _ = load(&[], &[(&KEYS[at].variable(), &word)], "");
    }
}

#[test]
fn shells_complete_the_words_that_a_key_takes() {
    let mut keys = 0;
    for key in KEYS {
        let words: Vec<_> = key.words().collect();
        if words.is_empty() || key.kind == Kind::Switch {
            continue;
        }
        keys += 1;
        let option = format!("--{}=nonsense", key.flag);
        let quoted: Vec<_> = words.iter().map(|word| format!("{word:?}")).collect();
        let expected = quoted.join(" or ");
        let problem = format!("--{}: expected {expected}, found \"nonsense\"", key.flag);
        check_errors(&[&option], &[], "", &[&problem]);
    }
    assert_eq!(keys, 9);
    let mut script = Vec::new();
    let mut command = Arguments::augment_args(Command::new("web"));
    clap_complete::generate(clap_complete::Shell::Bash, &mut command, "web", &mut script);
    let script = String::from_utf8(script).expect("text");
    for words in ["sharded none", "common combined", "true false"] {
        assert!(
            script.contains(&format!("compgen -W \"{words}\"")),
            "{words}"
        );
    }
}

#[test]
fn applications_are_read_from_tables() {
    let file = "[[fastcgi]]
address = \"unix:/run/php\"
connections = 20
queue = 0
timeout = \"5m\"
timeout-idle = \"1m\"
path-info = false
buffering = false
params = { APP_ENV = \"test\" }

[[fastcgi]]
address = \"127.0.0.1:9000\"
prefix = \"/app/\"
";
    let config = load(&[], &[], file).unwrap();
    let [php, app] = &config.fastcgi[..] else {
        panic!("{:?}", config.fastcgi);
    };
    assert_eq!(php.paths, FastCgiPaths::Suffix(".php".into()));
    let options = &php.options;
    assert_eq!((options.connections, options.waiting), (20, 0));
    assert!(!php.path_info && !php.buffering);
    assert_eq!(options.silence, Duration::from_secs(300));
    assert_eq!(options.idle, Duration::from_secs(60));
    assert_eq!(php.params, [("APP_ENV".to_owned(), "test".to_owned())]);
    assert_eq!(app.paths, FastCgiPaths::Prefix("/app/".into()));
    assert_eq!(
        load(&[], &[], &shown(&config)).unwrap().fastcgi,
        config.fastcgi
    );
}

#[test]
fn errors_in_applications_are_reported() {
    let check = |file: &str, expected: &[&str]| {
        let errors = load(&[], &[], file).unwrap_err();
        assert_eq!(errors.lines().collect::<Vec<_>>(), expected);
    };
    check(
        "[[fastcgi]]\naddress = \"php.sock\"\nsuffix = \"php\"\nprefix = \"app\"\nconnection = 5\nconnections = 0\n",
        &[
            "site.toml:1:1: fastcgi: expected `suffix` or `prefix`, found both",
            "site.toml:2:11: fastcgi: expected an address such as \"unix:/run/php/php-fpm.sock\" or \"127.0.0.1:9000\", found \"php.sock\"",
            "site.toml:3:10: fastcgi: expected the end of file names, such as \".php\", found \"php\"",
            "site.toml:4:10: fastcgi: expected the beginning of paths, such as \"/app/\", found \"app\"",
            "site.toml:5:14: fastcgi: unknown key `connection`; did you mean `connections`?",
            "site.toml:6:15: fastcgi: expected a whole number from 1 to 65535, found 0",
        ],
    );
    check(
        "[[fastcgi]]\nsuffix = \".php\"\n",
        &[
            "site.toml:1:1: fastcgi: missing `address`, as in address = \"unix:/run/php/php-fpm.sock\"",
        ],
    );
    check(
        "fastcgi = 5\n",
        &["site.toml:1:11: fastcgi: expected a list, found 5"],
    );
    check(
        "php = \"unix:/a\"\nfastcgi = [{ address = \"unix:/b\" }]\n",
        &["site.toml:2:11: fastcgi: two applications claim the paths *.php; keep one of them"],
    );
}
