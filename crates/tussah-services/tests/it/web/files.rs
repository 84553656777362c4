//! Files and directories, as clients see them.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::os::unix::net::UnixListener;

use tussah_services::web::config::CacheKind;
use tussah_services::web::site::{Dotfiles, FieldRule, Symlinks};

use super::client::request;
use super::server::{Server, Site, assert_same, bytes};

fn pairs(fields: &[(&str, &str)]) -> Vec<(String, String)> {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    fields.iter().map(owned).collect()
}

/// A site with everything in it.
fn site() -> Site {
    let site = Site::new()
        .file("index.html", "<p>root")
        .file("404.html", "<p>not here")
        .file("a.txt", "first\n")
        .file("a b\u{fc}.txt", "odd\n")
        .file("page.html", "<p>page")
        .file("page.html.gz", "gz of page")
        .file("page.html.br", "br of page")
        .file("page.html.zst", "zst of page")
        .file("image.svg", "<svg/>")
        .file("dir/index.html", "<p>dir")
        .file("list/one.txt", "1")
        .file("list/<two>.txt", "2")
        .file(".hidden/a.txt", "hidden")
        .file(".well-known/a.txt", "known")
        .file("medium.bin", bytes(100_000))
        .file("large.bin", bytes(2_000_000))
        .file("empty.txt", "");
    symlink("a.txt", site.path("inside.txt")).expect("a link");
    symlink("/etc/passwd", site.path("outside.txt")).expect("a link");
    symlink("/", site.path("top")).expect("a link");
    let rule =
        |pattern, fields: &[(&str, &str)]| FieldRule::new(pattern, pairs(fields)).expect("a rule");
    let rules = vec![
        rule(
            "*",
            &[("X-Content-Type-Options", "nosniff"), ("X-Two", "a, b")],
        ),
        rule("*.svg", &[("Cache-Control", "max-age=60"), ("X-Two", "")]),
    ];
    site.with(|config| {
        config.site.error_pages = [(404, "404.html".to_owned())].into();
        config.site.listing = true;
        config.site.rules = rules;
        config.site.cache_control = Some("no-cache".into());
    })
}

/// Paths of all kinds, with their statuses.
const PATHS: [(&str, u16); 20] = [
    ("/", 200),
    ("/a.txt", 200),
    ("/a%20b%C3%BC.txt", 200),
    ("/page.html", 200),
    ("/image.svg", 200),
    ("/dir/", 200),
    ("/dir", 301),
    ("/dir?x=%20y&z", 301),
    ("/list/", 200),
    ("/.well-known/a.txt", 200),
    ("/medium.bin", 200),
    ("/large.bin", 200),
    ("/empty.txt", 200),
    ("/inside.txt", 200),
    ("/outside.txt", 404),
    ("/top/etc/passwd", 404),
    ("/.hidden/a.txt", 404),
    ("/none", 404),
    ("/a.txt/b", 404),
    ("/list/one.txt?query", 200),
];

#[test]
fn each_path_has_its_answer() {
    let server = site().start();
    for (path, expected) in PATHS {
        server.check_status(path, expected);
    }
}

#[test]
fn head_has_the_fields_of_get() {
    let server = site().start();
    let mut client = server.connect();
    for (path, status) in PATHS.into_iter().chain([("/status", 200)]) {
        for lines in ["", "Accept-Encoding: br\r\n"] {
            let get = client.get(path, lines);
            // The requests so far are among what that page shows.
            let told = |text: String| text.replace(&get.expect_field("Content-Length"), "LEN");
            let head = client.ask(request("HEAD", path, lines));
            assert_eq!(head.status, status, "{path}");
            if path != "/status" {
                assert_eq!(told(head.told()), told(get.told()), "{path}");
                assert_eq!(
                    get.expect_field("Content-Length"),
                    get.body.len().to_string()
                );
            }
            assert!(head.body.is_empty() && head.field("Content-Length").is_some());
        }
    }
}

