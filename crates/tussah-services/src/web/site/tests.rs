//! Tests of look-ups in a site, with each way to open files beneath its root.

use std::fs::{self, FileTimes};
use std::io::Read;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, UNIX_EPOCH};

use proptest::prelude::*;
use rustix::fs::{CWD, FileType, Mode, RenameFlags, mknodat, renameat_with};
use tempfile::TempDir;

use super::*;

const OPENERS: [Beneath; 2] = [Beneath::Kernel, Beneath::Steps];

/// The contents of files outside of the root, which must never be served.
const SECRET: &str = "secret";

/// Creates `root/` with files in it, beside a file that must stay invisible.
fn tree(files: &[&str]) -> TempDir {
    let place = tempfile::tempdir().unwrap();
    let root = place.path().join("root");
    fs::create_dir(&root).unwrap();
    fs::create_dir(place.path().join("outside")).unwrap();
    fs::write(place.path().join("outside/a"), SECRET).unwrap();
    fs::write(place.path().join("secret"), SECRET).unwrap();
    for file in files {
        let path = root.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, file).unwrap();
    }
    place
}

fn site(place: &TempDir, beneath: Beneath, options: SiteOptions) -> Site {
    let mut site = Site::open(&place.path().join("root"), options).unwrap();
    site.root.force(beneath);
    site
}

fn content(mut opened: Opened) -> String {
    let mut text = String::new();
    opened.file.read_to_string(&mut text).unwrap();
    text
}

/// Describes the outcome: a file by its contents.
fn outcome(result: Result<Found, Missing>) -> String {
    match result {
        Ok(Found::File(opened)) => content(opened),
        Ok(Found::Redirect { location }) => format!("-> {location}"),
        Ok(Found::Listing(_)) => "listing".into(),
        Ok(Found::Script { path }) => format!("run {}", String::from_utf8_lossy(&path)),
        Err(missing) => format!("{missing:?}"),
    }
}

/// Looks up each path with each opener.
fn check(place: &TempDir, options: &SiteOptions, table: &[(&str, &str)]) {
    for beneath in OPENERS {
        let site = site(place, beneath, options.clone());
        for (path, expected) in table {
            let found = outcome(site.look_up(path.as_bytes(), Codings::NONE));
            assert_eq!(found, *expected, "{path} by {beneath:?}");
        }
    }
}

#[test]
fn files_and_directories_are_found() {
    let place = tree(&["a.txt", "d/index.html", "d/\u{fc} b", "empty/.keep"]);
    check(
        &place,
        &SiteOptions::default(),
        &[
            ("/a.txt", "a.txt"),
            ("/a.txt/", "NotFound"),
            ("/a.txt/b", "NotFound"),
            ("/d/", "d/index.html"),
            ("/d//", "d/index.html"),
            ("//d/index.html", "d/index.html"),
            ("/d/\u{fc} b", "d/\u{fc} b"),
            ("/d", "-> /d/"),
            ("//d", "-> /d/"),
            ("/empty", "-> /empty/"),
            ("/empty/", "NotFound"),
            ("/", "NotFound"),
            ("/nothing", "NotFound"),
            ("/nothing/", "NotFound"),
            ("a.txt", "NotFound"),
            ("", "NotFound"),
        ],
    );
    let long = "/".to_owned() + &"x".repeat(300);
    let deep = "/x".repeat(5000);
    check(
        &place,
        &SiteOptions::default(),
        &[(&long, "NotFound"), (&deep, "NotFound")],
    );
}

#[test]
fn an_index_is_chosen_by_order() {
    let place = tree(&[
        "a/index.htm",
        "a/index.html",
        "b/index.htm",
        "c/index.html/x",
    ]);
    let index = vec!["index.html".into(), "index.htm".into()];
    let options = SiteOptions {
        index,
        ..SiteOptions::default()
    };
    check(
        &place,
        &options,
        &[
            ("/a/", "a/index.html"),
            ("/b/", "b/index.htm"),
            ("/c/", "NotFound"),
        ],
    );
    let options = SiteOptions {
        index: Vec::new(),
        ..SiteOptions::default()
    };
    check(&place, &options, &[("/a/", "NotFound")]);
}

