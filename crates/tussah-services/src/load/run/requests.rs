//! The bytes of requests.

use std::io::IoSlice;

use fastrand::Rng;
use tussah_wire::http::Method;

use super::files::{self, FileNumber, FileSet, Popularity};
use super::paths::Paths;
use super::url::Url;

/// The parts of a request that do not depend on the target.
#[derive(Clone, Debug)]
pub(in crate::load) struct Message {
    pub(in crate::load) method: String,
    /// Names and values.
    pub(in crate::load) fields: Vec<(String, String)>,
    pub(in crate::load) body: Vec<u8>,
    /// True if the last request on a connection announces the end.
    pub(in crate::load) announces_end: bool,
}

/// The targets of the requests of a run.
#[derive(Clone, Debug)]
pub(in crate::load) enum Targets {
    /// The path of the URL.
    One,
    /// The files of a set below that path.
    Files(FileSet),
    /// A list of paths on the same server.
    Paths(Paths),
}

/// A random choice of targets, by their popularity.
#[derive(Debug)]
enum Choice {
    One,
    Files(Popularity),
    /// For each path, the cumulative share up to that path.
    Paths(Vec<f64>),
}

/// The requests of a run.
#[derive(Debug)]
pub(in crate::load) struct Requests {
    heads: Heads,
    /// The requests of the run in the form of the last request on a connection.
    last_heads: Option<Heads>,
    body: Vec<u8>,
    choice: Choice,
    /// The method, as far as it is relevant to responses.
    pub(in crate::load) method: Method,
}

/// All heads, concatenated.
#[derive(Debug)]
struct Heads {
    bytes: Vec<u8>,
    /// The end of each head.
    ends: Vec<usize>,
}

impl Requests {
    pub(in crate::load) fn new(url: &Url, targets: &Targets, message: Message) -> Self {
        let heads = |last| Heads::new(url, targets, &message, last);
        Self {
            heads: heads(false),
            last_heads: message.announces_end.then(|| heads(true)),
            choice: match targets {
                Targets::One => Choice::One,
                Targets::Files(set) => Choice::Files(Popularity::of(*set)),
                Targets::Paths(list) => {
                    Choice::Paths(files::cumulative(list.weights.iter().copied()))
                }
            },
            method: Method::from_token(message.method.as_bytes()),
            body: message.body,
        }
    }

    /// Chooses a target, and returns its number.
    pub(in crate::load) fn pick(&self, random: &mut Rng) -> u32 {
        match &self.choice {
            Choice::One => 0,
            Choice::Files(files) => files.pick(random).0,
            Choice::Paths(shares) => files::sample(shares, random.f64()) as u32,
        }
    }

    /// Returns the file with the number of a target, if the requests are for a set.
    pub(in crate::load) fn file(&self, target: u32) -> Option<FileNumber> {
        matches!(self.choice, Choice::Files(_)).then_some(FileNumber(target))
    }

    /// Returns the head and the body.
    pub(in crate::load) fn parts(&self, target: u32, last: bool) -> [&[u8]; 2] {
        let heads = match &self.last_heads {
            Some(heads) if last => heads,
            _ => &self.heads,
        };
        [heads.get(target as usize), &self.body]
    }

    /// Returns the unwritten part of a partially written request.
    pub(in crate::load) fn rest<'a>(
        &'a self,
        target: u32,
        last: bool,
        mut written: usize,
        mut add: impl FnMut(IoSlice<'a>),
    ) {
        for part in self.parts(target, last) {
            let skip = written.min(part.len());
            written -= skip;
            if skip < part.len() {
                add(IoSlice::new(&part[skip..]));
            }
        }
    }

    /// Returns the length of a request in bytes.
    pub(in crate::load) fn len(&self, target: u32, last: bool) -> usize {
        self.parts(target, last).iter().map(|part| part.len()).sum()
    }
}

