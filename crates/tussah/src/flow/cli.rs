//! A command line for programs that run graphs written in Weave.
//!
//! [`main!`](super::main) creates a program with these commands, for graphs that use the program's
//! modules:
//!
//! | command | what it does |
//! |---|---|
//! | `run FILE` | runs a graph until it has handled all items; its parameters are options |
//! | `check FILE...` | prints all errors |
//! | `fmt FILE...` | formats files |
//! | `draw FILE` | draws a graph as SVG or DOT |
//! | `test FILE...` | runs the tests of files |
//! | `tap SOCKET EDGE` | shows the items of an edge of a graph that runs with `--control SOCKET` |
//! | `describe [MODULE...]` | prints the manifest as JSON, or describes modules as text |
//!
//! # Parameters
//! The value of a parameter comes from the first place in this list that sets it. As an example,
//! the list shows the names for the parameter `at_once` of the graph `WebServer`:
//!
//! 1. the option `--at-once`
//! 2. the environment variable `WEB_SERVER_AT_ONCE`
//! 3. the key `at_once` of the TOML file in `--params FILE`
//! 4. the default in the graph
//!
//! Write values as in Weave, but without quotes on the command line and in the environment. The
//! option of a flag needs no value. Underscores at the beginning of a name remain underscores in
//! the option: `--_at-once`. A parameter with the name `params`, `control` or `help` has no
//! command-line option.
//!
//! `run` reports all values that do not have the type of their parameter. If there are none, it
//! reports all arguments that a module does not accept. In both cases, no instance is created.
//!
//! # Log
//! `run` prints `tracing` events on the standard error, unless the program has set a subscriber.
//! The level is INFO for the [standard modules](crate::modules), and WARN for everything else. An
//! OS thread writes the lines, so a reader that stops reading does not stop the graph.
//!
//! # Signals
//! The first Ctrl-C or SIGTERM stops the sources, and `run` exits when all items have been handled.
//! A second signal ends the program immediately.
//!
//! # Exit codes
//! | code | `run` | other commands |
//! |---|---|---|
//! | 0 | all items have been handled | there are no errors |
//! | 1 | an instance could not start, a source failed, or a second signal arrived | `check`, `fmt` or `draw` finds errors in a file, a file is not formatted, a test failed, or the graph refuses a tap: it has no such edge, or serves 16 clients already |
//! | 2 | the command line, an argument or the graph is invalid | the command line is invalid, a file cannot be read, `test` finds errors in a file, or `tap` cannot connect |

mod check;
mod control;
mod describe;
mod draw;
mod fmt;
mod manifest;
mod options;
mod ports;
mod rig;
mod run;
mod source;
mod steps;
mod tap;
mod test;
mod values;

use std::process::ExitCode;

use clap::{FromArgMatches, Subcommand};

pub use self::test::run_tests;
use super::modules::Modules;

/// A program with a command line for graphs.
#[derive(Clone, Debug)]
pub struct Program {
    /// The name of the program, as shown in messages.
    pub name: String,
    /// The modules that graphs can use.
    pub modules: Modules,
    /// The way in which `check` and `draw` treat unknown modules.
    pub others: Others,
}

/// The way in which `check` and `draw` treat modules that the program does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Others {
    /// Unknown modules are errors.
    Refused,
    /// Unknown modules may belong to another program. Their arguments, ports and types are not
    /// checked.
    Trusted,
}

/// The commands for graphs, as `clap` subcommands.
#[derive(Subcommand)]
pub enum GraphCommand {
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
    #[doc(hidden)]
    Tap(tap::TapArguments),
    #[doc(hidden)]
    Describe(describe::DescribeArguments),
}

impl GraphCommand {
    /// Runs the command.
    #[must_use]
    pub fn run(&self, program: &Program) -> ExitCode {
        match self {
            Self::Run(arguments) => arguments.run(program),
            Self::Check(arguments) => arguments.run(program),
            Self::Fmt(arguments) => arguments.run(),
            Self::Draw(arguments) => arguments.run(program),
            Self::Test(arguments) => arguments.run(program),
            Self::Tap(arguments) => arguments.run(),
            Self::Describe(arguments) => arguments.run(program),
        }
    }
}

/// Parses the program's arguments, and runs the command on graphs that use `modules`.
///
/// [`main!`](super::main) calls this function. Call this function directly if the set of modules is
/// known only at run time.
#[must_use]
pub fn main(name: &str, modules: Modules) -> ExitCode {
    let command = GraphCommand::augment_subcommands(clap::Command::new(name.to_owned()))
        .about("Runs, checks and draws graphs in Weave")
        .subcommand_required(true)
        .arg_required_else_help(true);
    let matches = command.get_matches();
    let program = Program {
        name: name.to_owned(),
        modules,
        others: Others::Refused,
    };
    match GraphCommand::from_arg_matches(&matches) {
        Ok(command) => command.run(&program),
        Err(error) => error.exit(),
    }
}

/// Creates a command-line program from modules. The program's [commands](crate::flow::cli) work on
/// Weave graphs that use these modules. In Weave, the name of a module is the path that was passed
/// to this macro.
///
/// The macro defines two functions: `main`, and `modules`, which returns the [`Modules`].
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
