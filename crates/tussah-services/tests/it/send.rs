//! Every public future is `Send`, with borrowed, static and owned arguments, so that it can be
//! awaited inside of `spawn`. The compiler makes the checks.

use futures_lite::io::empty;
use tussah_services::fastcgi::{Backend, Failure, Params, Response};
use tussah_services::web::config::Config;
use tussah_services::{gnutella, video, web};

/// The public API, which names the futures.
const API: &str = include_str!("../../../../api/tussah-services.txt");

/// The futures that the function below awaits.
const CHECKED: &[&str] = &[
    "fastcgi::Backend::request",
    "fastcgi::Response<B>::chunk",
    "gnutella::Gnutella::start",
    "gnutella::Running::stop",
    "video::Running::stop",
    "video::Video::start",
    "web::Running::reload",
    "web::Running::stop",
    "web::Web::start",
];

/// Requires of a future what `spawn` requires.
fn spawned<F>(_: F)
where
    F: Future<Output: Send> + Send + 'static,
{
}

#[expect(dead_code, reason = "the compiler checks it")]
fn futures(
    backend: Backend,
    gnutella: gnutella::Gnutella,
    video: video::Video,
    (web, config): (web::Web, Config),
) {
    spawned(async move {
        let body = String::from("body");
        read(backend.request(Params::default(), body.as_bytes()).await).await;
        read(backend.request(Params::default(), &b"body"[..]).await).await;
        read(backend.request(Params::default(), empty()).await).await;
    });
    spawned(async move {
        gnutella.start().await?.stop().await;
        Ok::<_, gnutella::GnutellaError>(())
    });
    spawned(async move {
        video.start().await?.stop().await;
        Ok::<_, video::VideoError>(())
    });
    spawned(async move {
        let mut running = web.start().await?;
        running.reload(config).await?;
        running.stop().await;
        Ok::<_, web::WebError>(())
    });
}

async fn read<B>(response: Result<Response<B>, Failure>)
where
    B: futures_lite::AsyncRead + Unpin + Send,
{
    if let Ok(mut response) = response {
        drop(response.chunk().await);
    }
}

#[test]
fn each_public_future_is_checked() {
    let lines = API.lines();
    let futures = lines.filter_map(|line| line.strip_prefix("pub async fn tussah_services::"));
    // Without the arguments, and without the type parameters of the function.
    let name = |line: &'static str| line.split('(').next()?.split("<B:").next();
    let names: Vec<_> = futures.filter_map(name).collect();
    assert_eq!(names, CHECKED);
}