#[test]
fn a_cache_changes_nothing() {
    let kinds: Vec<Server> = [
        (CacheKind::Sharded, 200_000_000),
        (CacheKind::None, 200_000_000),
        // Room for very little.
        (CacheKind::Sharded, 20_000),
        (CacheKind::Sharded, 0),
    ]
    .into_iter()
    .map(|(kind, bytes)| {
        let change = |config: &mut tussah_services::web::config::Config| {
            config.cache.kind = kind;
            config.cache.bytes = bytes;
        };
        site().with(change).start()
    })
    .collect();
    let all = |server: &Server| -> Vec<_> {
        let mut client = server.connect();
        let conditions = [
            "",
            "Accept-Encoding: gzip, br\r\n",
            "Range: bytes=1-2,-1\r\n",
            "If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n",
        ];
        let asked = PATHS
            .iter()
            .flat_map(|(path, _)| conditions.map(|lines| (path, lines)));
        asked
            .map(|(path, lines)| {
                let answer = client.get(path, lines);
                // The tags have the numbers of the files, and the boundaries are random.
                let kept = |line: &&str| !line.starts_with("ETag: ");
                let head: Vec<_> = answer
                    .head
                    .lines()
                    .filter(kept)
                    .map(|line| line.split("boundary").next())
                    .map(Option::unwrap_or_default)
                    .filter(|line| !line.starts_with("Date"))
                    .map(str::to_owned)
                    .collect();
                let body = if answer.status == 206 {
                    Vec::new()
                } else {
                    answer.body
                };
                (*path, head, body)
            })
            .collect()
    };
    let expected = all(&kinds[0]);
    for server in &kinds {
        for _ in 0..2 {
            assert_eq!(all(server), expected);
        }
    }
}

#[test]
fn the_coding_is_one_that_the_client_takes() {
    let server = site().start();
    let mut client = server.connect();
    let table = [
        ("", None),
        ("identity", None),
        ("deflate", None),
        ("gzip", Some("gzip")),
        ("GZIP", Some("gzip")),
        ("x-gzip", Some("gzip")),
        ("zstd", Some("zstd")),
        ("gzip, deflate, br, zstd", Some("br")),
        ("gzip, zstd", Some("zstd")),
        ("br;q=0.5, gzip, zstd;q=0.7", Some("gzip")),
        ("br;q=0.5, gzip;q=0.1, zstd;q=0.7", Some("zstd")),
        ("br;q=0.1, gzip;q=0.6, zstd;q=0.6", Some("zstd")),
        ("*", Some("br")),
        ("br;q=0, *", Some("zstd")),
        ("br;q=0,zstd;q=0.0,gzip;q=0.001", Some("gzip")),
        ("gzip;q=0", None),
        ("gzip;q=0.5, identity", None),
        ("gzip;q=0.5, identity;q=0.4", Some("gzip")),
        ("gzip;q=1.001", None),
        ("*;q=0", None),
    ];
    for (accepted, expected) in table {
        let lines = match accepted {
            "" => String::new(),
            _ => format!("Accept-Encoding: {accepted}\r\n"),
        };
        let answer = client.get("/page.html", &lines);
        assert_eq!(
            answer.field("Content-Encoding").as_deref(),
            expected,
            "{accepted}"
        );
        assert_eq!(answer.expect_field("Vary"), "Accept-Encoding", "{accepted}");
        assert_eq!(
            answer.expect_field("Content-Type"),
            "text/html; charset=utf-8"
        );
        let body = match expected {
            None => "<p>page",
            Some("gzip") => "gz of page",
            Some("zstd") => "zst of page",
            Some(_) => "br of page",
        };
        assert_eq!(answer.text(), body, "{accepted}");
        // What has one form only does not vary.
        assert_eq!(client.get("/a.txt", &lines).field("Vary"), None);
    }
    let tag = |accepted: &str| server.get("/page.html", accepted).expect_field("ETag");
    assert_ne!(
        tag(""),
        tag("Accept-Encoding: br\r\n"),
        "they are not the same bytes"
    );
}

#[test]
fn a_part_of_a_coded_file_is_a_part_of_its_bytes() {
    let answer = site()
        .start()
        .get("/page.html", "Accept-Encoding: br\r\nRange: bytes=0-1\r\n");
    assert_eq!((answer.status, answer.text()), (206, "br"));
    assert_eq!(answer.expect_field("Content-Encoding"), "br");
    assert_eq!(answer.expect_field("Content-Range"), "bytes 0-1/10");
}

