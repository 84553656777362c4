//! A web server with pages of its own beside the files of a directory.
//!
//! `cargo run --release -p tussah-services --example pages -- --listen 127.0.0.1:8080 examples/site`, and then
//! `curl http://127.0.0.1:8080/hello/world` and `curl -d 'some words' http://127.0.0.1:8080/count`.

use std::error::Error;

use clap::{Args as _, Command, FromArgMatches as _};
use tussah::Colored;
use tussah_services::web::config::{Arguments, Config};
use tussah_services::web::{Reply, Request, Web};

async fn hello(request: Request) -> Reply {
    let path = request.path();
    let name = path.trim_start_matches("/hello/");
    Reply::text(format!("Hello, {name}!\n"))
}

fn main() -> Result<(), Box<dyn Error>> {
    let command = Arguments::augment_args(Command::new("pages"));
    let arguments = Arguments::from_arg_matches(&command.get_matches())?;
    let runtime = tussah::Runtime::builder().workers(1).build()?;
    // A value in a color of its own: requests run side by side, and no lock is needed.
    let words = Colored::new_in(runtime.handle(), 0);
    let count = move |request: Request| {
        let words = words.clone();
        async move {
            let more = String::from_utf8_lossy(request.body())
                .split_whitespace()
                .count();
            let all = words
                .with(move |words| {
                    *words += more;
                    *words
                })
                .await;
            Reply::text(format!("{more} words, {all} in all\n"))
        }
    };
    let web = Web::new(Config::load(&arguments)?)
        .route("/hello/*", hello)
        .route("/count", count);
    Ok(web.run()?)
}