impl Heads {
    fn new(url: &Url, targets: &Targets, message: &Message, last: bool) -> Self {
        let mut heads = Self {
            bytes: Vec::new(),
            ends: Vec::new(),
        };
        let mut fields = String::new();
        let has = |name: &str| {
            let mut names = message.fields.iter().map(|(name, _)| name);
            names.any(|other| other.eq_ignore_ascii_case(name))
        };
        if !has("host") {
            fields += &format!("Host: {}\r\n", url.authority());
        }
        if !message.body.is_empty() && !has("content-length") && !has("transfer-encoding") {
            fields += &format!("Content-Length: {}\r\n", message.body.len());
        }
        for (name, value) in &message.fields {
            fields += &format!("{name}: {value}\r\n");
        }
        if last {
            fields += "Connection: close\r\n";
        }
        let mut add = |path: &str| {
            let method = &message.method;
            let head = format!("{method} {path} HTTP/1.1\r\n{fields}\r\n");
            heads.bytes.extend_from_slice(head.as_bytes());
            heads.ends.push(heads.bytes.len());
        };
        match targets {
            Targets::One => add(&url.path),
            Targets::Files(set) => {
                let base = url.path.trim_end_matches('/');
                let files = (0..set.files()).map(|number| FileNumber(number as u32));
                files.for_each(|file| add(&format!("{base}/{}", file.path())));
            }
            Targets::Paths(list) => list.paths.iter().for_each(|path| add(path)),
        }
        heads
    }

    fn get(&self, at: usize) -> &[u8] {
        let from = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[from..self.ends[at]]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message() -> Message {
        Message {
            method: "GET".to_owned(),
            fields: vec![("Accept".to_owned(), "*/*".to_owned())],
            body: Vec::new(),
            announces_end: true,
        }
    }

    fn text(requests: &Requests, target: u32, last: bool) -> String {
        String::from_utf8(requests.parts(target, last).concat()).expect("text")
    }

    #[test]
    fn one_path() {
        let url = Url::parse("http://a:81/x?y").expect("a URL");
        let requests = Requests::new(&url, &Targets::One, message());
        let expected = "GET /x?y HTTP/1.1\r\nHost: a:81\r\nAccept: */*\r\n\r\n";
        assert_eq!(text(&requests, 0, false), expected);
        assert!(text(&requests, 0, true).contains("\r\nConnection: close\r\n\r\n"));
        let body = Message {
            body: b"abc".to_vec(),
            method: "POST".to_owned(),
            fields: vec![("host".to_owned(), "b".to_owned())],
            announces_end: false,
        };
        let requests = Requests::new(&url, &Targets::One, body);
        let expected = "POST /x?y HTTP/1.1\r\nContent-Length: 3\r\nhost: b\r\n\r\nabc";
        assert_eq!(text(&requests, 0, true), expected);
        assert_eq!(requests.len(0, true), expected.len());
        for written in 0..expected.len() {
            let mut rest = Vec::new();
            requests.rest(0, true, written, |part| rest.extend_from_slice(&part));
            assert_eq!(rest, &expected.as_bytes()[written..]);
        }
    }

    #[test]
    fn files_of_a_set() {
        let url = Url::parse("http://a/base/").expect("a URL");
        let set = FileSet::of(2).expect("a set");
        let requests = Requests::new(&url, &Targets::Files(set), message());
        let begins = |number: u32, line: &str| {
            let text = text(&requests, number, false);
            assert!(text.starts_with(line), "{text}");
        };
        begins(0, "GET /base/dir00000/class0_0 HTTP/1.1\r\nHost: a\r\n");
        begins(71, "GET /base/dir00001/class3_8 HTTP/1.1\r\nHost: a\r\n");
        assert_eq!(requests.file(71), Some(FileNumber(71)));
    }

    #[test]
    fn paths_of_a_list() {
        let url = Url::parse("http://a/base/").expect("a URL");
        let list = Paths::parse(b"/a\n3 /b?c\n").expect("a list");
        let requests = Requests::new(&url, &Targets::Paths(list), message());
        let second = text(&requests, 1, false);
        assert!(
            second.starts_with("GET /b?c HTTP/1.1\r\nHost: a\r\n"),
            "{second}"
        );
        assert_eq!(requests.file(1), None, "its length is not known");
        let mut random = Rng::with_seed(1);
        let of_second: u32 = (0..4000).map(|_| requests.pick(&mut random)).sum();
        assert!((2900..3100).contains(&of_second), "{of_second} of 4000");
    }
}
