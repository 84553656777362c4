//! Playing, seeking, and everything that is not a stream.

use std::process::Command;

use super::server::{Videos, bytes};

#[test]
fn a_video_plays() {
    let server = Videos::new().file("a film.mp4", bytes(300_000)).start();
    let answer = server.get("/a%20film.mp4", "");
    assert_eq!(answer.status, 200);
    assert_eq!(answer.field("Content-Type"), Some("video/mp4"));
    assert_eq!(answer.field("Accept-Ranges"), Some("bytes"));
    assert!(answer.body == bytes(300_000));
    // The next video over the same connection, as a browser asks for it.
    let mut client = server.connect();
    for _ in 0..3 {
        client.play("/a%20film.mp4");
        assert!(client.read(300_000) == bytes(300_000));
    }
}

#[test]
fn a_player_seeks() {
    let server = Videos::new().file("a.webm", bytes(100_000)).start();
    let whole = bytes(100_000);
    let check = |range: &str, status: u16, content_range: Option<&str>, body: &[u8]| {
        let answer = server.get("/a.webm", &format!("Range: bytes={range}\r\n"));
        assert_eq!(answer.status, status, "{range}");
        assert_eq!(answer.field("Content-Range"), content_range, "{range}");
        assert!(answer.body == body, "{range}");
    };
    check("0-", 206, Some("bytes 0-99999/100000"), &whole);
    check(
        "70000-",
        206,
        Some("bytes 70000-99999/100000"),
        &whole[70_000..],
    );
    check("5-9", 206, Some("bytes 5-9/100000"), &whole[5..10]);
    check(
        "-10",
        206,
        Some("bytes 99990-99999/100000"),
        &whole[99_990..],
    );
    check("0-1,5-9", 200, None, &whole);
    check(
        "100000-",
        416,
        Some("bytes */100000"),
        b"416 Range Not Satisfiable\n",
    );
    let etag = server.get("/a.webm", "");
    let etag = etag.field("ETag").expect("a tag").to_owned();
    let answer = server.get("/a.webm", &format!("If-None-Match: {etag}\r\n"));
    assert_eq!((answer.status, answer.field("ETag")), (304, Some(&*etag)));
    let line = "If-Range: \"other\"\r\nRange: bytes=5-9\r\n";
    assert_eq!(server.get("/a.webm", line).status, 200);
    assert_eq!(server.get("/a.webm", "If-Match: \"other\"\r\n").status, 412);
}

#[test]
fn other_requests_have_their_answers() {
    let server = Videos::new()
        .file("a.mp4", bytes(1000))
        .file("page/index.html", "<video src=a.mp4>")
        .file("sub/b.mp4", bytes(1000))
        .file(".hidden.mp4", bytes(1000))
        .file("empty.mp4", "")
        .start();
    let check = |request: &str, status: u16| {
        let mut client = server.connect();
        client.ask(request);
        let answer = client.head();
        assert_eq!(answer.status, status, "{request}");
        answer
    };
    let get = |path: &str| format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(
        check("HEAD /a.mp4 HTTP/1.1\r\nHost: a\r\n\r\n", 200).len(),
        1000
    );
    assert_eq!(check(&get("/empty.mp4"), 200).len(), 0);
    assert_eq!(server.get("/page/", "").body, b"<video src=a.mp4>");
    let listing = String::from_utf8(server.get("/", "").body).expect("text");
    assert!(
        listing.contains("a.mp4") && !listing.contains("hidden"),
        "{listing}"
    );
    assert_eq!(check(&get("/sub"), 301).field("Location"), Some("/sub/"));
    check(&get("/none.mp4"), 404);
    check(&get("/.hidden.mp4"), 404);
    check(&get("/../a.mp4"), 400);
    check(
        "POST /a.mp4 HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n",
        405,
    );
    check("BREW /a.mp4 HTTP/1.1\r\nHost: a\r\n\r\n", 501);
    check("GET /a.mp4 HTTP/1.1\r\n\r\n", 400);
    check("nonsense\r\n\r\n", 400);
    check(&format!("GET /{} HTTP/1.1\r\n", "a".repeat(20_000)), 414);
    check(
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5000\r\n\r\n",
        413,
    );
    let page = server.get("/status", "Accept: text/html\r\n");
    let page = String::from_utf8(page.body).expect("text");
    assert!(page.contains("<svg") && page.contains("<th>late"), "{page}");
    assert!(page.contains("<th scope=row>disk#0"), "{page}");
    assert_eq!(server.get("/status?format=prometheus", "").status, 400);
}

#[test]
fn curl_plays_and_goes_on() {
    let server = Videos::new().file("a.mp4", bytes(500_000)).start();
    let url = format!("http://{}/a.mp4", server.address);
    let to = server.videos.path("copy");
    std::fs::write(&to, &bytes(500_000)[..200_000]).expect("there is room");
    let copy = to.to_str().expect("text");
    let curl = Command::new("curl")
        .args(["-sSf", "-C", "-", "-o", copy, &url])
        .status();
    assert!(curl.expect("curl is installed").success());
    assert!(std::fs::read(&to).expect("a copy") == bytes(500_000));
}

#[test]
fn a_video_that_becomes_shorter_ends_its_stream() {
    let server = Videos::new().file("a.mp4", bytes(1_000_000)).start();
    let mut client = server.connect();
    client.play("/a.mp4");
    client.read(600_000);
    server.expect_disk(0, "chunks", 12);
    let file = std::fs::File::options()
        .write(true)
        .open(server.videos.path("a.mp4"));
    file.expect("a file")
        .set_len(600_000)
        .expect("it is shorter");
    server.clock.advance(5 * super::server::S);
    assert_eq!(client.rest(), b"");
}
