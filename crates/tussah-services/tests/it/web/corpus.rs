//! The corpus of the parser, sent to a server: nothing that is hidden in a request is answered.

use std::fs;
use std::path::Path;

use tussah_services::web::config::HalfClose;
use tussah_services::web::{Reply, Request};

use super::client::request;
use super::server::{Server, Site};

/// A file of `crates/tussah-wire/tests/corpus`, where it is said what the names mean.
struct Case {
    name: String,
    bytes: Vec<u8>,
}

impl Case {
    /// The outcome of each request in turn.
    fn words(&self) -> Vec<&str> {
        let (expected, _) = self
            .name
            .split_once('-')
            .expect("a name says what is expected");
        expected.split('+').collect()
    }

    /// True if a body is refused, so that the request before it is not answered.
    fn has_bad_body(&self) -> bool {
        let bodies = ["-chunk-", "-length-over-limit", "-length-largest"];
        bodies.iter().any(|part| self.name.contains(part))
    }
}

fn cases() -> Vec<Case> {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../tussah-wire/tests/corpus");
    let paths = fs::read_dir(Path::new(directory)).expect("the corpus is there");
    let paths = paths.map(|entry| entry.expect("an entry").path());
    let mut cases: Vec<_> = paths
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "http")
        })
        .map(|path| Case {
            name: path
                .file_stem()
                .and_then(|stem| stem.to_str())
                .expect("a name")
                .to_owned(),
            bytes: fs::read(&path).expect("a file"),
        })
        .collect();
    cases.sort_by(|a, b| a.name.cmp(&b.name));
    assert!(cases.len() > 250, "the corpus is not where it should be");
    cases
}

/// The statuses that come back, and whether what was sent after it was answered.
fn answers(server: &Server, case: &Case) -> (Vec<u16>, bool) {
    let mut client = server.connect();
    // It may be closed before all has been sent.
    drop(client.try_send(&case.bytes));
    if case.words().last() == Some(&"more") {
        client.finish();
    } else {
        let last = request("GET", "/last", "Connection: close\r\n");
        drop(client.try_send(last));
    }
    let (mut statuses, mut goes_on) = (Vec::new(), false);
    loop {
        // An answer to HEAD looks like one to GET, but for the body.
        let is_head = case.bytes.starts_with(b"HEAD ") && statuses.is_empty();
        let Some(answer) = client.next(!is_head) else {
            return (statuses, goes_on);
        };
        assert!(
            !goes_on,
            "{}: more than the last answer: {}",
            case.name, answer.head
        );
        goes_on = answer.body == b"the last";
        if !goes_on && answer.status != 100 {
            statuses.push(answer.status);
        }
    }
}

/// Every request gets to a route, also of a client that sends nothing more.
fn routed() -> Server {
    let site = Site::new().with(|config| config.half_close = HalfClose::Serve);
    site.start_with(|web| {
        let answer = async |request: Request| match &*request.path() {
            "/last" => Reply::text("the last"),
            _ => Reply::text("one of the corpus"),
        };
        web.route("/*", answer)
    })
}

#[test]
fn each_request_has_the_answer_that_its_name_says() {
    let server = routed();
    let mut wrong = Vec::new();
    for case in cases() {
        let mut expected = Vec::new();
        for word in case.words() {
            match word {
                "ok" => expected.push(200),
                "more" => {}
                status => {
                    if case.has_bad_body() {
                        expected.pop();
                    }
                    expected.push(status.parse().expect("a status"));
                }
            }
        }
        // A half body is not answered; there are no tunnels; and the path of one can't be decoded.
        match &*case.name {
            name if name.starts_with("ok+more-") => expected.clear(),
            "ok-connect" => expected = vec![501],
            "ok-options-asterisk" => expected = vec![204],
            "ok-path-escapes-not-checked-here" => expected = vec![400],
            _ => {}
        }
        let version_1_0 = case.bytes.windows(8).any(|word| word == b"HTTP/1.0");
        let closes = version_1_0
            || matches!(
                &*case.name,
                "ok-connection-tokens" | "ok-connect" | "ok-path-escapes-not-checked-here"
            );
        let goes_on = case.words().last() == Some(&"ok") && !closes;
        let found = answers(&server, &case);
        if found != (expected.clone(), goes_on) {
            wrong.push(format!(
                "{}: {found:?}, expected {expected:?}, {goes_on}",
                case.name
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The same where files are served, and bodies are not wanted.
#[test]
fn routes_and_files_refuse_the_same_requests() {
    let server = Site::new().file("last", "the last").start();
    let mut wrong = Vec::new();
    for case in cases() {
        let words = case.words();
        let (statuses, goes_on) = answers(&server, &case);
        let fits = match (words[0], words.last()) {
            // Files may not be there, and can be read only; what comes after that depends on it.
            ("ok", Some(&"ok")) => {
                statuses
                    .iter()
                    .all(|status| matches!(status, 200 | 204 | 404 | 405 | 501))
                    || case.name == "ok-path-escapes-not-checked-here"
            }
            ("ok", _) => !goes_on,
            ("more", _) => statuses.is_empty(),
            (status, _) => statuses == [status.parse::<u16>().expect("a status")] && !goes_on,
        };
        if !fits || statuses.len() > words.len() {
            wrong.push(format!("{}: {statuses:?}, {goes_on}", case.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