#[test]
fn dotfiles_are_hidden() {
    let place = tree(&[
        ".env",
        ".git/config",
        ".well-known/x",
        "d/.htaccess",
        "index.html",
    ]);
    let table = [
        ("/.env", "NotFound"),
        ("/.git", "NotFound"),
        ("/.git/", "NotFound"),
        ("/.git/config", "NotFound"),
        ("/d/.htaccess", "NotFound"),
        ("/.well-known/x", ".well-known/x"),
    ];
    let mut options = SiteOptions {
        fallback: Some("index.html".into()),
        ..SiteOptions::default()
    };
    check(&place, &options, &table);
    options.dotfiles = Dotfiles::Served;
    check(
        &place,
        &options,
        &[("/.env", ".env"), ("/.git/config", ".git/config")],
    );
}

#[test]
fn links_are_followed_as_far_as_allowed() {
    let place = tree(&["a", "d/b"]);
    let root = place.path().join("root");
    symlink("a", root.join("beside")).unwrap();
    symlink("../a", root.join("d/above")).unwrap();
    symlink("d", root.join("directory")).unwrap();
    symlink("../root/a", root.join("out-and-in")).unwrap();
    symlink("../a", root.join("above-root")).unwrap();
    symlink("../secret", root.join("out")).unwrap();
    symlink("../outside", root.join("out-directory")).unwrap();
    symlink(place.path().join("secret"), root.join("absolute")).unwrap();
    symlink(root.join("a"), root.join("absolute-in")).unwrap();
    symlink("loop", root.join("loop")).unwrap();
    symlink("/proc/self/cwd", root.join("magic")).unwrap();
    symlink("nobody", root.join("dangling")).unwrap();
    let check = |symlinks, expected: [&str; 11]| {
        let paths = ["/beside", "/d/above", "/directory/b", "/out-and-in", "/out"];
        let more = [
            "/out-directory/a",
            "/absolute",
            "/absolute-in",
            "/loop",
            "/dangling",
            "/above-root",
        ];
        let paths = paths.into_iter().chain(more);
        let table: Vec<_> = paths.zip(expected).collect();
        check(
            &place,
            &SiteOptions {
                symlinks,
                ..SiteOptions::default()
            },
            &table,
        );
    };
    const NO: &str = "NotFound";
    check(Symlinks::None, [NO; 11]);
    check(
        Symlinks::Inside,
        ["a", "a", "d/b", NO, NO, NO, NO, "a", NO, NO, NO],
    );
    check(
        Symlinks::All,
        [
            "a", "a", "d/b", "a", SECRET, SECRET, SECRET, "a", NO, NO, NO,
        ],
    );
    let site = site(&place, Beneath::Kernel, SiteOptions::default());
    let magic = outcome(site.look_up(b"/magic/Cargo.toml", Codings::NONE));
    assert_eq!(magic, NO);
}

