//! Every public future is `Send`, with borrowed, static and owned arguments, so that it can be
//! awaited inside of `spawn`.
//!
//! The checks are made by the compiler. Where it refuses one with "implementation of ... is not
//! general enough", a future's `Send` depends on a bound that holds for `'static` alone: inside of
//! an `async` block the compiler forgets which lifetimes are `'static`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

mod colored;
#[cfg(feature = "dns")]
mod dns;
mod flow;
mod fs;
mod net;
mod process;
mod stages;
mod threads;

/// Requires of a future what `spawn` requires.
fn spawned<F>(_: F)
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
}

/// Checks blocks that await what they are named after, in the form `file/without/src::function` or
/// `...::Type`.
macro_rules! futures {
    ($($name:literal ($($argument:ident: $kind:ty),* $(,)?) $body:block)*) => {
        pub(super) const CHECKED: &[&str] = &[$($name),*];
        #[allow(dead_code, unused_mut, unused_variables)]
        const _: () = {
            $(const _: () = {
                fn check($(mut $argument: $kind),*) {
                    super::spawned(async move $body);
                }
            };)*
        };
    };
}

/// Awaits a future with each kind of argument that a path or a name can be.
macro_rules! texts {
    ($text:ident => $future:expr) => {{
        let owned = String::new();
        {
            let $text = "static";
            let _ = $future.await;
        }
        {
            let $text = owned.as_str();
            let _ = $future.await;
        }
        {
            let $text = &owned;
            let _ = $future.await;
        }
        {
            let $text = owned.clone();
            let _ = $future.await;
        }
    }};
}

/// Awaits a future with each kind of argument that a path can be.
macro_rules! paths {
    ($path:ident => $future:expr) => {{
        super::texts!($path => $future);
        let owned = std::path::PathBuf::new();
        { let $path = owned.as_path(); let _ = $future.await; }
        { let $path = &owned; let _ = $future.await; }
        { let $path = owned.clone(); let _ = $future.await; }
    }};
}

/// Awaits a future with each kind of argument that an address can be.
macro_rules! addresses {
    ($address:ident => $future:expr) => {{
        super::texts!($address => $future);
        let owned = String::new();
        let one = std::net::SocketAddr::from(([127, 0, 0, 1], 80));
        let several = vec![one];
        { let $address = one; let _ = $future.await; }
        { let $address = several.as_slice(); let _ = $future.await; }
        { let $address = ("static", 80); let _ = $future.await; }
        { let $address = (owned.as_str(), 80); let _ = $future.await; }
        { let $address = (owned.clone(), 80); let _ = $future.await; }
    }};
}

use {addresses, futures, paths, texts};

/// The futures that each module checks.
fn checked() -> impl Iterator<Item = &'static str> {
    let modules = [
        colored::CHECKED,
        #[cfg(feature = "dns")]
        dns::CHECKED,
        flow::CHECKED,
        fs::CHECKED,
        net::CHECKED,
        process::CHECKED,
        stages::CHECKED,
        threads::CHECKED,
    ];
    modules.into_iter().flatten().copied()
}

/// The files of a folder and below.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("the folder is there") {
        let path = entry.expect("the folder can be read").path();
        if path.is_dir() {
            found.extend(files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found
}

/// The name in front of whatever ends it.
fn name(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_');
    &text[..end.unwrap_or(text.len())]
}

/// The names of the public functions of a source that give futures or streams, and of public types
/// that are one.
fn futures_of(source: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut lines = source.lines().map(str::trim_start);
    while let Some(line) = lines.next() {
        // The tests come last.
        if line.starts_with("mod tests {") {
            break;
        }
        if let Some(function) = line.strip_prefix("pub async fn ") {
            found.push(name(function));
        } else if let Some(function) = line.strip_prefix("pub fn ") {
            let mut head = line.to_owned();
            while !head.ends_with(['{', ';', '}']) {
                let Some(more) = lines.next() else { break };
                head.push_str(more);
            }
            let gives = head.rsplit_once("-> ").map_or("", |(_, gives)| gives);
            if gives.starts_with("impl Future") || gives.starts_with("impl Stream") {
                found.push(name(function));
            }
        } else if line.starts_with("impl")
            && let Some((_, future)) = line
                .split_once(" Future for ")
                .or_else(|| line.split_once(" Stream for "))
        {
            let public = format!("pub struct {}", name(future));
            let is = |line: &str| {
                line.trim_start()
                    .strip_prefix(&public)
                    .is_some_and(|rest| rest.starts_with([' ', '<', '(', ';']))
            };
            if source.lines().any(is) {
                found.push(name(future));
            }
        }
    }
    found
}

#[test]
fn every_public_future_is_in_the_list() {
    let mut expected = BTreeMap::<String, isize>::new();
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    // Of the core what is below files and sockets is not public here.
    let below = here.join("../tussah-core/src/driver");
    for source in [here.join("src"), here.join("../tussah-core/src")] {
        for file in files(&source) {
            let text = std::fs::read_to_string(&file).expect("the file can be read");
            let module = file
                .strip_prefix(&source)
                .expect("it is in there")
                .with_extension("");
            if file.starts_with(&below)
                || module.ends_with("loom_tests")
                || module.ends_with("tests")
            {
                continue;
            }
            for name in futures_of(&text) {
                *expected
                    .entry(format!("{}::{name}", module.display()))
                    .or_default() += 1;
            }
        }
    }
    #[cfg(not(feature = "dns"))]
    expected.retain(|name, _| !name.starts_with("dns/"));
    for name in checked() {
        *expected.entry(name.to_owned()).or_default() -= 1;
    }
    expected.retain(|_, missing| *missing != 0);
    assert!(
        expected.is_empty(),
        "expected each public future to be checked as often as it is there; too few (above 0) or too many: {expected:#?}"
    );
}

#[test]
fn futures_are_found_in_sources() {
    let source = "
        pub async fn one(path: &str) {}
        pub fn two<'a>(
            &'a self,
        ) -> impl Future<Output = ()> + Send {
        pub fn three(f: impl Future) -> u32 { 3 }
        pub(crate) async fn four() {}
        pub struct Five<T>(T);
        struct Six;
        impl<T> Future for Five<T> {
        impl Future for Six {
        pub fn seven(&self) -> impl Stream<Item = u8> + use<'_> {
        mod tests {
        pub async fn eight() {}
    ";
    assert_eq!(futures_of(source), ["one", "two", "Five", "seven"]);
}
