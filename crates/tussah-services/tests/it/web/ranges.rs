//! Parts of pages: of one in memory, and of one that is sent from its file.

use super::client::{Answer, request};
use super::server::{Server, Site, bytes};

/// Over the limit of the cache, which is set to 1000.
const LARGE: usize = 300_000;

fn server() -> Server {
    let site = Site::new()
        .file("small.bin", bytes(500))
        .file("large.bin", bytes(LARGE))
        .file("empty.bin", "");
    site.with(|config| config.cache.file_bytes = 1000).start()
}

/// Both pages, with their lengths.
const PAGES: [(&str, usize); 2] = [("/small.bin", 500), ("/large.bin", LARGE)];

#[test]
fn a_part_is_sent_with_its_content_range() {
    let server = server();
    for (path, len) in PAGES {
        let all = bytes(len);
        let end = len - 1;
        let table = [
            ("0-0".to_owned(), 0, 0),
            ("0-".to_owned(), 0, end),
            ("1-9".to_owned(), 1, 9),
            (format!("{end}-"), end, end),
            (format!("{end}-{end}"), end, end),
            ("100-99999999999999999999".to_owned(), 100, end),
            ("-1".to_owned(), end, end),
            ("-100".to_owned(), len - 100, end),
            (format!("-{}", 2 * len), 0, end),
        ];
        let mut client = server.connect();
        for (range, first, last) in table {
            let answer = client.get(path, &format!("Range: bytes={range}\r\n"));
            assert_eq!(answer.status, 206, "{path} {range}");
            assert_eq!(
                answer.expect_field("Content-Range"),
                format!("bytes {first}-{last}/{len}")
            );
            assert_eq!(answer.body, &all[first..=last], "{path} {range}");
        }
    }
}

#[test]
fn a_part_has_the_validators_of_the_whole() {
    let server = server();
    for (path, len) in PAGES {
        let whole = server.get(path, "");
        assert_eq!(whole.expect_field("Accept-Ranges"), "bytes");
        let part = server.get(path, "Range: bytes=3-\r\n");
        for name in [
            "ETag",
            "Last-Modified",
            "Content-Type",
            "Accept-Ranges",
            "Server",
        ] {
            assert_eq!(part.expect_field(name), whole.expect_field(name), "{name}");
        }
        assert_eq!(part.expect_field("Content-Length"), (len - 3).to_string());
    }
}

#[test]
fn missing_files_are_reported() {
    let server = server();
    for (path, len) in PAGES {
        for range in [
            format!("{len}-"),
            format!("{len}-{}", len + 10),
            "-0".into(),
        ] {
            let answer = server.get(path, &format!("Range: bytes={range}\r\n"));
            assert_eq!(
                (answer.status, answer.ends()),
                (416, false),
                "{path} {range}"
            );
            assert_eq!(
                answer.expect_field("Content-Range"),
                format!("bytes */{len}")
            );
        }
    }
}

#[test]
fn an_invalid_range_gets_the_whole_file() {
    let server = server();
    let many = "0-0,".repeat(40);
    for range in [
        "bytes=9-1",
        "bytes=",
        "bytes=a-b",
        "lines=0-1",
        "bytes 0-1",
        "bytes=0-1;x",
        &format!("bytes={many}2-2"),
    ] {
        for (path, len) in PAGES {
            let answer = server.get(path, &format!("Range: {range}\r\n"));
            assert_eq!(
                (answer.status, answer.body.len()),
                (200, len),
                "{path} {range}"
            );
        }
    }
    let twice = server.get("/small.bin", "Range: bytes=0-1\r\nRange: bytes=2-3\r\n");
    assert_eq!(twice.status, 200);
    let none = server.get("/empty.bin", "Range: bytes=0-\r\n");
    assert_eq!((none.status, none.body.len()), (200, 0));
}

#[test]
fn only_get_has_ranges() {
    let server = server();
    for (path, _) in PAGES {
        let range = "Range: bytes=0-1\r\n";
        let head = server.ask(request("HEAD", path, range));
        assert_eq!(
            (head.status, head.told()),
            (200, server.get(path, "").told())
        );
    }
}