#[test]
fn absolute_links_are_followed_within_the_root() {
    let place = tree(&["a", "d/b", "d/sub/c"]);
    let root = place.path().join("root");
    symlink("root", place.path().join("alias")).unwrap();
    symlink("root", place.path().join("other")).unwrap();
    let link = |target: &str, name: &str| symlink(place.path().join(target), root.join(name));
    link("root", "whole").unwrap();
    link("root/", "whole-slash").unwrap();
    link("root//./d/b", "odd").unwrap();
    link("root/d", "directory").unwrap();
    link("root/d/../a", "up").unwrap();
    link("root/directory/sub", "d/twice").unwrap();
    link("alias/a", "by-alias").unwrap();
    // These links leave the root, although some of them lead back into it.
    link("root/../secret", "out").unwrap();
    link("root/../root/a", "out-and-in").unwrap();
    link("root-not/a", "longer-name").unwrap();
    link("other/a", "by-another-name").unwrap();
    symlink("/", root.join("top")).unwrap();
    let table = [
        ("/whole/a", "a"),
        ("/whole-slash/d/b", "d/b"),
        ("/odd", "d/b"),
        ("/directory/sub/c", "d/sub/c"),
        ("/up", "a"),
        ("/d/twice/c", "d/sub/c"),
        ("/by-alias", "a"),
        ("/out", "NotFound"),
        ("/out-and-in", "NotFound"),
        ("/longer-name", "NotFound"),
        ("/by-another-name", "NotFound"),
        ("/top/etc/passwd", "NotFound"),
    ];
    for beneath in OPENERS {
        // Both the path that opened the site and its real path are names of the root.
        let opened = Site::open(&place.path().join("alias"), SiteOptions::default());
        let mut site = opened.unwrap();
        site.root.force(beneath);
        for (path, expected) in table {
            let found = outcome(site.look_up(path.as_bytes(), Codings::NONE));
            assert_eq!(found, expected, "{path} by {beneath:?}");
            // Without waiting, the result is the same or unknown.
            let found = outcome(site.try_look_up(path.as_bytes(), Codings::NONE));
            assert!(
                found == expected || found == "WouldBlock",
                "{path} by {beneath:?}: {found}"
            );
        }
    }
}

#[test]
fn only_regular_files_are_given() {
    let place = tree(&[]);
    let root = place.path().join("root");
    let mode = Mode::RUSR | Mode::WUSR;
    mknodat(CWD, root.join("pipe"), FileType::Fifo, mode, 0).unwrap();
    let _socket = UnixListener::bind(root.join("socket")).unwrap();
    let table = [("/pipe", "NotAFile"), ("/socket", "NotAFile")];
    check(&place, &SiteOptions::default(), &table);
    let options = SiteOptions {
        symlinks: Symlinks::All,
        ..SiteOptions::default()
    };
    symlink("/dev/null", root.join("device")).unwrap();
    check(&place, &options, &[("/device", "NotAFile")]);
}

#[test]
fn without_permission_nothing_is_read() {
    // The superuser may read everything, so only the translation is left to test.
    assert_eq!(outcome(Err(rustix::io::Errno::ACCESS.into())), "Forbidden");
    assert_eq!(outcome(Err(rustix::io::Errno::PERM.into())), "Forbidden");
    assert!(matches!(rustix::io::Errno::MFILE.into(), Missing::Io(_)));
}

#[test]
fn a_fallback_is_for_places_only() {
    let place = tree(&["app/index.html", "a", "pages/x.html"]);
    let fallback = Some("/app/index.html".into());
    check(
        &place,
        &SiteOptions {
            fallback,
            ..SiteOptions::default()
        },
        &[
            ("/", "app/index.html"),
            ("/users/7", "app/index.html"),
            ("/pages/", "app/index.html"),
            ("/a", "a"),
            ("/pages", "-> /pages/"),
            ("/missing.js", "NotFound"),
        ],
    );
}

#[test]
fn scripts_are_run() {
    let place = tree(&[
        "a/index.html",
        "a/index.php",
        "b/index.php",
        "c/x.php",
        "index.php",
        "a.txt",
    ]);
    let with_fallback = |fallback| SiteOptions {
        index: vec!["index.php".into(), "index.html".into()],
        scripts: vec![".py".into(), ".php".into()],
        fallback,
        ..SiteOptions::default()
    };
    let mut options = with_fallback(None);
    let table = [
        ("/", "run /index.php"),
        ("/a/", "run /a/index.php"),
        ("/a", "-> /a/"),
        ("/c/", "NotFound"),
        ("/c/x.php", "run /c/x.php"),
        ("/none.php", "NotFound"),
        ("/a.txt/x.php", "NotFound"),
        ("/a.txt", "a.txt"),
    ];
    check(&place, &options, &table);
    options.index.reverse();
    let table = [("/a/", "a/index.html"), ("/b/", "run /b/index.php")];
    check(&place, &options, &table);
    // As a fallback, a script takes all paths where nothing is found.
    let table = [
        ("/a/", "run /a/index.php"),
        ("/a", "-> /a/"),
        ("/c/", "run /index.php"),
        ("/users/7", "run /index.php"),
        ("/feed.xml", "run /index.php"),
        ("/none.php", "run /index.php"),
        ("/.git/config", "NotFound"),
        ("/a.txt", "a.txt"),
    ];
    check(&place, &with_fallback(Some("/index.php".into())), &table);
}

