//! Tests with headless Chromium: every page has to load with all its resources, and the console has
//! to stay empty.

use std::path::Path;
use std::process::Command;

use super::output;
use super::server::Place;

/// The pages of the site, each with the resources that the browser has to load.
const PAGES: [(&str, &[&str]); 3] = [
    ("/", &["/style.css", "/cocoon.svg"]),
    ("/guide/", &["/style.css", "/cocoon.svg"]),
    (
        "/stages.html",
        &["/style.css", "/cocoon.svg", "/stages.svg"],
    ),
];

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

/// Adds the options of a browser without a window, which prints its console on standard error.
pub(super) fn headless(browser: &mut Command, profile: &Path) {
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
