//! A web server with dynamic pages, in addition to the files of a directory.
//!
//! Run `cargo run --release -p tussah-services --example pages -- examples/site`, and then `curl
//! 127.0.0.1:8080/hello/world`, `curl -d 'some words' 127.0.0.1:8080/count` and `curl
//! 127.0.0.1:8080/report`. <http://127.0.0.1:8080/status> lists the routes and the limit.

use std::error::Error;

use clap::{Args as _, Command, FromArgMatches as _};
use tussah::Colored;
use tussah::sync::Limit;
use tussah::time::{Duration, sleep};
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

/// Uses one of a few connections to a database. The pause takes the place of the query.
async fn report(database: Limit) -> Reply {
    let _permit = database.acquire().await;
    sleep(Duration::from_millis(10)).await;
    Reply::text("all is well\n")
}

fn main() -> Result<(), Box<dyn Error>> {
    let command = Arguments::augment_args(Command::new("pages"));
    let arguments = Arguments::from_arg_matches(&command.get_matches())?;
    let runtime = tussah::Runtime::builder().workers(1).build()?;
    // The value has its own color: requests run in parallel and need no lock.
    let words = Colored::new_in(runtime.handle(), 0);
    let web = Web::new(Config::load(&arguments)?).route("/hello/*", hello);
    let web = web.route("/count", move |request| count(request, words.clone()));
    // The status page shows how many connections are in use, how many requests are waiting, and for
    // how long.
    let database = Limit::new("database", 8);
    let web = web.limit(&database);
    let web = web.route("/report", move |_| report(database.clone()));
    Ok(web.run()?)
}
