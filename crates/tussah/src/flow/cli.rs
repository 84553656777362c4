//! The command line of programs that run graphs in Weave.
//!
//! [`main!`](super::main) gives a program these commands over its modules:
//!
//! | command | what it does |
//! |---|---|
//! | `run FILE` | runs a graph until it has handled all items; its parameters are options |
//! | `check FILE...` | prints all errors |
//! | `fmt FILE...` | formats files |
//! | `draw FILE` | draws a graph as SVG or DOT |
//! | `test FILE...` | runs the tests of files |
//! | `describe` | prints the manifest of the modules, as JSON |
//!
//! # Parameters
//! The parameter `at_once` of the graph `WebServer` takes its value from the first of these places
//! that sets it:
//!
//! 1. the option `--at-once`
//! 2. the variable `WEB_SERVER_AT_ONCE` of the environment
//! 3. the key `at_once` of a TOML file, which `--params FILE` names
//! 4. the default in the graph
//!
//! Write a value as in Weave, but a text without quotes. `run` reports all wrong values before it
//! starts anything. The parameters `graph`, `params`, `workers` and `help` have no option.
//!
//! # Signals
//! The first Ctrl-C or SIGTERM stops the sources, and `run` ends when all items are handled. The
//! second one ends the program at once.
//!
//! # Exit codes
//! | code | `run` | other commands |
//! |---|---|---|
//! | 0 | all items are handled | no errors |
//! | 1 | an instance could not start, a source failed, or a second signal came | a file has errors or is not formatted, or a test failed |
//! | 2 | the command line or the graph is wrong | the command line is wrong, or a file cannot be read |

mod check;
mod describe;
mod draw;
mod fmt;
mod manifest;
mod options;
mod rig;
mod run;
mod source;
mod steps;
mod test;
mod values;

use std::process::ExitCode;

use clap::{FromArgMatches, Subcommand};

pub use self::test::run_tests;
use super::modules::Modules;

/// A program with a command line for graphs.
#[derive(Clone, Debug)]
pub struct Program {
    /// The name in messages.
    pub name: String,
    /// The modules that graphs can use.
    pub modules: Modules,
    /// The treatment of other modules by `check` and `draw`.
    pub others: Others,
}

/// The treatment of modules that a program lacks, by `check` and `draw`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Others {
    /// They are errors.
    Refused,
    /// `check` and `draw` take the ports and types of these modules on trust: the modules may
    /// belong to another program.
    Trusted,
}

/// The commands for graphs. `clap` parses them as subcommands.
#[derive(Subcommand)]
pub enum Command {
    #[doc(hidden)]
    Run(run::RunArguments),
    #[doc(hidden)]
    Check(check::CheckArguments),
    #[doc(hidden)]
    Fmt(fmt::FmtArguments),
    #[doc(hidden)]
    Draw(draw::DrawArguments),
    #[doc(hidden)]
    Test(test::TestArguments),
    /// Print the manifest of the modules as JSON, for `check --modules` and `draw --modules`
    Describe,
}

impl Command {
    /// Runs the command.
    #[must_use]
    pub fn run(&self, program: &Program) -> ExitCode {
        match self {
            Self::Run(arguments) => arguments.run(program),
            Self::Check(arguments) => arguments.run(program),
            Self::Fmt(arguments) => arguments.run(),
            Self::Draw(arguments) => arguments.run(program),
            Self::Test(arguments) => arguments.run(program),
            Self::Describe => describe::run(program),
        }
    }
}

/// Runs the command that the program's arguments name, over these modules.
///
/// [`main!`](super::main) calls this. Call this function directly if the modules are not a plain
/// list.
#[must_use]
pub fn main(name: &str, modules: Modules) -> ExitCode {
    let command = Command::augment_subcommands(clap::Command::new(name.to_owned()))
        .about("Runs, checks and draws graphs in Weave")
        .subcommand_required(true)
        .arg_required_else_help(true);
    let matches = command.get_matches();
    let program = Program {
        name: name.to_owned(),
        modules,
        others: Others::Refused,
    };
    match Command::from_arg_matches(&matches) {
        Ok(command) => command.run(&program),
        Err(error) => error.exit(),
    }
}

/// Makes a command-line program from modules. Its [commands](crate::flow::cli) work on Weave graphs
/// that use these modules. The name of a module in Weave is its path.
///
/// The macro adds two functions: `main`, and `modules`, which returns the [`Modules`].
///
/// ```no_run
/// use tussah::flow::module;
///
/// #[derive(Default)]
/// struct Print;
///
/// #[module]
/// impl Print {
///     fn run(&mut self, line: String) {
///         println!("{line}");
///     }
/// }
///
/// tussah::flow::main!(Print);
/// ```
#[doc(hidden)]
#[macro_export]
macro_rules! __flow_main {
    ($($module:path),* $(,)?) => {
        /// Returns the modules that graphs can use.
        fn modules() -> $crate::flow::Modules {
            $crate::flow::Modules::new()$(.with::<$module>(stringify!($module)))*
        }

        fn main() -> ::std::process::ExitCode {
            let name = option_env!("CARGO_BIN_NAME").unwrap_or("graph");
            $crate::flow::cli::main(name, modules())
        }
    };
}
