//! Whole files.

use std::io::ErrorKind;

use tussah::fs;

use super::both;

#[test]
fn whole_files_are_written_read_and_copied() {
    both(async |_, place| {
        let (a, b) = (place.path("a"), place.path("b"));
        for len in [0, 1, 511, 512, 65_536, 1_000_001] {
            let bytes: Vec<u8> = (0..len).map(|n| (n % 251) as u8).collect();
            fs::write(&a, bytes.clone()).await.expect("written");
            assert!(fs::read(&a).await.expect("read") == bytes, "{len}");
            assert_eq!(fs::copy(&a, &b).await.expect("copied"), len);
            assert!(fs::read(&b).await.expect("read") == bytes, "{len}");
        }
        fs::write(&a, "ä").await.expect("written");
        assert_eq!(fs::read_to_string(&a).await.expect("read"), "ä");
        fs::write(&a, b"\xFF").await.expect("written");
        let error = fs::read_to_string(&a).await.expect_err("no text");
        assert_eq!(error.kind(), ErrorKind::InvalidData);
    });
}

#[test]
fn a_file_that_says_it_is_empty_is_read() {
    both(async |_, _| {
        let status = fs::read_to_string("/proc/self/status").await;
        let status = status.expect("Linux has it");
        assert!(
            status.contains("Name:") && status.ends_with('\n'),
            "{status}"
        );
    });
}
