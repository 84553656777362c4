//! httparse accepts every response that the client parser accepts.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tussah_wire::http::{Method, body, head, response};

fuzz_target!(|bytes: &[u8]| {
    let Ok(Some(head)) = response::parse(bytes, Method::Get, &head::Limits::default()) else {
        return;
    };
    let mut fields = [httparse::EMPTY_HEADER; 128];
    let mut theirs = httparse::Response::new(&mut fields);
    // httparse does not know later minor versions.
    if matches!(bytes[7], b'0' | b'1') {
        assert_eq!(
            theirs.parse(bytes),
            Ok(httparse::Status::Complete(head.len()))
        );
        assert_eq!(theirs.code, Some(head.status.code()));
        assert_eq!(theirs.headers.len(), head.fields(bytes).count());
    }
    let Ok(mut decoder) = body::Decoder::new(head.framing, body::Limits::default()) else {
        return;
    };
    let mut rest = &bytes[head.len()..];
    while !rest.is_empty() && !decoder.is_done() {
        let Ok(step) = decoder.decode(rest) else {
            return;
        };
        assert!(step.consumed > 0 && step.body.end <= step.consumed);
        rest = &rest[step.consumed..];
    }
});
