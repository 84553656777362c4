//! Tests with curl and many of its options.

use std::fs;
use std::process::Command;

use super::output;
use super::server::{LARGE_BYTES, Place, Server};

/// The text that curl prints after a response, on a separate line.
const AFTER: &str = "\n--- %{http_code} %{num_connects} %{size_download} %{size_upload}\n";

/// A check: its arguments, with `URL` in place of the server's address, and the expected parts of
/// the output.
struct Case {
    arguments: &'static str,
    /// The output must contain all of these, but must not contain those that begin with `!`.
    expected: &'static [&'static str],
}

const fn case(arguments: &'static str, expected: &'static [&'static str]) -> Case {
    Case {
        arguments,
        expected,
    }
}

const CASES: &[Case] = &[
    case(
        "--http1.1 -i URL/",
        &["HTTP/1.1 200 OK", "<h1>It works.", "--- 200 1"],
    ),
    case(
        "--http1.0 -i URL/files/poem.txt",
        &["Connection: close", "--- 200"],
    ),
    case(
        "-i -H Connection:close URL/",
        &["Connection: close", "--- 200"],
    ),
    case(
        "-I URL/large.bin",
        &["Content-Length: 3000001", "--- 200 1 0 0"],
    ),
    case(
        "-r 0-9 -i URL/large.bin",
        &["Content-Range: bytes 0-9/3000001", "--- 206 1 10 "],
    ),
    case(
        "-r -100000 -o large.tail URL/large.bin",
        &["--- 206 1 100000 "],
    ),
    case(
        "-r 5-6,8-8 URL/files/poem.txt",
        &[
            "Content-Range: bytes 5-6/",
            "Content-Range: bytes 8-8/",
            "--- 206",
        ],
    ),
    case(
        "-r 4000000- -i URL/large.bin",
        &["Content-Range: bytes */3000001", "--- 416"],
    ),
    case("-z site/style.css URL/style.css", &["--- 304 1 0 "]),
    case("-z 1994-11-06 -o style.css URL/style.css", &["--- 200"]),
    case(
        "-i --compressed URL/style.css",
        &[
            "Content-Encoding: gzip",
            "Vary: Accept-Encoding",
            ":root",
            "--- 200",
        ],
    ),
    case(
        "-i URL/style.css",
        &[
            "Vary: Accept-Encoding",
            ":root",
            "!Content-Encoding",
            "--- 200",
        ],
    ),
    case("--path-as-is URL/guide/../files/./poem.txt", &["--- 200"]),
    case(
        "--path-as-is -i URL/../../etc/passwd",
        &["HTTP/1.1 400", "!root:", "--- 400"],
    ),
    case(
        "--path-as-is URL/%2e%2e/%2e%2e/etc/passwd",
        &["!root:", "--- 400"],
    ),
    case("-i URL/guide?a=b", &["Location: /guide/?a=b", "--- 301"]),
    case("-L URL/guide", &["<h1>", "--- 200"]),
    case("URL/nowhere", &["404 Not Found", "--- 404"]),
    // Large files and errors also have to leave the connection open.
    case(
        "URL/ URL/large.bin URL/nowhere URL/files/poem.txt -o 1 -o 2 -o 3 -o 4",
        &[
            "--- 200 1 ",
            "--- 200 0 3000001",
            "--- 404 0 ",
            "--- 200 0 ",
        ],
    ),
    case(
        "-Z --parallel-max 20 URL/large.bin?[1-40] -o many.#1",
        &["--- 200"],
    ),
    // The server does not read the body: curl asks first and does not have to send it.
    case(
        "-T large.copy -H Expect:100-continue URL/x",
        &["--- 405 1 23 0"],
    ),
    case("-T large.copy -H Expect: URL/x", &["--- 405"]),
    case("-d hello URL/work", &["--- 200 1 8192 5"]),
    case(
        "-v -d hello -H Expect:100-continue URL/work",
        &["HTTP/1.1 100 Continue", "--- 200 1 8192 5"],
    ),
    case(
        "-v --data-binary @large.copy -H Expect:100-continue URL/work",
        &["!HTTP/1.1 100", "--- 413"],
    ),
    case(
        "-d hello -H Transfer-Encoding:chunked URL/work",
        &["--- 200 1 8192"],
    ),
    case(
        "-X OPTIONS -i URL/",
        &["Allow: GET, HEAD, OPTIONS", "--- 204"],
    ),
    case("-X BREW URL/", &["--- 501"]),
    // The server ignores an upgrade that it does not offer.
    case("--http2 -i URL/", &["--- 200"]),
    case("URL/status?json", &["\"open\": 1", "--- 200"]),
    case("-C 2999990 -o rest.bin URL/large.bin", &["--- 206 1 11 "]),
];

/// Tries all cases on both servers.
pub(super) fn check(place: &Place, program: &str) -> anyhow::Result<Vec<String>> {
    let mut failures = Vec::new();
    let large = fs::read(place.site.join("large.bin"))?;
    fs::write(place.folder.join("large.copy"), &large)?;
    for server in place.servers()? {
        for case in CASES {
            failures.extend(one(place, program, &server, case)?);
        }
        let tail = fs::read(place.folder.join("large.tail"))?;
        if tail != large[LARGE_BYTES - 100_000..] {
            failures.push("the end of a large file differs".into());
        }
        for n in 1..=40 {
            if fs::read(place.folder.join(format!("many.{n}")))? != large {
                failures.push(format!("{}: large file {n} of many differs", server.url));
            }
        }
        server.end()?;
    }
    Ok(failures)
}

fn one(
    place: &Place,
    program: &str,
    server: &Server,
    case: &Case,
) -> anyhow::Result<Option<String>> {
    let arguments = case.arguments.replace("URL", &server.url);
    let mut curl = Command::new(program);
    curl.args(["-sS", "--max-time", "20", "--noproxy", "*", "-w", AFTER]);
    if server.is_tls() {
        curl.args(["--cacert", "cert.pem"]);
    }
    curl.args(arguments.split(' ')).current_dir(&place.folder);
    // Otherwise, curl would continue the file that is left over from the other server.
    drop(fs::remove_file(place.folder.join("rest.bin")));
    let printed = output(&mut curl)?;
    let text = String::from_utf8_lossy(&printed.out) + &*printed.errors;
    let wrong = case
        .expected
        .iter()
        .find(|part| match part.strip_prefix('!') {
            Some(part) => text.contains(part),
            None => !text.contains(*part),
        });
    Ok(wrong.map(|part| {
        let start: String = text.chars().take(1000).collect();
        format!("curl {arguments}: expected {part:?}, found {start}")
    }))
}