/// The parts of an answer: their fields and their bytes.
fn parts(answer: &Answer) -> Vec<(String, Vec<u8>)> {
    let kind = answer.expect_field("Content-Type");
    let boundary = kind
        .strip_prefix("multipart/byteranges; boundary=")
        .expect("several parts");
    let (mut rest, mut parts) = (&answer.body[..], Vec::new());
    let find =
        |bytes: &[u8], what: &[u8]| bytes.windows(what.len()).position(|window| window == what);
    loop {
        let start = format!("\r\n--{boundary}\r\n");
        // The first boundary may lack the end of the line before it.
        if let Some(after) = rest
            .strip_prefix(start.as_bytes())
            .or(rest.strip_prefix(&start.as_bytes()[2..]))
        {
            let head = find(after, b"\r\n\r\n").expect("the head of a part") + 4;
            let len = find(&after[head..], format!("\r\n--{boundary}").as_bytes()).expect("an end");
            let text = String::from_utf8(after[..head].to_vec()).expect("a head is text");
            parts.push((text, after[head..head + len].to_vec()));
            rest = &after[head + len..];
        } else {
            assert_eq!(rest, format!("\r\n--{boundary}--\r\n").as_bytes());
            return parts;
        }
    }
}

#[test]
fn several_parts_are_sent_in_one_answer() {
    let server = server();
    for (path, len) in PAGES {
        let all = bytes(len);
        let mut client = server.connect();
        for (range, expected) in [
            ("0-0,-1", vec![0..1, len - 1..len]),
            ("400-, 2-3 ,,10-19", vec![400..len, 2..4, 10..20]),
            ("0-5,999999999-", vec![]),
        ] {
            let answer = client.get(path, &format!("Range: bytes={range}\r\n"));
            assert_eq!(answer.status, 206, "{path} {range}");
            if expected.is_empty() {
                assert_eq!(answer.body, &all[..6], "what is not there does not count");
                continue;
            }
            assert_eq!(answer.field("Content-Range"), None, "it is in the parts");
            let parts = parts(&answer);
            assert_eq!(parts.len(), expected.len());
            for ((head, body), range) in parts.iter().zip(expected) {
                let place = format!(
                    "Content-Range: bytes {}-{}/{len}\r\n",
                    range.start,
                    range.end - 1
                );
                assert!(head.contains(&place), "{head}");
                assert!(
                    head.contains("Content-Type: application/octet-stream\r\n"),
                    "{head}"
                );
                assert_eq!(*body, all[range], "{head}");
            }
        }
    }
}

#[test]
fn a_part_is_of_the_version_that_the_client_has() {
    let server = server();
    for (path, _) in PAGES {
        let whole = server.get(path, "");
        let (etag, date) = (
            whole.expect_field("ETag"),
            whole.expect_field("Last-Modified"),
        );
        let table = [
            (etag.clone(), 206),
            (date, 206),
            ("\"other\"".to_owned(), 200),
            (format!("W/{etag}"), 200),
            ("Sun, 06 Nov 1994 08:49:38 GMT".to_owned(), 200),
            ("Sun, 06 Nov 1994 08:49:36 GMT".to_owned(), 200),
            ("nonsense".to_owned(), 200),
        ];
        for (version, expected) in table {
            let answer = server.get(
                path,
                &format!("Range: bytes=0-1\r\nIf-Range: {version}\r\n"),
            );
            assert_eq!(answer.status, expected, "{path} {version}");
        }
    }
}

#[test]
fn the_maximum_number_of_parts_is_sent() {
    let server = server();
    for (path, len) in PAGES {
        let all = bytes(len);
        let ranges: Vec<_> = (0..32).map(|n| 7 * n..7 * n + 3).collect();
        let text = ranges
            .iter()
            .map(|range| format!("{}-{}", range.start, range.end - 1));
        let text = text.collect::<Vec<_>>().join(",");
        let answer = server.get(path, &format!("Range: bytes={text}\r\n"));
        let bodies: Vec<_> = parts(&answer).into_iter().map(|(_, body)| body).collect();
        let expected: Vec<_> = ranges
            .into_iter()
            .map(|range| all[range].to_vec())
            .collect();
        assert_eq!(bodies, expected, "{path}");
    }
}
