//! Operations on paths.

use std::io::ErrorKind;
use std::time::SystemTime;

use tussah::fs::{self, FileType};

use super::both;

#[test]
fn files_are_named_and_removed() {
    both(async |_, place| {
        let (a, b, c) = (place.path("a"), place.path("b"), place.path("c"));
        fs::write(&a, "content").await.expect("written");
        fs::hard_link(&a, &b).await.expect("linked");
        assert_eq!(fs::metadata(&a).await.expect("known").links, 2);
        fs::rename(&b, &c).await.expect("renamed");
        assert!(!fs::exists(&b).await.expect("known"));
        fs::symlink(&a, &b).await.expect("linked");
        assert!(fs::symlink_metadata(&b).await.expect("known").is_symlink());
        assert!(fs::metadata(&b).await.expect("known").is_file());
        assert_eq!(fs::read_link(&b).await.expect("known"), a);
        let whole = fs::canonicalize(&b).await.expect("known");
        assert_eq!(whole.file_name(), a.file_name());
        fs::remove_file(&b).await.expect("removed");
        fs::remove_file(&c).await.expect("removed");
        let error = fs::remove_file(&c).await.expect_err("it is gone");
        assert_eq!(error.kind(), ErrorKind::NotFound);
        let error = fs::rename(&c, &b).await.expect_err("it is gone");
        let names = format!("rename {} to {}: ", c.display(), b.display());
        assert!(error.to_string().starts_with(&names), "{error}");
    });
}

#[test]
fn directories_are_made_read_and_removed() {
    both(async |_, place| {
        let deep = place.path("x/y/z");
        fs::create_dir_all(&deep).await.expect("made");
        let made_twice = fs::create_dir(&deep).await.expect_err("it is there");
        assert_eq!(made_twice.kind(), ErrorKind::AlreadyExists);
        for n in 0..300 {
            std::fs::write(deep.join(n.to_string()), "").expect("written");
        }
        fs::create_dir(deep.join("directory")).await.expect("made");
        let mut entries = fs::read_dir(&deep).await.expect("it is there");
        let mut names = Vec::new();
        while let Some(entry) = entries.next().await {
            let entry = entry.expect("read");
            if entry.file_type() == FileType::Directory {
                assert_eq!(entry.file_name(), "directory");
                continue;
            }
            let name = entry.file_name().to_str().expect("digits");
            names.push(name.parse::<u32>().expect("digits"));
        }
        assert!(entries.next().await.is_none());
        names.sort_unstable();
        assert_eq!(names, (0..300).collect::<Vec<_>>());
        let error = fs::remove_dir(&deep).await.expect_err("it is not empty");
        assert_eq!(error.kind(), ErrorKind::DirectoryNotEmpty);
        fs::remove_dir(deep.join("directory")).await.expect("empty");
        fs::remove_dir_all(place.path("x")).await.expect("removed");
        let error = fs::read_dir(&deep).await.expect_err("it is gone");
        assert_eq!(error.kind(), ErrorKind::NotFound);
        let error = fs::remove_dir("/no/such").await.expect_err("not there");
        assert_eq!(
            error.to_string(),
            "remove /no/such: No such file or directory (os error 2)"
        );
    });
}

#[test]
fn a_file_type_knows_its_kind() {
    both(async |_, place| {
        let directory = place.path("d");
        fs::create_dir_all(directory.join("dir"))
            .await
            .expect("made");
        fs::write(directory.join("file"), "")
            .await
            .expect("written");
        fs::symlink("file", directory.join("link"))
            .await
            .expect("linked");
        let mut entries = fs::read_dir(&directory).await.expect("it is there");
        let mut seen = 0;
        while let Some(entry) = entries.next().await {
            let entry = entry.expect("read");
            let of_entry = entry.file_type();
            let known = fs::symlink_metadata(entry.path()).await.expect("known");
            assert_eq!(known.file_type(), of_entry);
            let is = [of_entry.is_file(), of_entry.is_dir(), of_entry.is_symlink()];
            let expected = ["file", "dir", "link"].map(|name| entry.file_name() == name);
            assert_eq!(is, expected, "{entry:?}");
            seen += 1;
        }
        assert_eq!(seen, 3);
    });
}

#[test]
fn metadata_is_that_of_the_standard_library() {
    use std::os::unix::fs::MetadataExt;
    both(async |_, place| {
        let path = place.path("file");
        fs::write(&path, vec![1; 5000]).await.expect("written");
        fs::set_permissions(&path, 0o640).await.expect("set");
        let (ours, theirs) = (
            fs::metadata(&path).await.expect("known"),
            std::fs::metadata(&path).expect("known"),
        );
        assert_eq!(ours.permissions(), 0o640);
        assert_eq!((ours.len, ours.mode), (theirs.len(), theirs.mode()));
        assert_eq!((ours.device, ours.inode), (theirs.dev(), theirs.ino()));
        assert_eq!((ours.user, ours.group), (theirs.uid(), theirs.gid()));
        assert_eq!(ours.modified, theirs.modified().expect("Linux has it"));
        assert_eq!(ours.created, theirs.created().ok());
        assert!(ours.modified <= SystemTime::now());
        let old = SystemTime::UNIX_EPOCH - std::time::Duration::from_millis(1500);
        let file = std::fs::File::options().write(true).open(&path);
        file.expect("open").set_modified(old).expect("set");
        assert_eq!(fs::metadata(&path).await.expect("known").modified, old);
    });
}