#[test]
fn metadata_describes_the_file() {
    let place = tree(&["a.css"]);
    let path = place.path().join("root/a.css");
    let time = UNIX_EPOCH + Duration::new(784_111_777, 5);
    let set = |time| {
        let file = fs::File::options().write(true).open(&path).unwrap();
        file.set_times(FileTimes::new().set_modified(time)).unwrap();
    };
    set(time);
    let site = site(&place, Beneath::Kernel, SiteOptions::default());
    let meta = || match site.look_up(b"/a.css", Codings::ALL) {
        Ok(Found::File(opened)) => opened.meta,
        other => panic!("{other:?}"),
    };
    let first = meta();
    assert_eq!((first.len, first.modified), (5, time));
    assert_eq!(&*first.media_type, "text/css; charset=utf-8");
    assert_eq!((first.coding, first.vary), (None, false));
    assert_eq!(meta().etag, first.etag);
    set(time + Duration::from_nanos(1));
    assert_ne!(meta().etag, first.etag);
    set(UNIX_EPOCH - Duration::from_millis(1500));
    assert_eq!(meta().modified, UNIX_EPOCH - Duration::from_millis(1500));
}

#[test]
fn the_preferred_coding_is_chosen() {
    let place = tree(&[
        "a.js", "a.js.br", "a.js.gz", "b.js", "b.js.zst", "c.js", "d.js.gz",
    ]);
    const GZIP: Codings = Codings::NONE.with(Coding::Gzip);
    const ZSTD: Codings = Codings::NONE.with(Coding::Zstd);
    let table = [
        ("/a.js", Codings::ALL, "a.js.br", Some(Coding::Brotli), true),
        ("/a.js", GZIP, "a.js.gz", Some(Coding::Gzip), true),
        (
            "/a.js",
            ZSTD.with(Coding::Gzip).with(Coding::Brotli),
            "a.js.gz",
            Some(Coding::Gzip),
            true,
        ),
        ("/a.js", ZSTD, "a.js", None, true),
        ("/a.js", Codings::NONE, "a.js", None, true),
        ("/b.js", ZSTD, "b.js.zst", Some(Coding::Zstd), true),
        ("/b.js", GZIP, "b.js", None, true),
        ("/c.js", Codings::ALL, "c.js", None, false),
        ("/a.js.gz", Codings::ALL, "a.js.gz", None, false),
    ];
    for beneath in OPENERS {
        let site = site(&place, beneath, SiteOptions::default());
        for (path, preferred, expected, coding, vary) in table {
            let Ok(Found::File(opened)) = site.look_up(path.as_bytes(), preferred) else {
                panic!("{path}");
            };
            let told = (opened.meta.coding, opened.meta.vary);
            let types = ["text/javascript; charset=utf-8", "application/gzip"];
            assert_eq!(
                &*opened.meta.media_type,
                types[usize::from(path.ends_with(".gz"))]
            );
            assert_eq!(opened.meta.len, expected.len() as u64);
            assert_eq!(
                (content(opened).as_str(), told),
                (expected, (coding, vary)),
                "{path}"
            );
        }
        assert_eq!(outcome(site.look_up(b"/d.js", Codings::ALL)), "NotFound");
    }
    let only = SiteOptions {
        precompressed: GZIP,
        ..SiteOptions::default()
    };
    let site = site(&place, Beneath::Kernel, only);
    assert_eq!(outcome(site.look_up(b"/a.js", Codings::ALL)), "a.js.gz");
}

