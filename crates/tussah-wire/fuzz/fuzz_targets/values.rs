//! Field values and targets: the parsed results have the properties that they should have.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tussah_wire::http::range::Ranges;
use tussah_wire::http::{condition, date, encoding, head, response, target};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(path) = target::path(bytes) {
        assert!(path.starts_with(b"/"));
        assert!(
            path.split(|&byte| byte == b'/')
                .all(|segment| segment != b"." && segment != b"..")
        );
        assert!(!path.windows(2).any(|two| two == b"//"));
        assert!(
            !path
                .iter()
                .any(|byte| byte.is_ascii_control() || *byte == b'\\')
        );
    }
    // The path for route lookup equals the plain path, unless the plain path is refused. It has as
    // many segments as `segments` decodes.
    if let Ok(path) = target::path_with_escapes(bytes) {
        assert!(target::path(bytes).map_or(true, |plain| plain == path));
        assert!(!path.iter().any(|byte| byte.is_ascii_control() || *byte == b'\\'));
        let segments = target::segments(bytes).expect("it is the same path");
        assert_eq!(segments.count(), path.split(|&byte| byte == b'/').count() - 1);
    }
    target::query(bytes).for_each(drop);
    encoding::Accepted::parse([bytes]);
    if let Some(seconds) = date::parse(bytes) {
        assert_eq!(date::parse(&date::format(seconds)), Some(seconds));
    }
    let len = bytes.len() as u64;
    let total = match Ranges::parse(&[b"bytes=", bytes].concat(), len) {
        Ranges::Whole | Ranges::Unsatisfiable => 0,
        Ranges::Single(range) => range.len(),
        Ranges::Several(ranges) => ranges.iter().map(|range| range.len()).sum(),
    };
    assert!(total <= len);

    let mut out = Vec::new();
    let mut writer = response::HeadWriter::new(&mut out, tussah_wire::http::Status::OK);
    let is_written = writer.field("X", bytes).is_ok();
    writer.end();
    assert_eq!(
        out.iter().filter(|&&byte| byte == b'\n').count(),
        if is_written { 3 } else { 2 }
    );

    let current = condition::Validators {
        etag: Some("\"a\""),
        modified: Some(0),
    };
    for name in ["If-Match", "If-None-Match", "If-Range", "If-Modified-Since"] {
        let request = [
            b"GET / HTTP/1.1\r\nHost: a\r\n",
            name.as_bytes(),
            b": ",
            bytes,
            b"\r\n\r\n",
        ]
        .concat();
        if let Ok(Some(head)) = head::parse(&request, &head::Limits::default()) {
            condition::evaluate(&head, &request, Some(&current));
            condition::range_counts(&head, &request, &current);
        }
    }
});
