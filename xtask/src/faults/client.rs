//! The requests to the servers of the sweep, and the expected responses.

use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

use super::outcome::Step;

/// The time limit for a response.
const PATIENCE: Duration = Duration::from_secs(20);

/// The size of the large file, which is not kept in the cache.
const LARGE_BYTES: usize = 3_000_001;

/// The requests: a small file twice, since it is in the cache the second time; a large file; a
/// computed answer; and a listing.
pub(super) const PATHS: &[&str] = &[
    "/small.txt",
    "/small.txt",
    "/large.bin",
    "/work?compute=1ms&wait=1ms",
    "/missing",
    "/",
];

/// The requests to the video server: a video in two parts, a small file, and a listing.
pub(super) const VIDEO_PATHS: &[&str] = &["/film.webm", "/small.txt", "/missing", "/"];

/// The requests to the server with php-fpm: a script twice, since the server keeps the connection;
/// a script with a large response; and files.
pub(super) const PHP_PATHS: &[&str] = &[
    "/page.php",
    "/page.php",
    "/large.php",
    "/large.bin",
    "/missing",
];

/// The requests to the example `small_web`: a file that it caches, and a larger one.
pub(super) const SMALL_WEB_PATHS: &[&str] = &["/small.txt", "/small.txt", "/large.bin", "/missing"];

/// The requests to the router: files by their numbers, in the order of their names.
pub(super) const SHARED_PATHS: &[&str] = &["/get/2/large.bin", "/get/3/small.txt", "/missing"];

/// Returns the contents of the files that are served.
pub(super) fn files() -> [(&'static str, Vec<u8>); 3] {
    let large: Vec<_> = (0..LARGE_BYTES).map(|n| (n % 251) as u8).collect();
    [
        ("small.txt", b"a small file\n".to_vec()),
        ("large.bin", large.clone()),
        ("film.webm", large),
    ]
}

/// Returns the file with this name, or the output of this script.
fn named(name: &str) -> Option<Vec<u8>> {
    let name = match name {
        "page.php" => return Some(b"a page\n".to_vec()),
        "large.php" => "large.bin",
        name => name,
    };
    let mut files = files().into_iter();
    files.find_map(|(file, content)| (file == name).then_some(content))
}

/// Requests a path once, on a separate connection.
pub(super) fn get(tls: bool, address: &str, path: &str) -> Step {
    let answered = if tls {
        curl(address, path)
    } else {
        plain(
            address,
            &format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"),
        )
    };
    let name = path.rsplit('/').next().unwrap_or_default();
    judged(path, named(name), answered)
}

/// Sends a body, which does not fit in the server's buffer, to the script that returns it.
pub(super) fn post(address: &str) -> Step {
    let (path, body) = ("/post.php", "a line of a form\n".repeat(6000));
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    let answered = plain(address, &format!("{head}{body}"));
    judged(path, Some(body.into_bytes()), answered)
}

fn judged(path: &str, expected: Option<Vec<u8>>, answered: io::Result<Answer>) -> Step {
    let (status, length, body) = match answered {
        Ok(answered) => answered,
        Err(error) => return failed(&error),
    };
    match (status, expected) {
        (404, None) if path == "/missing" => Step::Right,
        (500.., _) => Step::Refused(format!("{path}: {status}")),
        (200, Some(expected)) if body == expected => Step::Right,
        (200, None) if path != "/" || lists_files(&body) => Step::Right,
        _ if length.is_some_and(|length| body.len() < length) => {
            Step::Cut(format!("{path}: cut off after {} bytes", body.len()))
        }
        _ => Step::Wrong(format!("{path}: {status} with {} bytes", body.len())),
    }
}

fn lists_files(body: &[u8]) -> bool {
    let body = String::from_utf8_lossy(body);
    files().iter().all(|(name, _)| body.contains(name))
}

/// Makes two requests on the same connection.
pub(super) fn pair(address: &str) -> Step {
    let one = "GET /small.txt HTTP/1.1\r\nHost: a\r\n\r\n";
    let two = "GET /small.txt HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    match plain(address, &format!("{one}{two}")) {
        Ok((500.., ..)) => Step::Refused("two requests".to_owned()),
        Ok((_, _, rest))
            if String::from_utf8_lossy(&rest)
                .matches("a small file\n")
                .count()
                == 2 =>
        {
            Step::Right
        }
        Ok((_, _, rest)) => Step::Cut(format!("two requests: cut off after {} bytes", rest.len())),
        Err(error) => failed(&error),
    }
}

/// Sends a line and expects this answer.
pub(super) fn echo(address: &str, expected: &str) -> Step {
    let talk = || {
        let mut stream = connect(address)?;
        stream.write_all(b"line\n")?;
        let mut line = vec![0; expected.len()];
        stream.read_exact(&mut line)?;
        Ok(line)
    };
    match talk() {
        Ok(line) if line == expected.as_bytes() => Step::Right,
        Ok(line) => Step::Wrong(String::from_utf8_lossy(&line).into_owned()),
        Err(error) => failed(&error),
    }
}

pub(super) fn failed(error: &io::Error) -> Step {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Step::Wrong("no answer".to_owned()),
        _ => Step::Cut(error.to_string()),
    }
}

pub(super) fn connect(address: &str) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    Ok(stream)
}

/// The status, the length that the head states, and everything after the head.
pub(super) type Answer = (u16, Option<usize>, Vec<u8>);

pub(super) fn plain(address: &str, request: &str) -> io::Result<Answer> {
    let mut stream = connect(address)?;
    stream.write_all(request.as_bytes())?;
    let mut answer = Vec::new();
    if let Err(error) = stream.read_to_end(&mut answer)
        && (answer.is_empty() || error.kind() == io::ErrorKind::WouldBlock)
    {
        return Err(error);
    }
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n");
    let end = end.ok_or(io::ErrorKind::UnexpectedEof)?;
    let body = answer.split_off(end + 4);
    let head = String::from_utf8_lossy(&answer).into_owned();
    let status = head.get(9..12).and_then(|code| code.parse().ok());
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("Content-Length: "));
    let length = length.and_then(|length| length.parse().ok());
    Ok((status.ok_or(io::ErrorKind::InvalidData)?, length, body))
}

fn curl(address: &str, path: &str) -> io::Result<Answer> {
    let mut curl = Command::new("curl");
    curl.args([
        "--silent",
        "--insecure",
        "--max-time",
        "20",
        "--write-out",
        "%{http_code}",
    ]);
    let mut output = curl.arg(format!("https://{address}{path}")).output()?;
    let code = output
        .stdout
        .split_off(output.stdout.len().saturating_sub(3));
    let status = std::str::from_utf8(&code)
        .ok()
        .and_then(|code| code.parse().ok());
    match (output.status.code(), status) {
        (Some(0), Some(status)) => Ok((status, None, output.stdout)),
        (Some(28), _) => Err(io::ErrorKind::TimedOut.into()),
        (code, _) => Err(io::Error::other(format!("curl ends with {code:?}"))),
    }
}