#[test]
fn stale_precompressed_files_are_skipped() {
    let place = tree(&["a.js", "a.js.br", "a.js.gz"]);
    let set = |name: &str, millis| {
        let path = place.path().join("root").join(name);
        let time = UNIX_EPOCH + Duration::from_millis(millis);
        let file = fs::File::options().write(true).open(path).unwrap();
        file.set_times(FileTimes::new().set_modified(time)).unwrap();
    };
    let site = site(&place, Beneath::Kernel, SiteOptions::default());
    let table = [
        (5_000, 5_000, 5_000, "a.js.br"),
        (5_900, 5_100, 5_000, "a.js.br"), // written within one second, in any order
        (6_000, 5_999, 6_000, "a.js.gz"),
        (6_000, 5_000, 5_000, "a.js"),
    ];
    for (original, brotli, gzip, expected) in table {
        set("a.js", original);
        set("a.js.br", brotli);
        set("a.js.gz", gzip);
        assert_eq!(
            outcome(site.look_up(b"/a.js", Codings::ALL)),
            expected,
            "{original}"
        );
    }
}

#[test]
fn a_precompressed_file_may_not_lead_outside() {
    let place = tree(&["a.js"]);
    symlink("../secret", place.path().join("root/a.js.gz")).unwrap();
    mknodat(
        CWD,
        place.path().join("root/a.js.br"),
        FileType::Fifo,
        Mode::RUSR,
        0,
    )
    .unwrap();
    for beneath in OPENERS {
        let site = site(&place, beneath, SiteOptions::default());
        assert_eq!(outcome(site.look_up(b"/a.js", Codings::ALL)), "a.js");
    }
}