#[test]
fn directories_have_a_slash() {
    let server = site().start();
    let location = |path: &str| server.get(path, "").expect_field("Location");
    assert_eq!(location("/dir"), "/dir/");
    assert_eq!(location("/dir?a=b&c=%20"), "/dir/?a=b&c=%20");
    assert_eq!(location("//dir"), "/dir/");
    assert_eq!(location("http://other.example/list?"), "/list/?");
    assert_eq!(server.get("/dir/", "").text(), "<p>dir");
    let list = server.get("/list/", "");
    assert_eq!(
        list.expect_field("Content-Type"),
        "text/html; charset=utf-8"
    );
    assert!(
        list.text().contains("one.txt") && list.text().contains("&lt;two&gt;.txt"),
        "{}",
        list.text()
    );
    let server = site().with(|config| config.site.listing = false).start();
    server.check_status("/list/", 404);
    server.check_status("/list", 301);
}

#[test]
fn applications_do_their_own_routing() {
    let server = site()
        .with(|config| config.site.fallback = Some("page.html".into()))
        .start();
    for path in ["/some/place", "/none", "/list/two/"] {
        assert_eq!(server.get(path, "").text(), "<p>page", "{path}");
    }
    for path in ["/none.css", "/.hidden/a.txt"] {
        server.check_status(path, 404);
    }
    assert_eq!(server.get("/a.txt", "").text(), "first\n");
}

#[test]
fn errors_have_pages() {
    let server = site().start();
    let answer = server.get("/none.png", "");
    assert_eq!((answer.status, answer.text()), (404, "<p>not here"));
    assert_eq!(
        answer.expect_field("Content-Type"),
        "text/html; charset=utf-8"
    );
    let answer = server.ask(request("DELETE", "/a.txt", ""));
    assert_eq!(
        (answer.status, answer.text()),
        (405, "405 Method Not Allowed\n")
    );
    assert_eq!(
        answer.expect_field("Content-Type"),
        "text/plain; charset=utf-8"
    );
}

#[test]
fn answers_have_the_fields_that_are_set() {
    let server = site().start();
    let check = |path: &str, lines: &str, cache: Option<&str>, two: Option<&str>| {
        let answer = server.get(path, lines);
        let fields =
            ["Cache-Control", "X-Two", "X-Content-Type-Options"].map(|name| answer.field(name));
        let expected = [cache, two, Some("nosniff")].map(|value| value.map(str::to_owned));
        assert_eq!(fields, expected, "{path} {lines}");
    };
    check("/a.txt", "", Some("no-cache"), Some("a, b"));
    check(
        "/a.txt",
        "Range: bytes=0-0\r\n",
        Some("no-cache"),
        Some("a, b"),
    );
    check(
        "/a.txt",
        "Range: bytes=0-0,2-2\r\n",
        Some("no-cache"),
        Some("a, b"),
    );
    check(
        "/a.txt",
        "If-None-Match: *\r\n",
        Some("no-cache"),
        Some("a, b"),
    );
    check("/image.svg", "", Some("max-age=60"), None);
    check("/large.bin", "", Some("no-cache"), Some("a, b"));
    check("/dir", "", Some("no-cache"), Some("a, b"));
    check("/list/", "", Some("no-cache"), Some("a, b"));
    // An error has them as well, but is not kept as long as the page would be.
    check("/none.svg", "", None, None);
    check("/none", "", None, Some("a, b"));
}

#[test]
fn the_server_field_can_be_switched_off() {
    let answer = site().start().get("/a.txt", "");
    assert_eq!(answer.expect_field("Server"), "tussah");
    let server = site().with(|config| config.server_header = None).start();
    for path in ["/a.txt", "/none", "/status"] {
        assert_eq!(server.get(path, "").field("Server"), None);
    }
}

#[test]
fn dotfiles_are_served_if_configured() {
    let server = site()
        .with(|config| config.site.dotfiles = Dotfiles::Served)
        .start();
    server.check_status("/.hidden/a.txt", 200);
}

#[test]
fn links_are_followed_as_configured() {
    let check = |symlinks, inside, outside| {
        let server = site()
            .with(|config| config.site.symlinks = symlinks)
            .start();
        server.check_status("/inside.txt", inside);
        server.check_status("/outside.txt", outside);
    };
    check(Symlinks::None, 404, 404);
    check(Symlinks::Inside, 200, 404);
    check(Symlinks::All, 200, 200);
}

