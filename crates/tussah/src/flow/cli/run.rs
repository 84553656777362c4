//! The command `run`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::{ArgMatches, Args, Command};
use futures_util::future::{Either, select};
use tussah_weave::{Diagnostic, Graph, Plan, Span};

use super::Program;
use super::control::{Control, Socket};
use super::manifest::foreign;
use super::options;
use super::ports::unconnected;
use super::source::{Source, WRONG, fail, fail_all, no_graph, print_error, read};
use super::values::{Given, ValuesFile, values};
use crate::console::{STDERR, install_log};
use crate::flow::{self, GraphError, Params};
use crate::signal::{Signal, Signals, signal};
use crate::time::sleep;

/// The pause before another attempt if the system lacked the resources to wait for a signal.
const RETRY: Duration = Duration::from_millis(100);

/// The exit code for a graph that failed while running, or could not start.
const FAILED: u8 = 1;

/// Run a Weave graph until it has handled all items.
///
/// Exits with 0 if all items have been handled, and with 2 if the command line, an argument or the
/// graph is invalid. Exits with 1 if an instance cannot start, a source fails, or a second signal
/// arrives.
#[derive(Args)]
#[command(disable_help_flag = true, disable_version_flag = true)]
pub struct RunArguments {
    /// File with the graph, followed by the graph's options; `run FILE --help` lists them
    #[arg(
        value_name = "FILE [OPTIONS]",
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_hint = clap::ValueHint::FilePath
    )]
    arguments: Vec<OsString>,
}

impl RunArguments {
    pub(super) fn run(&self, program: &Program) -> ExitCode {
        // `Logger` and other modules log.
        install_log();
        let code = self.try_run(program).unwrap_or_else(|code| code);
        STDERR.flush();
        code
    }

    fn try_run(&self, program: &Program) -> Result<ExitCode, ExitCode> {
        let Some((file, rest)) = self.arguments.split_first() else {
            let usage = format!("expected a file: {} run FILE [OPTIONS]", program.name);
            return Err(fail(&usage));
        };
        if ["-h", "--help"].iter().any(|help| file == help) {
            let command = options::without_graph(&program.name);
            return Err(help(command));
        }
        if file.to_string_lossy().starts_with('-') {
            let option = file.to_string_lossy();
            return Err(fail(&format!("expected a file before the option {option}")));
        }
        let source = Source::read(Path::new(file)).map_err(|error| fail(&error))?;
        let checked = source.check(Some(program.modules.signatures()));
        let diagnostics = &checked.diagnostics;
        if diagnostics.iter().any(Diagnostic::is_error) {
            print_error(&source.render(diagnostics));
            print_error(&foreign(program, &source, "run"));
            return Err(ExitCode::from(WRONG));
        }
        let name = options::graph_name(rest);
        let graph = choose(&source, &checked.graphs, name.as_deref());
        let graph = graph.map_err(|error| fail(&error))?;
        let command = options::of_graph(&program.name, &source.file(), &source.text, graph);
        let matches = command
            .try_get_matches_from(rest)
            .map_err(|error| ended(&error))?;
        print_error(&source.render(diagnostics));
        let (plan, workers) = plan(&source, graph, &matches)?;
        let unconnected = unconnected(graph, &plan);
        if !unconnected.is_empty() {
            print_error(&source.render(&unconnected));
            return Err(ExitCode::from(WRONG));
        }
        let control = matches.get_one::<PathBuf>("--control");
        Ok(start(program, &source, &plan, workers, control))
    }
}

/// Returns the graph with this name or, without a name, the only one that can run.
fn choose<'g>(
    source: &Source,
    graphs: &'g [Graph],
    name: Option<&str>,
) -> Result<&'g Graph, String> {
    if let Some(name) = name {
        let found = graphs.iter().find(|graph| graph.name == name);
        return found.ok_or_else(|| no_graph(source, graphs, Some(name)));
    }
    let is_part = |name: &str| {
        let mut groups = graphs.iter().flat_map(|graph| &graph.groups);
        groups.any(|group| group.graph == name)
    };
    let whole = graphs.iter().filter(|graph| {
        graph.inputs.is_empty() && graph.outputs.is_empty() && !is_part(&graph.name)
    });
    let whole: Vec<&Graph> = whole.collect();
    match whole.as_slice() {
        [graph] => Ok(graph),
        [] => Err(format!(
            "{} has no graph that can run: expected one without ports",
            source.file()
        )),
        several => {
            let names: Vec<&str> = several.iter().map(|graph| graph.name.as_str()).collect();
            let names = names.join(", ");
            Err(format!(
                "{} has several graphs: expected --graph with one of {names}",
                source.file()
            ))
        }
    }
}

/// Returns the graph with its values, and the number of workers.
fn plan(source: &Source, graph: &Graph, matches: &ArgMatches) -> Result<(Plan, usize), ExitCode> {
    let file = match matches.get_one::<String>("--params") {
        None => None,
        Some(file) => {
            let text = read(Path::new(file)).map_err(|error| fail(&error))?;
            Some(ValuesFile::parse(file, &text).map_err(|error| fail(&error))?)
        }
    };
    let given = Given {
        options: options::given(graph, matches),
        environment: &|name| std::env::var_os(name),
        file,
    };
    let values = values(graph, &given).map_err(|errors| fail_all(&errors))?;
    let workers = match matches.get_one::<u16>("--workers") {
        Some(&workers) => usize::from(workers),
        None => std::thread::available_parallelism().map_or(1, usize::from),
    };
    let plan = graph.instantiate(&values, workers as u64);
    let plan = plan.map_err(|errors| {
        print_error(&source.render(&errors));
        ExitCode::from(WRONG)
    })?;
    Ok((plan, workers))
}