#[test]
fn a_listing_shows_what_can_be_asked_for() {
    let place = tree(&["d/b.txt", "d/a<.txt", "d/sub/x", "d/.hidden", "e/x"]);
    let directory = place.path().join("root/d");
    symlink("../../secret", directory.join("out")).unwrap();
    symlink("b.txt", directory.join("in")).unwrap();
    mknodat(CWD, directory.join("pipe"), FileType::Fifo, Mode::RUSR, 0).unwrap();
    // No request can name these files, since their paths are rejected.
    for name in ["back\\slash", "line\nfeed", "escape\u{1b}", "delete\u{7f}"] {
        fs::write(directory.join(name), "").unwrap();
        fs::create_dir(directory.join(name.to_owned() + "d")).unwrap();
    }
    let links = |page: &[u8]| {
        let page = str::from_utf8(page).unwrap();
        let links = page.split("href=\"").skip(1);
        links
            .map(|rest| rest.split('"').next().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let options = SiteOptions {
        listing: true,
        ..SiteOptions::default()
    };
    for beneath in OPENERS {
        let site = site(&place, beneath, options.clone());
        let page = |path: &[u8]| match site.look_up(path, Codings::NONE) {
            Ok(Found::Listing(page)) => page,
            other => panic!("{other:?}"),
        };
        let expected = ["../", "./sub/", "./a%3C.txt", "./b.txt", "./in"];
        assert_eq!(links(&page(b"/d/")), expected, "{beneath:?}");
        assert_eq!(links(&page(b"/")), ["./d/", "./e/"], "{beneath:?}");
        assert_eq!(
            outcome(site.look_up(b"/nobody/", Codings::NONE)),
            "NotFound"
        );
        assert!(matches!(
            site.try_look_up(b"/d/", Codings::NONE),
            Err(Missing::WouldBlock)
        ));
    }
}

#[test]
fn a_listing_is_cut() {
    let place = tree(&[]);
    for n in 0..2001 {
        fs::write(place.path().join(format!("root/{n}")), "").unwrap();
    }
    let options = SiteOptions {
        listing: true,
        ..SiteOptions::default()
    };
    let site = site(&place, Beneath::Kernel, options);
    let rows = || match site.look_up(b"/", Codings::NONE) {
        Ok(Found::Listing(page)) => {
            let page = String::from_utf8(page).unwrap();
            (page.matches("<tr>").count(), page.contains("There is more"))
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(rows(), (2000, true));
    fs::remove_file(place.path().join("root/5")).unwrap();
    assert_eq!(rows(), (2000, false));
}

#[test]
fn a_lookup_without_waiting_finds_cached_entries() {
    let place = tree(&["d/index.html", "d/index.html.gz", "a"]);
    let site = site(&place, Beneath::Kernel, SiteOptions::default());
    if site.root.open_at(b".", OFlags::PATH, Wait::Never).is_err() {
        return; // The kernel can't be asked so.
    }
    for path in [&b"/d/"[..], b"/a", b"/nobody"] {
        // This brings all names into the kernel's cache, and nothing here is large enough to evict
        // them.
        let expected = outcome(site.look_up(path, Codings::ALL));
        let found = outcome(site.try_look_up(path, Codings::ALL));
        assert!(found == expected || found == "WouldBlock", "{found}");
    }
    assert_eq!(outcome(site.try_look_up(b"/a", Codings::ALL)), "a");
    for beneath in [Beneath::KernelWaits, Beneath::Steps] {
        let site = self::site(&place, beneath, SiteOptions::default());
        assert_eq!(outcome(site.try_look_up(b"/a", Codings::ALL)), "WouldBlock");
    }
}

#[test]
fn the_root_that_was_opened_stays() {
    let place = tree(&["a"]);
    let site = site(&place, Beneath::Kernel, SiteOptions::default());
    fs::rename(place.path().join("root"), place.path().join("moved")).unwrap();
    symlink("outside", place.path().join("root")).unwrap();
    assert_eq!(outcome(site.look_up(b"/a", Codings::NONE)), "a");
}

#[test]
fn pages_of_errors_must_be_there() {
    let place = tree(&["404.html", "d/x"]);
    let root = place.path().join("root");
    let with = |status, file: &str| SiteOptions {
        error_pages: [(status, file.to_owned())].into(),
        ..SiteOptions::default()
    };
    let site = Site::open(&root, with(404, "/404.html")).unwrap();
    assert_eq!(content(site.error_page(404).unwrap().unwrap()), "404.html");
    assert!(site.error_page(500).unwrap().is_none());
    let shown = root.display();
    let table = [
        (
            with(404, "nobody"),
            format!("cannot open \"nobody\" in {shown}, the page for 404: no such file"),
        ),
        (
            with(500, "../secret"),
            format!("cannot open \"../secret\" in {shown}, the page for 500: no such file"),
        ),
        (
            SiteOptions {
                fallback: Some("d".into()),
                ..SiteOptions::default()
            },
            format!("cannot open \"d\" in {shown}, the fallback: it is a directory"),
        ),
        (
            SiteOptions {
                scripts: vec![".html".into()],
                ..with(404, "404.html")
            },
            format!("cannot open \"404.html\" in {shown}, the page for 404: it is a script"),
        ),
    ];
    for (options, expected) in table {
        assert_eq!(
            Site::open(&root, options).unwrap_err().to_string(),
            expected
        );
    }
    let error = Site::open(&root.join("d/x"), SiteOptions::default())
        .unwrap_err()
        .to_string();
    let expected = format!("cannot open the directory {shown}/d/x: Not a directory (os error 20)");
    assert_eq!(error, expected);
}

/// Paths that an attacker would try to leave the root.
fn hostile_path() -> impl Strategy<Value = Vec<u8>> {
    let segment = prop_oneof![
        Just("..".to_owned()),
        Just(".".to_owned()),
        Just(String::new()),
        Just("d".to_owned()),
        Just("a".to_owned()),
        Just("out".to_owned()),
        Just("up".to_owned()),
        Just("outside".to_owned()),
        Just("secret".to_owned()),
        Just("root".to_owned()),
        Just("%2e%2e".to_owned()),
        Just("..%2f".to_owned()),
        Just("..\\".to_owned()),
        Just("\u{ff0e}\u{ff0e}".to_owned()),
        Just("..\0".to_owned()),
        Just("proc/self/root".to_owned()),
        Just("absolute".to_owned()),
        "[.a-z/%\\\\]{0,6}",
    ];
    let path = prop::collection::vec(segment, 0..8).prop_map(|s| format!("/{}", s.join("/")));
    prop_oneof![
        path.prop_map(String::into_bytes),
        prop::collection::vec(any::<u8>(), 0..40),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_path_leads_outside(paths in prop::collection::vec(hostile_path(), 64)) {
        let place = tree(&["a", "d/a", "d/d/a"]);
        let root = place.path().join("root");
        symlink("../outside", root.join("out")).unwrap();
        symlink("..", root.join("up")).unwrap();
        symlink("../..", root.join("d/up")).unwrap();
        symlink("d/d/../..", root.join("d/root")).unwrap();
        symlink(place.path(), root.join("absolute")).unwrap();
        for beneath in OPENERS {
            for listing in [false, true] {
                let site = site(&place, beneath, SiteOptions { listing, ..SiteOptions::default() });
                for path in &paths {
                    match site.look_up(path, Codings::ALL) {
                        Ok(Found::File(opened)) => prop_assert_ne!(content(opened), SECRET),
                        Ok(Found::Listing(page)) => {
                            let page = String::from_utf8(page).unwrap();
                            prop_assert!(!page.contains(">secret<"), "{}", page);
                        }
                        Ok(Found::Redirect { location }) => {
                            prop_assert!(location.starts_with('/') && !location.starts_with("//"));
                        }
                        Ok(Found::Script { .. }) => prop_assert!(false, "the site has none"),
                        Err(Missing::NotFound | Missing::Forbidden) => {}
                        Err(other) => prop_assert!(false, "{:?}", other),
                    }
                }
            }
        }
    }
}

/// While a directory and a link to the outside keep changing places, look-ups find either the file
/// in the directory or nothing.
#[test]
fn replacing_a_directory_with_a_link_does_not_lead_outside() {
    for symlinks in [Symlinks::None, Symlinks::Inside] {
        for beneath in OPENERS {
            let place = tree(&["d/a", "d/e/a", "e/a", "file"]);
            let root = place.path().join("root");
            symlink("../outside", root.join("link")).unwrap();
            symlink("../outside/a", root.join("file-link")).unwrap();
            // `e/back` resolves through `..` while `d` appears and disappears.
            symlink("../d/a", root.join("e/back")).unwrap();
            let site = site(
                &place,
                beneath,
                SiteOptions {
                    symlinks,
                    ..SiteOptions::default()
                },
            );
            let done = AtomicBool::new(false);
            std::thread::scope(|scope| {
                let swapper = scope.spawn(|| {
                    while !done.load(Ordering::Relaxed) {
                        for (one, other) in [("d", "link"), ("file", "file-link")] {
                            let (one, other) = (root.join(one), root.join(other));
                            renameat_with(CWD, &one, CWD, &other, RenameFlags::EXCHANGE).unwrap();
                        }
                    }
                });
                let mut seen = [0, 0];
                while seen.contains(&0) && !swapper.is_finished() {
                    for path in ["/d/a", "/d/e/a", "/link/a", "/e/back"] {
                        match outcome(site.look_up(path.as_bytes(), Codings::NONE)).as_str() {
                            "d/a" | "d/e/a" => seen[0] += 1,
                            "NotFound" => seen[1] += 1,
                            // The renames are too frequent for the kernel to be sure.
                            other if other.contains("Busy") => {}
                            other => {
                                done.store(true, Ordering::Relaxed);
                                panic!("{other} at {path} by {beneath:?}");
                            }
                        }
                    }
                }
                for _ in 0..10_000 {
                    for path in [&b"/d/a"[..], b"/file"] {
                        let found = outcome(site.look_up(path, Codings::ALL));
                        if found == SECRET {
                            done.store(true, Ordering::Relaxed);
                            panic!("{found} by {beneath:?}");
                        }
                    }
                }
                done.store(true, Ordering::Relaxed);
            });
        }
    }
}
