//! A web server with pages of its own beside the files of a directory.
//!
//! `cargo run --release -p tussah-services --example pages -- examples/site`, and then `curl 127.0.0.1:8080/hello/world` and
//! `curl -d 'some words' 127.0.0.1:8080/count`.

use std::error::Error;

use clap::{Args as _, Command, FromArgMatches as _};
use tussah::Colored;
use tussah_services::web::config::{Arguments, Config};
use tussah_services::web::{Reply, Request, Web};

async fn hello(request: Request) -> Reply {
    Reply::text(format!("Hello from {}\n", request.path()))
}

async fn count(request: Request, words: Colored<usize>) -> Reply {
    let text = String::from_utf8_lossy(request.body());
    let more = text.split_whitespace().count();
    let add = move |words: &mut usize| {
        *words += more;
        *words
    };
    Reply::text(format!("{} words\n", words.with(add).await))
}

fn main() -> Result<(), Box<dyn Error>> {
    let command = Arguments::augment_args(Command::new("pages"));
    let arguments = Arguments::from_arg_matches(&command.get_matches())?;
    let runtime = tussah::Runtime::builder().workers(1).build()?;
    // A value in a color of its own: requests run side by side, and no lock is needed.
    let words = Colored::new_in(runtime.handle(), 0);
    let web = Web::new(Config::load(&arguments)?).route("/hello/*", hello);
    let web = web.route("/count", move |request| count(request, words.clone()));
    Ok(web.run()?)
}
