//! Comparison with httparse.

use tussah_wire::http::head::{self, Head};

/// Parses an accepted head with httparse and compares the results.
pub fn compare(bytes: &[u8], head: &Head) {
    let mut fields = [httparse::EMPTY_HEADER; 128];
    let mut request = httparse::Request::new(&mut fields);
    // httparse does not know later minor versions; nothing else depends on the digit.
    let mut bytes = bytes.to_vec();
    let version_end = bytes
        .windows(2)
        .skip(8)
        .position(|two| two == b"\r\n")
        .map_or(0, |at| at + 8);
    if head.version == head::Version::Http11 {
        bytes[version_end - 1] = b'1';
    }
    let len = match request.parse(&bytes) {
        Ok(httparse::Status::Complete(len)) => len,
        other => panic!(
            "httparse says {other:?} to {:?}",
            String::from_utf8_lossy(&bytes)
        ),
    };
    assert_eq!(len, head.len());
    assert_eq!(request.method.unwrap().as_bytes(), head.method_text(&bytes));
    assert_eq!(request.path.unwrap().as_bytes(), head.target(&bytes));
    assert_eq!(
        request.version == Some(1),
        head.version == head::Version::Http11
    );
    // httparse keeps trailing white space of a value.
    let theirs: Vec<_> = request
        .headers
        .iter()
        .map(|field| (field.name.as_bytes(), field.value.trim_ascii()))
        .collect();
    let ours: Vec<_> = head.fields(&bytes).collect();
    assert_eq!(ours, theirs);
}
