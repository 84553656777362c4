//! Sends the corpus of requests to several servers, and reports where they differ from tussah and
//! which of them is right.

mod reasons;

use std::fs;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

use super::Common;
use super::bench::{Bench, Scratch};
use super::figures::Findings;
use super::site::Site;

/// Bound, in milliseconds: the maximum time for a server to react to a request. A server that is
/// silent for this long is waiting for more of the request.
const PATIENCE_MS: u64 = 400;

/// The servers in the comparison, which needs no features of a site.
const COMPARED: [&str; 3] = ["hyper", "nginx", "tussah"];

/// The request after each case, which shows whether the connection still works.
const LAST: &[u8] = b"GET /file HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

/// Runs `web corpus`.
pub fn corpus(common: &Common, folder: &Path) -> Result<Findings, String> {
    let scratch = Scratch::new()?;
    let site = Site::one_file(&scratch.path().join("site"), 7);
    let mut bench = Bench::new(common, &scratch, common.site(site)?, 2)?;
    bench.chosen.retain(|peer| COMPARED.contains(&peer.name));
    let servers = bench.start()?;
    let base = servers
        .iter()
        .position(|server| server.peer.name == common.base);
    let base = base.ok_or_else(|| format!("{} is not available", common.base))?;
    let mut rows = Vec::new();
    let cases = cases(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    for (name, bytes) in &cases {
        let words: Result<Vec<_>, _> = servers
            .iter()
            .map(|server| outcome(server.process.address, bytes))
            .collect();
        let words = words.map_err(|error| format!("{name}: {error}"))?;
        if words.iter().any(|word| *word != words[base]) {
            rows.push((name.as_str(), words));
        }
    }
    let names: Vec<_> = servers.iter().map(|server| server.peer.name).collect();
    Ok(Findings {
        about: reasons::tables(cases.len(), &names, &rows)?,
        base: common.base.clone(),
        missing: bench.missing,
        ..Findings::default()
    })
}

/// Returns the files of the corpus: names and contents.
fn cases(folder: &Path) -> std::io::Result<Vec<(String, Vec<u8>)>> {
    let mut cases = Vec::new();
    // An incomplete request is not incomplete with another one after it.
    let is_whole = |name: &str| !name.starts_with("more-") && !name.contains("+more-");
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if let (Some("http"), Some(name)) = (
            path.extension().and_then(|extension| extension.to_str()),
            path.file_stem()
                .and_then(|name| name.to_str())
                .filter(|name| is_whole(name)),
        ) {
            cases.push((name.to_owned(), fs::read(&path)?));
        }
    }
    cases.sort();
    Ok(cases)
}

/// Returns a server's reaction to a case: a word for each response, `ok` or the status of a
/// rejection, separated by `+`.
fn outcome(address: SocketAddr, case: &[u8]) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_millis(PATIENCE_MS)))?;
    // A server that rejected the beginning may have closed the connection.
    let _ = stream.write_all(&[case, LAST].concat());
    let mut bytes = Vec::new();
    let mut piece = [0; 4096];
    let ended = loop {
        match stream.read(&mut piece) {
            Ok(0) => break true,
            Ok(len) => bytes.extend_from_slice(&piece[..len]),
            Err(error) if error.kind() == ErrorKind::ConnectionReset => break true,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                break false;
            }
            Err(error) => return Err(error),
        }
    };
    let is_head = case.starts_with(b"HEAD ");
    Ok(words(&bytes, is_head, ended))
}

/// Returns the words for everything that a server sent.
fn words(mut bytes: &[u8], is_head: bool, ended: bool) -> String {
    let (mut words, mut refused) = (Vec::new(), false);
    while let Some(end) = memchr::memmem::find(bytes, b"\r\n\r\n") {
        let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
        let Some(status) = head.strip_prefix("http/1.").and_then(|rest| rest.get(2..5)) else {
            break;
        };
        let len = head.split("content-length: ").nth(1).map_or(0, |rest| {
            let digits = rest.split('\r').next().unwrap_or(rest);
            digits.parse().unwrap_or(0)
        });
        let body = if is_head && words.is_empty() { 0 } else { len };
        bytes = bytes.get(end + 4 + body..).unwrap_or_default();
        match status {
            "100" => continue,
            // This is the response to the last request; after a rejection there should be none.
            "200" if bytes.is_empty() && ended && refused => words.push("ok".to_owned()),
            "200" if bytes.is_empty() && ended => {}
            // The server understood the request. The file may not exist, or files may not have that
            // method.
            "200" | "204" | "403" | "404" | "405" => words.push("ok".to_owned()),
            refusal => {
                refused = true;
                words.push(refusal.to_owned());
            }
        }
    }
    match (words.is_empty(), ended) {
        _ if !bytes.is_empty() => "bytes without a head".to_owned(),
        (false, _) => words.join("+"),
        (true, true) => "closed".to_owned(),
        (true, false) => "waits".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_come_to_words() {
        let answer = |status: &str| format!("HTTP/1.1 {status} X\r\nContent-Length: 2\r\n\r\nhi");
        let check = |statuses: &[&str], ended: bool, expected: &str| {
            let bytes: String = statuses.iter().map(|status| answer(status)).collect();
            assert_eq!(
                words(bytes.as_bytes(), false, ended),
                expected,
                "{statuses:?}"
            );
        };
        check(&["404", "200"], true, "ok");
        check(&["404", "405", "200"], true, "ok+ok");
        check(&["400"], true, "400");
        check(&["404", "400"], true, "ok+400");
        check(&["400", "200"], true, "400+ok");
        check(&[], true, "closed");
        check(&[], false, "waits");
        assert_eq!(words(b"<html>", false, true), "bytes without a head");
    }
}
