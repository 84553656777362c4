//! The bytes of requests.

use std::io::IoSlice;

use fastrand::Rng;
use tussah_wire::http::Method;

use super::files::{FileNumber, FileSet, Popularity};
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

/// The requests of a run: for one path, or for the files of a set.
#[derive(Debug)]
pub(in crate::load) struct Requests {
    heads: Heads,
    /// The requests of the run in the form of the last request on a connection.
    last_heads: Option<Heads>,
    body: Vec<u8>,
    files: Option<Popularity>,
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
    pub(in crate::load) fn new(url: &Url, set: Option<FileSet>, message: Message) -> Self {
        let heads = |last| Heads::new(url, set, &message, last);
        Self {
            heads: heads(false),
            last_heads: message.announces_end.then(|| heads(true)),
            files: set.map(Popularity::of),
            method: Method::from_token(message.method.as_bytes()),
            body: message.body,
        }
    }

    /// Chooses a file, if the requests are for a set.
    pub(in crate::load) fn pick(&self, random: &mut Rng) -> Option<FileNumber> {
        self.files.as_ref().map(|files| files.pick(random))
    }

    /// Returns the head and the body.
    pub(in crate::load) fn parts(&self, file: Option<FileNumber>, last: bool) -> [&[u8]; 2] {
        let heads = match &self.last_heads {
            Some(heads) if last => heads,
            _ => &self.heads,
        };
        [
            heads.get(file.map_or(0, |file| file.0 as usize)),
            &self.body,
        ]
    }

    /// Returns the unwritten part of a partially written request.
    pub(in crate::load) fn rest<'a>(
        &'a self,
        file: Option<FileNumber>,
        last: bool,
        mut written: usize,
        mut add: impl FnMut(IoSlice<'a>),
    ) {
        for part in self.parts(file, last) {
            let skip = written.min(part.len());
            written -= skip;
            if skip < part.len() {
                add(IoSlice::new(&part[skip..]));
            }
        }
    }

    /// Returns the length of a request in bytes.
    pub(in crate::load) fn len(&self, file: Option<FileNumber>, last: bool) -> usize {
        self.parts(file, last).iter().map(|part| part.len()).sum()
    }
}

impl Heads {
    fn new(url: &Url, set: Option<FileSet>, message: &Message, last: bool) -> Self {
        let mut heads = Self {
            bytes: Vec::new(),
            ends: Vec::new(),
        };
        let (count, base) = match set {
            Some(set) => (set.files(), url.path.trim_end_matches('/')),
            None => (1, url.path.as_str()),
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
        for number in 0..count {
            let path = match set {
                Some(_) => format!("{base}/{}", FileNumber(number as u32).path()),
                None => base.to_owned(),
            };
            let method = &message.method;
            let head = format!("{method} {path} HTTP/1.1\r\n{fields}\r\n");
            heads.bytes.extend_from_slice(head.as_bytes());
            heads.ends.push(heads.bytes.len());
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

    fn text(requests: &Requests, file: Option<FileNumber>, last: bool) -> String {
        String::from_utf8(requests.parts(file, last).concat()).expect("text")
    }

    #[test]
    fn one_path() {
        let url = Url::parse("http://a:81/x?y").expect("a URL");
        let requests = Requests::new(&url, None, message());
        let expected = "GET /x?y HTTP/1.1\r\nHost: a:81\r\nAccept: */*\r\n\r\n";
        assert_eq!(text(&requests, None, false), expected);
        assert!(text(&requests, None, true).contains("\r\nConnection: close\r\n\r\n"));
        let body = Message {
            body: b"abc".to_vec(),
            method: "POST".to_owned(),
            fields: vec![("host".to_owned(), "b".to_owned())],
            announces_end: false,
        };
        let requests = Requests::new(&url, None, body);
        let expected = "POST /x?y HTTP/1.1\r\nContent-Length: 3\r\nhost: b\r\n\r\nabc";
        assert_eq!(text(&requests, None, true), expected);
        assert_eq!(requests.len(None, true), expected.len());
        for written in 0..expected.len() {
            let mut rest = Vec::new();
            requests.rest(None, true, written, |part| rest.extend_from_slice(&part));
            assert_eq!(rest, &expected.as_bytes()[written..]);
        }
    }

    #[test]
    fn files_of_a_set() {
        let url = Url::parse("http://a/base/").expect("a URL");
        let set = FileSet::of(2).expect("a set");
        let requests = Requests::new(&url, Some(set), message());
        let begins = |number: u32, line: &str| {
            let text = text(&requests, Some(FileNumber(number)), false);
            assert!(text.starts_with(line), "{text}");
        };
        begins(0, "GET /base/dir00000/class0_0 HTTP/1.1\r\nHost: a\r\n");
        begins(71, "GET /base/dir00001/class3_8 HTTP/1.1\r\nHost: a\r\n");
    }
}
