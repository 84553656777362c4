//! The texts of errors.

use std::io::ErrorKind;

use tussah::OpError;
use tussah::fs::{self, File};

use super::{both, read_write};

#[test]
fn an_error_names_operation_and_path() {
    both(async |_, _| {
        let error = File::open("/no/such").await.expect_err("it is not there");
        assert_eq!(
            error.to_string(),
            "open /no/such: No such file or directory (os error 2)"
        );
        assert_eq!(error.kind(), ErrorKind::NotFound);
        let inner = OpError::of(&error).expect("the system said so");
        assert_eq!(inner.raw_os_error(), Some(2));
        assert_eq!((inner.operation(), inner.object()), ("open", "/no/such"));
    });
}

#[test]
fn a_directory_is_no_file() {
    both(async |_, place| {
        let path = place.path("directory");
        fs::create_dir(&path).await.expect("made");
        let error = File::create(&path).await.expect_err("it is a directory");
        assert_eq!(error.kind(), ErrorKind::IsADirectory);
        let text = format!("open {}: Is a directory (os error 21)", path.display());
        assert_eq!(error.to_string(), text);
        // It can be opened, but not read.
        let error = fs::read(&path).await.expect_err("it is a directory");
        assert_eq!(error.kind(), ErrorKind::IsADirectory);
    });
}

#[test]
fn a_full_device_says_so() {
    both(async |_, _| {
        let full = File::options().write(true).open("/dev/full").await;
        let (written, buffer) = full.expect("open").write_all_at("too much", 0).await;
        let error = written.expect_err("it is full");
        assert_eq!(error.kind(), ErrorKind::StorageFull);
        assert_eq!(
            error.to_string(),
            "write /dev/full: No space left on device (os error 28)"
        );
        assert_eq!(buffer, "too much");
    });
}

#[test]
fn nonsense_is_refused() {
    both(async |_, place| {
        let path = place.path("file");
        let invalid = async |result: std::io::Result<File>, text: &str| {
            let error = result.expect_err("it makes no sense");
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
            assert!(error.to_string().ends_with(text), "{error}");
        };
        invalid(
            File::options().open(&path).await,
            "expected one of read, write and append",
        )
        .await;
        let created = File::options().read(true).create(true).open(&path).await;
        invalid(created, "has to be opened for writing").await;
        let mut options = File::options();
        let both = options.append(true).truncate(true).open(&path).await;
        invalid(both, "truncated and opened for appending").await;
        invalid(File::open("a\0b").await, "a NUL byte").await;
        let file = read_write().open(&path).await.expect("open");
        let (read, _) = file.read_at(vec![0; 1], u64::MAX).await;
        assert_eq!(read.expect_err("too far").kind(), ErrorKind::InvalidInput);
        let (written, _) = file.write_at("x", 1 << 63).await;
        assert_eq!(
            written.expect_err("too far").kind(),
            ErrorKind::InvalidInput
        );
    });
}

#[test]
#[should_panic = "no runtime here"]
fn outside_of_a_runtime_it_panics() {
    let _ = futures_lite::future::block_on(File::open("/"));
}
