//! A request gives the same result whether it arrives whole or in pieces, and if accepted, the same
//! result as httparse.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tussah_wire::http::head;

#[path = "../../tests/it/compare.rs"]
mod compare;
#[path = "../../tests/it/session.rs"]
mod session;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(Some(head)) = head::parse(bytes, &head::Limits::default()) {
        compare::compare(bytes, &head);
    }
    let whole = session::run([bytes]);
    let pieces = session::run(bytes.chunks(1 + bytes.len() % 7));
    assert!(session::same(&whole, &pieces), "{whole:?} but {pieces:?}");
});
