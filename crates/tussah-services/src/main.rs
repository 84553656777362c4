//! The command `tussah`.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use clap_complete::Shell;
use tussah::flow::cli::{GraphCommand, Others, Program};
use tussah_services::gnutella;
use tussah_services::load;
use tussah_services::new;
use tussah_services::video;
use tussah_services::web::Web;
use tussah_services::web::config::{Arguments, Config};

/// Web and video servers, Gnutella router, HTTP load generator, and commands for flow graphs, built
/// on tussah.
#[derive(Parser)]
#[command(name = "tussah", version, propagate_version = true)]
struct Tussah {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    Web(Arguments),
    Video(video::Arguments),
    Gnutella(Box<gnutella::Arguments>),
    Load(Box<load::cli::Arguments>),
    #[command(flatten)]
    Graph(GraphCommand),
    New(new::Arguments),
    /// Print a script for shell completion.
    ///
    /// To enable completion in the current bash session: source <(tussah completions bash)
    ///
    /// To enable completion in every bash session, add that command to ~/.bashrc.
    Completions {
        /// Shell to write the script for.
        shell: Shell,
    },
}

fn main() -> ExitCode {
    match Tussah::parse().command {
        Command::Web(arguments) => web(&arguments),
        Command::Video(arguments) => video::run(arguments),
        Command::Gnutella(arguments) => gnutella::run(*arguments),
        Command::Load(arguments) => load::cli::run(*arguments),
        Command::Graph(command) => command.run(&Program {
            name: "tussah".to_owned(),
            modules: tussah_services::modules::standard(),
            others: Others::Trusted,
        }),
        Command::New(arguments) => new::run(&arguments),
        Command::Completions { shell } => {
            clap_complete::generate(
                shell,
                &mut Tussah::command(),
                "tussah",
                &mut std::io::stdout(),
            );
            ExitCode::SUCCESS
        }
    }
}

fn web(arguments: &Arguments) -> ExitCode {
    let config = match Config::load(arguments) {
        Ok(config) => config,
        Err(errors) => {
            eprintln!("{errors}");
            return ExitCode::from(2);
        }
    };
    if arguments.check_config {
        print!("{}", config.show());
    }
    if let Err(problems) = config.check() {
        eprintln!("{}", problems.join("\n"));
        return ExitCode::from(2);
    }
    if arguments.check_config {
        return ExitCode::SUCCESS;
    }
    let again = arguments.clone();
    let web = Web::new(config).reload_by(move || Config::load(&again));
    match web.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tussah web: {error}");
            ExitCode::FAILURE
        }
    }
}
