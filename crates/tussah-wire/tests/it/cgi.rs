//! CGI: properties that hold for arbitrary heads and paths.

use std::collections::HashSet;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use tussah_wire::cgi::{self, Context, Limits};
use tussah_wire::http::head;

use crate::differential::soup;

/// Pieces of heads, put together at random.
fn heads() -> impl Strategy<Value = Vec<u8>> {
    let words: &[&[u8]] = &[
        b"Status: 404 Not Found",
        b"Status: 200",
        b"Location: /a",
        b"Location: http://a/",
        b"Content-Type: text/html",
        b"Content-Length: 3",
        b"Set-Cookie: a=b",
        b"X:",
        b"\n",
        b"\n",
        b"\r\n",
        b"\r",
        b" ",
        b"\0",
        b"HTTP/1.1 200 OK",
        b"body",
    ];
    vec(select(words), 0..12).prop_map(|words| words.concat())
}

proptest! {
    /// A head that is complete or refused does not depend on the bytes after it, and a head that is
    /// incomplete may still become complete.
    #[test]
    fn the_head_does_not_depend_on_later_bytes(bytes in heads(), limit in 0_usize..80) {
        let limits = Limits { head_bytes_max: limit, ..Limits::default() };
        let whole = cgi::parse(&bytes, &limits);
        for len in 0..bytes.len() {
            let part = cgi::parse(&bytes[..len], &limits);
            prop_assert!(part == Ok(None) || part == whole, "{:?} but {:?}", part, whole);
        }
        if let Ok(Some(head)) = whole {
            prop_assert!(head.len() <= limit && head.len() <= bytes.len());
            prop_assert!(head.fields(&bytes).all(|(_, value)| !value.contains(&b'\n')));
            prop_assert!(!head.is_local_redirect || head.location(&bytes).is_some());
        }
        if bytes.len() >= limit {
            prop_assert!(whole != Ok(None), "more than the limit is kept");
        }
    }

    #[test]
    fn a_head_is_read_as_written(
        fields in vec(("X-[a-z]{1,9}", "[!-~]([ -~]{0,20}[!-~])?"), 0..20),
        ends in vec(select(&["\n", "\r\n"][..]), 21),
        status in 200_u16..600,
    ) {
        let line = |(at, (name, value)): (usize, &(String, String))| format!("{name}: {value}{}", ends[at]);
        let lines: String = fields.iter().enumerate().map(line).collect();
        let text = format!("Status: {status}\n{lines}{}body", ends[20]);
        let head = cgi::parse(text.as_bytes(), &Limits::default()).unwrap().unwrap();
        prop_assert_eq!(head.status.code(), status);
        prop_assert_eq!(&text[head.len()..], "body");
        let read: Vec<_> = head.fields(text.as_bytes()).collect();
        let written: Vec<_> = fields.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())).collect();
        prop_assert_eq!(read, written);
    }

    #[test]
    fn no_bytes_panic(bytes in vec(any::<u8>(), 0..200)) {
        let _ = cgi::parse(&bytes, &Limits::default());
        cgi::split_path_info(&bytes, b".php");
    }

    #[test]
    fn the_parts_of_a_path_are_the_path(path in "(/|a|\\.php|\\.|\n){0,12}") {
        let (script, info) = cgi::split_path_info(path.as_bytes(), b".php");
        prop_assert_eq!([script, info].concat(), path.as_bytes());
        if !info.is_empty() {
            prop_assert!(script.len() > 4 && script.ends_with(b".php"));
            prop_assert!(info.len() > 1 && info[0] == b'/');
            // It is the last place.
            let later = (script.len() + 1..path.len() - 1).filter(|&at| path.as_bytes()[at] == b'/');
            prop_assert!(later.into_iter().all(|at| !path.as_bytes()[..at].ends_with(b".php")));
        }
    }

    /// No variable occurs twice, and no field can set one of another name.
    #[test]
    fn variables_are_distinct(bytes in soup()) {
        let Ok(Some(head)) = head::parse(&bytes, &head::Limits::default()) else {
            return Ok(());
        };
        let context = Context {
            script_name: b"/a.php",
            path_info: b"",
            document_root: b"",
            content_length: None,
            remote: ([192, 0, 2, 1], 50_000).into(),
            local: ([192, 0, 2, 2], 80).into(),
            server_name: b"",
            server_software: b"",
            is_https: true,
        };
        let mut names = Vec::new();
        cgi::variables(&head, &bytes, &context, |name, _| names.push(name.to_vec()));
        let distinct: HashSet<_> = names.iter().collect();
        prop_assert_eq!(names.len(), distinct.len());
        prop_assert!(names.iter().skip(21).all(|name| name.starts_with(b"HTTP_")));
        prop_assert!(names.len() <= 21 + head.fields(&bytes).count());
    }
}
