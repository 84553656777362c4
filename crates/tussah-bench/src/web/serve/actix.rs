//! The peer actix-web: an application with one handler, in the requested number of workers.

use std::net::Ipv4Addr;
use std::time::Duration;

use actix_web::http::KeepAlive;
use actix_web::{App, HttpRequest, HttpResponse, HttpServer, web};

use super::{BACKLOG_MAX, Files};

/// Serves until the process is ended.
pub fn serve(port: u16, workers: usize, files: &'static Files) -> std::io::Result<()> {
    let server = HttpServer::new(move || {
        let answer = async move |request: HttpRequest| answer(files, &request);
        App::new().default_service(web::to(answer))
    });
    let server = server
        .workers(workers)
        .backlog(BACKLOG_MAX)
        .keep_alive(KeepAlive::Timeout(Duration::from_secs(3600)))
        .client_request_timeout(Duration::from_secs(3600))
        .tcp_nodelay(true)
        .bind((Ipv4Addr::LOCALHOST, port))?;
    actix_web::rt::System::new().block_on(server.run())
}

fn answer(files: &Files, request: &HttpRequest) -> HttpResponse {
    match files.all.get(request.path()) {
        Some(file) => HttpResponse::Ok()
            .content_type("application/octet-stream")
            .body(file.clone()),
        None => HttpResponse::NotFound().finish(),
    }
}
