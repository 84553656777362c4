//! The peer hyper: one runtime for each core, or a single one.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use moka::sync::Cache;
use tokio::net::{TcpListener, TcpSocket, TcpStream};

use super::{BACKLOG_MAX, Files};

/// Bound, in OS threads: the maximum number that read the files of a site larger than memory. With
/// tokio's default of 512, hyper exceeds a gigabyte.
const READERS_MAX: usize = 32;

/// Serves with a single-threaded runtime for each worker. The kernel distributes the connections
/// among their listeners.
pub fn each(port: u16, workers: usize, files: &'static Files) -> std::io::Result<()> {
    let cpus = crate::runtimes::allowed_cpus();
    std::thread::scope(|scope| {
        for index in 0..workers {
            let cpu = cpus[index % cpus.len()];
            scope.spawn(move || {
                crate::runtimes::pin_to_cpus(&[cpu]);
                let mut builder = tokio::runtime::Builder::new_current_thread();
                builder.max_blocking_threads(READERS_MAX);
                let runtime = builder.enable_io().build()?;
                runtime.block_on(serve(port, workers > 1, files))
            });
        }
        Ok(())
    })
}

/// Serves with a single runtime that has `workers` workers.
pub fn shared(port: u16, workers: usize, files: &'static Files) -> std::io::Result<()> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.max_blocking_threads(READERS_MAX);
    let runtime = builder.worker_threads(workers).enable_io().build()?;
    let serving = runtime.spawn(serve(port, false, files));
    runtime
        .block_on(serving)
        .expect("the server does not panic")
}

async fn serve(port: u16, reuse: bool, files: &'static Files) -> std::io::Result<()> {
    let listener = listen(port, reuse)?;
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        tokio::spawn(connection(stream, files));
    }
}

fn listen(port: u16, reuse: bool) -> std::io::Result<TcpListener> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.set_reuseport(reuse)?;
    socket.bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))?;
    socket.listen(BACKLOG_MAX)
}

async fn connection(stream: TcpStream, files: &'static Files) {
    let service = service_fn(|request| answer(files, request));
    // A client may close its connection at any time.
    let _ = http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

async fn answer(
    files: &'static Files,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let path = request.uri().path();
    let file = match (files.all.get(path), &files.some) {
        (Some(file), _) => Some(file.clone()),
        (None, None) => None,
        (None, Some(cache)) => cached(files, cache, path).await,
    };
    let mut response = Response::new(Full::default());
    match file {
        Some(file) => {
            *response.body_mut() = Full::new(file);
            let kind = HeaderValue::from_static("application/octet-stream");
            response.headers_mut().insert(CONTENT_TYPE, kind);
        }
        None => *response.status_mut() = StatusCode::NOT_FOUND,
    }
    Ok(response)
}

/// Returns a file from the cache or from the disk.
async fn cached(files: &'static Files, cache: &Cache<String, Bytes>, path: &str) -> Option<Bytes> {
    if let Some(file) = cache.get(path) {
        return Some(file);
    }
    if path.contains("..") {
        return None;
    }
    let name = files.folder.join(path.trim_start_matches('/'));
    let read = tokio::task::spawn_blocking(move || std::fs::read(name));
    let file = Bytes::from(read.await.ok()?.ok()?);
    cache.insert(path.to_owned(), file.clone());
    Some(file)
}