fn start(
    program: &Program,
    source: &Source,
    plan: &Plan,
    workers: usize,
    control: Option<&PathBuf>,
) -> ExitCode {
    let failed = |error: &dyn std::fmt::Display| {
        fail(&error.to_string());
        ExitCode::from(FAILED)
    };
    let runtime = crate::Runtime::builder().workers(workers).build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => return failed(&format_args!("cannot start a runtime: {error}")),
    };
    runtime.block_on(async {
        // From here on, a signal drains the graph, and a write beyond the limit on file sizes fails
        // instead of ending the process.
        let signals =
            signal(Signal::XFSZ).and_then(|_| Ok([signal(Signal::INT)?, signal(Signal::TERM)?]));
        let signals = match signals {
            Ok(signals) => signals,
            Err(error) => return failed(&error),
        };
        let graph = match build(program, source, plan) {
            Ok(graph) => graph,
            Err(code) => return code,
        };
        let socket = match control.map(|path| Socket::bind(path)).transpose() {
            Ok(socket) => socket,
            Err(error) => return failed(&error),
        };
        let running = match graph.start() {
            Ok(running) => Arc::new(running),
            Err(GraphError::Instance { instance, why, .. }) => {
                return failed(&cannot_start(source, plan, &instance, &why));
            }
            Err(error) => return fail(&format!("{}: {error}", source.file())),
        };
        let control = socket.map(|socket| Control::start(socket, &running));
        let drain = std::pin::pin!(running.drain());
        if let Either::Right(((), drain)) = select(drain, std::pin::pin!(any(&signals))).await {
            print_error("shutting down: finishing items in flight (signal again to quit now)\n");
            running.abort_sources();
            if let Either::Right(_) = select(drain, std::pin::pin!(any(&signals))).await {
                if let Some(control) = control {
                    control.remove();
                }
                // A module that never returns could hold the runtime.
                std::process::exit(FAILED.into());
            }
        }
        if let Some(control) = control {
            control.end().await;
        }
        sources(source, plan, &running.failures())
    })
}

/// Builds the graph, and reports all arguments that are wrong.
fn build(program: &Program, source: &Source, plan: &Plan) -> Result<flow::Graph, ExitCode> {
    let at = |span| source.position(span);
    let graph = program.modules.build(plan, &Params::new(), &at);
    let mut graph = graph.map_err(|(error, span)| {
        print_error(&source.render(&[Diagnostic::error(span, error)]));
        ExitCode::from(WRONG)
    })?;
    let wrong = graph.wrong_args().into_iter().filter_map(|error| {
        let GraphError::Instance { instance, why, .. } = error else {
            return None;
        };
        Some(cannot_start(source, plan, unsharded(&instance), &why))
    });
    let mut wrong: Vec<String> = wrong.collect();
    // All shards of an instance have the same arguments.
    wrong.dedup();
    match wrong.is_empty() {
        true => Ok(graph),
        false => Err(fail_all(&wrong)),
    }
}

/// Returns the error of an instance that cannot start.
fn cannot_start(source: &Source, plan: &Plan, instance: &str, why: &str) -> String {
    let place = place(source, plan, instance);
    format!("{place}: `{instance}` cannot start: {why}")
}

/// Reports the sources that have failed.
fn sources(source: &Source, plan: &Plan, failures: &[GraphError]) -> ExitCode {
    for failure in failures {
        let GraphError::Source { instance, why } = failure else {
            continue;
        };
        let place = place(source, plan, instance);
        fail(&format!("{place}: the source `{instance}` failed: {why}"));
    }
    match failures.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(FAILED),
    }
}

/// Returns the name that a shard such as `pages#0` has in the file.
pub(super) fn unsharded(instance: &str) -> &str {
    instance.split_once('#').map_or(instance, |(name, _)| name)
}

/// Returns the place of an instance in the file.
fn place(source: &Source, plan: &Plan, instance: &str) -> String {
    let node = plan
        .nodes
        .iter()
        .find(|node| node.name == unsharded(instance));
    source.position(node.map_or(Span::default(), |node| node.span))
}

/// Waits for one of two signals.
async fn any([int, term]: &[Signals; 2]) {
    select(std::pin::pin!(wait(int)), std::pin::pin!(wait(term))).await;
}

/// Waits for a signal. If the system lacks the memory for this, the function retries, because that
/// is no reason to stop the graph.
async fn wait(signals: &Signals) {
    while let Err(error) = signals.recv().await {
        tracing::warn!(%error, "cannot wait for a signal; retrying every 100 ms");
        sleep(RETRY).await;
    }
}

/// Prints the help of a command.
fn help(mut command: Command) -> ExitCode {
    // This fails if the terminal is gone, and then no one reads the help.
    let _ = command.print_help();
    ExitCode::SUCCESS
}

/// Prints help, or the error of a command line.
fn ended(error: &clap::Error) -> ExitCode {
    // This fails if the terminal is gone; the exit code still reports the error.
    let _ = error.print();
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(WRONG))
}
