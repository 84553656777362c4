//! Requests that php-fpm answers.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_lite::AsyncRead;
use futures_lite::io::empty;
use tussah::Runtime;
use tussah_services::fastcgi::{Backend, Failure, Options, Params};

use super::php::{CHILDREN, Php, wait_for};

pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = Runtime::builder().workers(2).build();
    runtime.expect("a runtime").block_on(future)
}

/// Sends a request, and returns the body of the response.
pub async fn ask(
    backend: &Backend,
    script: &str,
    method: &str,
    length: usize,
    body: impl AsyncRead + Unpin,
) -> Result<Vec<u8>, Failure> {
    let variables = [
        ("SCRIPT_FILENAME", script.to_owned()),
        ("REQUEST_METHOD", method.to_owned()),
        ("CONTENT_LENGTH", length.to_string()),
    ];
    let mut response = backend.request(Params::from_iter(variables), body).await?;
    let mut text = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        text.extend(chunk);
    }
    Ok(text)
}

/// A body of `left` bytes, which are made as they are read.
struct Made {
    left: usize,
}

impl AsyncRead for Made {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let len = buffer.len().min(self.left);
        for (byte, at) in buffer[..len].iter_mut().zip((1..=self.left).rev()) {
            *byte = value(at);
        }
        self.left -= len;
        Poll::Ready(Ok(len))
    }
}

/// The byte of a body after which `left` bytes follow, including itself.
fn value(left: usize) -> u8 {
    (left % 251) as u8
}

#[test]
fn connections_are_kept_and_shared() {
    let php = Php::start();
    let script = php.script(
        "a.php",
        "header('X-A: b'); echo $_SERVER['REQUEST_METHOD'];",
    );
    block_on(async {
        let backend = php.backend();
        for _ in 0..20 {
            let text = ask(&backend, &script, "GET", 0, empty()).await;
            assert_eq!(text.expect("a response"), b"GET");
            assert_eq!(backend.idle(), 1);
        }
        let all: Vec<_> = (0..20)
            .map(|_| {
                let (backend, script) = (backend.clone(), script.clone());
                tussah::spawn(async move { ask(&backend, &script, "PUT", 0, empty()).await })
            })
            .collect();
        for one in all {
            assert_eq!(one.await.expect("no panic").expect("a response"), b"PUT");
        }
        let stats = backend.limit().stats();
        assert_eq!((stats.in_use, stats.waiting, stats.acquired), (0, 0, 40));
        assert!(
            (1..=CHILDREN).contains(&backend.idle()),
            "{}",
            backend.idle()
        );
    });
}

/// Two pools take turns, each with as many connections as php-fpm has processes. The second runtime
/// shows that the end of the first one leaves no pool without a closer.
#[test]
fn idle_connections_are_closed_in_time() {
    let php = Php::start();
    let script = php.script("a.php", "echo 'a';");
    let options = Options {
        connections: CHILDREN,
        idle: Duration::from_millis(20),
        ..Options::default()
    };
    let backends = [(); 2].map(|()| Backend::new(php.address(), options.clone()));
    for _ in 0..2 {
        let runtime = Runtime::builder().workers(2).build().expect("a runtime");
        for backend in backends.iter().cycle().take(4) {
            let all = [(); CHILDREN].map(|()| {
                let (backend, script) = (backend.clone(), script.clone());
                runtime.spawn(async move { ask(&backend, &script, "GET", 0, empty()).await })
            });
            for one in all {
                let text = runtime.block_on(one).expect("no panic");
                assert_eq!(text.expect("a response"), b"a");
            }
        }
        for backend in &backends {
            wait_for("an empty pool", || (backend.idle() == 0).then_some(()));
        }
    }
}

#[test]
fn head_and_status() {
    let php = Php::start();
    let code =
        "http_response_code(404); header('X-A: b'); header('Content-Length: 5'); echo 'hello';";
    let script = php.script("a.php", code);
    block_on(async {
        let backend = php.backend();
        for (method, body) in [("GET", &b"hello"[..]), ("HEAD", b"")] {
            let variables = [("SCRIPT_FILENAME", &*script), ("REQUEST_METHOD", method)];
            let mut response = backend
                .request(Params::from_iter(variables), empty())
                .await
                .expect("a response");
            assert_eq!(response.head().status.code(), 404);
            assert_eq!(response.head().content_length, Some(5));
            assert!(response.fields().any(|field| field == (b"X-A", b"b")));
            let mut text = Vec::new();
            while let Some(chunk) = response.chunk().await.expect("a body") {
                text.extend(chunk);
            }
            assert_eq!(text, body, "{method}");
        }
        assert_eq!(backend.idle(), 1);
    });
}

/// The script sends each part back before it reads the next one. If one direction had to end before
/// the other, both sides would wait forever, because the body fills all buffers.
#[test]
fn both_directions_stream_at_the_same_time() {
    const LEN: usize = 16 << 20;
    let php = Php::start();
    let code = "$in = fopen('php://input', 'r'); \
                while (strlen($part = fread($in, 8192))) { echo $part; flush(); }";
    let script = php.script("echo.php", code);
    block_on(async {
        let backend = php.backend();
        let text = ask(&backend, &script, "POST", LEN, Made { left: LEN }).await;
        let text = text.expect("a response");
        assert_eq!(text.len(), LEN);
        assert!(
            text.iter()
                .zip((1..=LEN).rev())
                .all(|(&byte, at)| byte == value(at))
        );
        assert_eq!(backend.idle(), 1);
    });
}

#[test]
fn a_script_notices_that_its_reader_has_gone() {
    let php = Php::start();
    let code = "ignore_user_abort(true); while (!connection_aborted()) { echo str_repeat('x', 8192); flush(); } \
                file_put_contents(__DIR__ . '/aborted', connection_status());";
    let script = php.script("endless.php", code);
    block_on(async {
        let backend = php.backend();
        let variables = [("SCRIPT_FILENAME", &*script), ("REQUEST_METHOD", "GET")];
        let mut response = backend
            .request(Params::from_iter(variables), empty())
            .await
            .expect("a response");
        assert!(response.chunk().await.expect("a body").is_some());
        assert_eq!(backend.limit().stats().in_use, 1);
        drop(response);
        assert_eq!((backend.limit().stats().in_use, backend.idle()), (0, 0));
    });
    let marker = php.directory.path().join("aborted");
    let status = wait_for("the end of the script", || {
        std::fs::read_to_string(&marker)
            .ok()
            .filter(|text| !text.is_empty())
    });
    assert_eq!(status, "1", "CONNECTION_ABORTED");
}

#[test]
fn a_script_that_ends_early_costs_only_its_connection() {
    const LEN: usize = 8 << 20;
    let php = Php::start();
    let early = php.script("early.php", "echo 'enough';");
    block_on(async {
        let backend = php.backend();
        for _ in 0..3 {
            let text = ask(&backend, &early, "POST", LEN, Made { left: LEN }).await;
            assert_eq!(text.expect("a response"), b"enough");
        }
        assert_eq!(backend.limit().stats().in_use, 0);
    });
}
