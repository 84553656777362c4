//! The file set: generation, requests, and comparison.

use std::fs;
use std::path::Path;

use super::server::{Action, Server, ok};
use super::{ended, summary};

/// Creates a set of one directory.
fn made(root: &Path) {
    let (status, text) = ended(&format!("files --size 5MB {}", root.display()));
    assert_eq!(status, 0, "{text}");
    assert!(
        text.contains("1 directories, 36 files, 5.12 MB; 36 written, 0 existed"),
        "{text}"
    );
}

/// Serves the files below a directory, each changed by a function.
fn serve(root: &Path, change: fn(Vec<u8>) -> Vec<u8>) -> Server {
    let root = root.to_owned();
    Server::start(move |request| {
        let path = request
            .head
            .split(' ')
            .nth(1)
            .expect("a request has a path");
        let bytes = fs::read(root.join(path.trim_start_matches("/base/"))).expect("it is there");
        Action::Send(ok(&change(bytes)))
    })
}

#[test]
fn made_once_and_asked_for() {
    let root = tempfile::tempdir().expect("a directory");
    let root = root.path();
    made(root);
    let (status, text) = ended(&format!("files --size 5MB {}", root.display()));
    assert_eq!(status, 0);
    assert!(text.contains("0 written, 36 existed"), "{text}");
    let server = serve(root, |bytes| bytes);
    let run = |files: &str| {
        let options = format!("--files {files} --check-every 1 -c 4 -n 400");
        summary(&format!("{}/base {options}", server.url()))
    };
    let by_directory = run(&root.display().to_string());
    assert_eq!(
        by_directory.requests.served, 400,
        "{:?}",
        by_directory.errors
    );
    assert_eq!(by_directory.parameters.file_directories, Some(1));
    // The mean of the SPECweb99 mix is about 15 KB.
    assert!(by_directory.bytes > 400 * 5_000, "{}", by_directory.bytes);
    assert_eq!(run("5MB").requests.served, 400);
}

#[test]
fn wrong_bodies_are_found() {
    let root = tempfile::tempdir().expect("a directory");
    let root = root.path();
    made(root);
    let check = |change: fn(Vec<u8>) -> Vec<u8>, check_every: u32, wrong: u64| {
        let server = serve(root, change);
        let options = format!("--files 5MB --check-every {check_every} -c 2 -n 40");
        let summary = summary(&format!("{}/base/ {options}", server.url()));
        assert_eq!(summary.errors["wrong_body"], wrong, "{:?}", summary.errors);
        assert_eq!(summary.requests.served, 40 - wrong);
    };
    fn shorter(mut bytes: Vec<u8>) -> Vec<u8> {
        bytes.pop();
        bytes
    }
    fn changed(mut bytes: Vec<u8>) -> Vec<u8> {
        *bytes.last_mut().expect("no file is empty") ^= 1;
        bytes
    }
    check(shorter, 0, 40);
    check(changed, 1, 40);
    check(changed, 0, 0);
}

#[test]
fn sets_that_cannot_be() {
    let check = |arguments: &str, expected: &str| {
        let (status, text) = ended(arguments);
        assert_eq!(status, 2, "{arguments}: {text}");
        assert!(text.contains(expected), "{arguments}: {text}");
    };
    let root = tempfile::tempdir().expect("a directory");
    let root = root.path().display();
    check(
        &format!("files --size 1KB {root}"),
        "1 to 100000 directories",
    );
    check(&format!("files --size big {root}"), "expected a size");
    check(
        &format!("http://127.0.0.1:1 --files {root}"),
        "tussah load files --size",
    );
    check("http://127.0.0.1:1 --files /no/such", "no such directory");
}
