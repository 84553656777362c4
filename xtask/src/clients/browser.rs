//! Tests with headless Chromium. Every page of the site has to load with all its resources and an
//! empty console. Other pages test themselves, and print the result on their console.

use std::ops::ControlFlow;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::output;
use super::server::Place;
use crate::process::{self, Interrupt};

/// The pages of the site, each with the resources that the browser has to load.
const PAGES: [(&str, &[&str]); 3] = [
    ("/", &["/style.css", "/cocoon.svg"]),
    ("/guide/", &["/style.css", "/cocoon.svg"]),
    (
        "/stages.html",
        &["/style.css", "/cocoon.svg", "/stages.svg"],
    ),
];

/// Bound, in time: a browser that neither ends nor loads the page is killed.
const LIMIT: Duration = Duration::from_secs(60);

/// Shows all pages, and saves screenshots in the folder.
pub(super) fn check(place: &Place, program: &str) -> anyhow::Result<Vec<String>> {
    let mut failures = Vec::new();
    for server in place.servers()? {
        let scheme = if server.is_tls() { "https" } else { "http" };
        for (number, (page, _)) in PAGES.iter().enumerate() {
            let picture = place.folder.join(format!("{scheme}-{number}.png"));
            let profile = place.folder.join(format!("profile-{scheme}-{number}"));
            let mut browser = Command::new(program);
            headless(&mut browser, &profile);
            browser.args(["--ignore-certificate-errors", "--window-size=1000,1200"]);
            browser.arg("--timeout=20000");
            browser.arg(format!("--screenshot={}", picture.display()));
            let printed = output(browser.arg(server.url.clone() + page))?;
            let told = printed
                .errors
                .lines()
                .filter(|line| line.contains("CONSOLE"));
            failures.extend(told.map(|line| format!("{scheme} {page}: {line}")));
            if !picture.is_file() {
                failures.push(format!("{scheme} {page}: no picture: {}", printed.errors));
            }
        }
        let log = server.end()?;
        failures.extend(
            missing(&log)
                .into_iter()
                .map(|line| format!("{scheme}: {line}")),
        );
    }
    Ok(failures)
}

/// Loads a page that tests itself, until it prints `NAME: passed` or `NAME: failed` on its console.
/// Returns the reason of a failure.
pub(super) fn run_page(
    place: &Place,
    program: &str,
    name: &str,
    url: &str,
) -> anyhow::Result<Option<String>> {
    let mut browser = Command::new(program);
    headless(&mut browser, &place.folder.join(format!("profile-{name}")));
    browser.arg(url);
    let log = place.folder.join(format!("{name}-browser.log"));
    let mut printed = String::new();
    let interrupt = Interrupt::default();
    let (end, text) = process::run_logged(&mut browser, &log, Some(LIMIT), &interrupt, |news| {
        printed.push_str(news);
        match outcome(&printed, name) {
            Some(_) => ControlFlow::Break(()),
            None => ControlFlow::Continue(()),
        }
    })?;
    Ok(match outcome(&text, name) {
        Some(line) if line.contains(&format!("{name}: passed")) => None,
        Some(line) => Some(line.to_owned()),
        None => Some(format!("no result ({end:?}), but {text}")),
    })
}

/// Returns the line of the console that has the page's result.
fn outcome<'a>(printed: &'a str, name: &str) -> Option<&'a str> {
    let result = format!("\"{name}: ");
    let lines = printed.split_inclusive('\n');
    let mut whole = lines.filter_map(|line| line.strip_suffix('\n'));
    whole.find(|line| line.contains("CONSOLE") && line.contains(&result))
}

/// Adds the options of a browser without a window, which prints its console on standard error.
fn headless(browser: &mut Command, profile: &Path) {
    // The sandbox is not available to root, nor in containers.
    browser.args([
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
    ]);
    browser.args(["--no-proxy-server", "--enable-logging=stderr"]);
    browser.arg(format!("--user-data-dir={}", profile.display()));
}

/// Returns the problems in the requests of a browser that has loaded every page with an empty
/// cache.
fn missing(log: &[String]) -> Vec<String> {
    // An image that is also the icon is requested twice.
    let is_good = |line: &&String| line.contains("\" 200 ") || line.contains("\" 304 ");
    let mut wrong: Vec<_> = log.iter().filter(|line| !is_good(line)).cloned().collect();
    let mut expected: Vec<_> = PAGES
        .iter()
        .flat_map(|(page, parts)| [&[*page], *parts].concat())
        .collect();
    expected.sort_unstable();
    for path in expected.chunk_by(PartialEq::eq) {
        let request = format!("\"GET {} HTTP/1.1\" 200 ", path[0]);
        let count = log.iter().filter(|line| line.contains(&request)).count();
        if count < path.len() {
            wrong.push(format!(
                "{}: {count} requests, expected {}",
                path[0],
                path.len()
            ));
        }
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_result_is_a_whole_line_of_the_console() {
        let line = "[1:2:INFO:CONSOLE:7] \"video: failed while seeking\", source: a (7)";
        assert_eq!(outcome(&format!("a\n{line}\n"), "video"), Some(line));
        assert_eq!(outcome(&format!("a\n{line}"), "video"), None);
        assert_eq!(outcome(&format!("a\n{line}\n"), "guestbook"), None);
        assert_eq!(outcome("GET \"video: passed\"\n", "video"), None);
    }

    #[test]
    fn resources_that_failed_to_load_are_named() {
        let line =
            |path: &&str| format!("127.0.0.1 - - [x] \"GET {path} HTTP/1.1\" 200 9 \"-\" \"-\"");
        let whole: Vec<_> = PAGES
            .iter()
            .flat_map(|(page, parts)| [&[*page], *parts].concat())
            .collect();
        let mut log: Vec<_> = whole.iter().map(line).collect();
        assert_eq!(missing(&log), Vec::<String>::new());
        log.pop();
        assert_eq!(missing(&log), ["/stages.svg: 0 requests, expected 1"]);
        log.push("127.0.0.1 - - [x] \"GET /stages.svg HTTP/1.1\" 500 9 \"-\" \"-\"".into());
        assert_eq!(missing(&log).len(), 2);
    }
}
