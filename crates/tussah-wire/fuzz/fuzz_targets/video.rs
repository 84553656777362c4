//! The bytes of video files: what is found lies within the file, and nothing takes long.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tussah_wire::{mp4, mpeg_ts};

fuzz_target!(|bytes: &[u8]| {
    let (first, last) = bytes.split_at(bytes.len() / 2);
    let _ = mpeg_ts::duration_ms(first, last);
    let read = |at: u64, buffer: &mut [u8]| {
        let at = usize::try_from(at).expect("it is within the file");
        buffer.copy_from_slice(&bytes[at..at + buffer.len()]);
        Ok(())
    };
    let len = bytes.len() as u64;
    if let Ok(Some(movie)) = mp4::movie(len, read) {
        assert!(movie.init.end <= len);
        for pair in movie.fragments.windows(2) {
            assert_eq!(pair[0].bytes.end, pair[1].bytes.start);
        }
        assert!(movie.fragments.last().is_none_or(|last| last.bytes.end <= len));
    }
});