#[test]
fn a_path_that_is_not_a_regular_file_is_forbidden() {
    let site = site();
    let _socket = UnixListener::bind(site.path("socket")).expect("a socket");
    fs::set_permissions(site.path("a.txt"), fs::Permissions::from_mode(0o000)).expect("it is ours");
    // The superuser reads everything.
    let readable = fs::File::open(site.path("a.txt")).is_ok();
    let server = site.start();
    server.check_status("/socket", 403);
    server.check_status("/a.txt", if readable { 200 } else { 403 });
}

#[test]
fn changes_are_seen_after_a_second() {
    for kind in [CacheKind::Sharded, CacheKind::None] {
        let site = site().with(|config| config.cache.kind = kind);
        let (server, hand) = site.start_by_hand();
        let mut client = server.connect();
        assert_eq!(client.get("/a.txt", "").text(), "first\n");
        assert_same(&client.get("/large.bin", "").body, &bytes(2_000_000));
        server.check_status("/new.txt", 404);
        server.site.write("a.txt", "second, longer\n", 784_111_778);
        server.site.write("large.bin", "short", 784_111_778);
        server.site.write("new.txt", "new\n", 784_111_778);
        // What was not there is looked for each time.
        assert_eq!(server.get("/new.txt", "").text(), "new\n");
        if kind == CacheKind::Sharded {
            assert_eq!(
                client.get("/a.txt", "").text(),
                "first\n",
                "within the second"
            );
        }
        server.pass(&hand, 2);
        let answer = client.get("/a.txt", "");
        assert_eq!(answer.text(), "second, longer\n");
        assert_eq!(
            answer.expect_field("Last-Modified"),
            "Sun, 06 Nov 1994 08:49:38 GMT"
        );
        assert_eq!(client.get("/large.bin", "").text(), "short");
        fs::remove_file(server.site.path("a.txt")).expect("it is there");
        server.pass(&hand, 2);
        assert_eq!(client.get("/a.txt", "").status, 404);
    }
}

#[test]
fn a_replacement_of_equal_length_and_age_is_noticed() {
    for len in [6, 2_000_000] {
        let (server, hand) = site().start_by_hand();
        let content = |byte: &str| byte.repeat(len);
        server.site.write("page.bin", content("a"), 784_111_777);
        let before = server.get("/page.bin", "");
        assert_same(&before.body, content("a").as_bytes());
        // As `cp -p` does: the file is the same one, as long and as old. Two changes within a tick
        // of the file system's clock can't be told apart.
        let path = server.site.path("page.bin");
        let changed = || {
            let meta = fs::metadata(&path).expect("it is there");
            (meta.ctime(), meta.ctime_nsec())
        };
        let first = changed();
        while changed() == first {
            server.site.write("page.bin", content("b"), 784_111_777);
        }
        server.pass(&hand, 2);
        let after = server.get("/page.bin", "");
        assert_same(&after.body, content("b").as_bytes());
        assert_ne!(after.field("ETag"), before.field("ETag"));
    }
}

#[test]
fn last_modified_is_never_later_than_date() {
    let site = Site::new();
    // In the year 2100.
    site.write("late.txt", "late", 4_102_444_800);
    let server = site.start();
    for lines in ["", "Range: bytes=0-1\r\n"] {
        let answer = server.get("/late.txt", lines);
        let (modified, sent) = ["Last-Modified", "Date"]
            .map(|name| answer.expect_field(name))
            .into();
        assert_eq!(modified, sent, "{}", answer.head);
    }
    let modified = server.get("/late.txt", "").expect_field("Last-Modified");
    let since = format!("If-Modified-Since: {modified}\r\n");
    assert_eq!(server.get("/late.txt", &since).status, 304);
}

#[test]
fn a_page_that_has_not_changed_stays() {
    let (server, hand) = site().start_by_hand();
    let before = server.get("/medium.bin", "");
    server.pass(&hand, 5);
    let after = server.get("/medium.bin", "");
    assert_eq!(after.told(), before.told());
    assert_same(&after.body, &before.body);
}
