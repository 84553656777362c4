//! The file set: generation, requests, and comparison.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

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

#[test]
fn the_paths_of_a_list_are_requested_by_weight() {
    let directory = tempfile::tempdir().expect("a directory");
    let list = directory.path().join("mix.txt");
    fs::write(&list, "# a mix\n/rare\n9 /often?x=1\n").expect("it can be written");
    let rare = Arc::new(AtomicU64::new(0));
    let seen = Arc::clone(&rare);
    let server = Server::start(move |request| {
        let path = request.head.split(' ').nth(1);
        match path.expect("a request has a path") {
            "/rare" => drop(seen.fetch_add(1, Ordering::Relaxed)),
            path => assert_eq!(path, "/often?x=1"),
        }
        Action::Send(ok(b"any length"))
    });
    let options = format!("--paths {} -c 4 -n 1000", list.display());
    let summary = summary(&format!("{}/ignored {options}", server.url()));
    assert_eq!(summary.requests.served, 1000, "{:?}", summary.errors);
    assert_eq!(summary.parameters.paths.as_ref(), Some(&list));
    // A tenth, and five standard deviations.
    let rare = rare.load(Ordering::Relaxed);
    assert!((53..147).contains(&rare), "{rare} of 1000");
}

#[test]
fn a_wrong_list_of_paths_is_named() {
    let directory = tempfile::tempdir().expect("a directory");
    let list = directory.path().join("mix.txt");
    let check = |expected: &str| {
        let (status, text) = ended(&format!("http://127.0.0.1:1/ --paths {}", list.display()));
        assert_eq!(status, 2, "{text}");
        assert!(text.contains(expected), "{text}");
    };
    check("mix.txt: No such file");
    fs::write(&list, "/a\nb\n").expect("it can be written");
    check("mix.txt: line 2: expected a path such as `/a?b=c`");
}
