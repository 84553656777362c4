//! The options of `run`: common ones, and one for each parameter of the graph.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, Command};
use tussah_weave::{Graph, Kind, Param};

use super::values::{option, variable};

/// The common options of all graphs. A parameter with one of these names has no option.
pub(super) const OWN: &[&str] = &["graph", "params", "workers", "control", "help"];

/// The maximum number of workers of a runtime.
const WORKERS_MAX: i64 = 1024;

/// Returns the command `run` without a graph, for its help.
pub(super) fn without_graph(program: &str) -> Command {
    let command = Command::new("run")
        .about("Run a Weave graph until it has handled all items")
        .after_help("`run FILE --help` also lists the parameters of the graph.");
    own(command).override_usage(format!("{program} run FILE [OPTIONS]"))
}

/// Returns the command `run` of a graph. Its arguments come after the file.
pub(super) fn of_graph(program: &str, file: &str, text: &str, graph: &Graph) -> Command {
    let (about, rest) = graph.doc.split_once("\n\n").unwrap_or((&graph.doc, ""));
    let mut command = own(Command::new("run"))
        .no_binary_name(true)
        .about(about.to_owned())
        .override_usage(format!("{program} run {file} [OPTIONS]"));
    if !rest.is_empty() {
        command = command.long_about(graph.doc.clone());
    }
    for param in &graph.params {
        if !OWN.contains(&param.name.as_str()) {
            command = command.arg(of_param(text, graph, param));
        }
    }
    command
}

fn own(command: Command) -> Command {
    let graph = Arg::new("--graph")
        .long("graph")
        .value_name("NAME")
        .help("Graph to run, if the file has several");
    let params = Arg::new("--params")
        .long("params")
        .value_name("FILE")
        .help("TOML file with values of the parameters");
    let workers = Arg::new("--workers")
        .long("workers")
        .value_name("NUMBER")
        .value_parser(clap::value_parser!(u16).range(1..=WORKERS_MAX))
        .help("Number of workers [default: one for each CPU]");
    let control = Arg::new("--control")
        .long("control")
        .value_name("SOCKET")
        .value_hint(clap::ValueHint::FilePath)
        .value_parser(clap::value_parser!(PathBuf))
        .help("Unix socket to make, for `tap`");
    command.args([graph, params, workers, control])
}

fn of_param(text: &str, graph: &Graph, param: &Param) -> Arg {
    let name = &param.name;
    let mut help = param.doc.clone();
    let mut add = |part: String| {
        let space = if help.is_empty() { "" } else { " " };
        help = format!("{help}{space}{part}");
    };
    if let Some(default) = &param.default {
        // String values are shown as a user would type them, and other values as in the file.
        let shown = &text[default.span.start as usize..default.span.end as usize];
        add(format!("[default: {}]", shown.trim_matches('"')));
    }
    add(format!("[env: {}]", variable(&graph.name, name)));
    let arg = Arg::new(name.clone())
        .long(option(name)[2..].to_owned())
        .value_name(param.kind.to_string().to_uppercase())
        .help_heading(format!("Parameters of {}", graph.name))
        .help(help);
    match param.kind {
        // An option after it is not its value.
        Kind::Flag => arg.num_args(0..=1).default_missing_value("true"),
        // The value may be a negative number, or text that begins with a hyphen.
        _ => arg.action(ArgAction::Set).allow_hyphen_values(true),
    }
}

/// Returns the value of `--graph`, which determines the other options.
pub(super) fn graph_name(arguments: &[OsString]) -> Option<String> {
    let mut rest = arguments.iter().map(|argument| argument.to_string_lossy());
    while let Some(argument) = rest.next() {
        if argument == "--graph" {
            return rest.next().map(Into::into);
        }
        if let Some(name) = argument.strip_prefix("--graph=") {
            return Some(name.to_owned());
        }
    }
    None
}

/// Returns the values of the options for parameters.
pub(super) fn given(graph: &Graph, matches: &ArgMatches) -> BTreeMap<String, String> {
    let names = graph.params.iter().map(|param| &param.name);
    let value = |name: &String| {
        let value = matches.try_get_one::<String>(name).ok().flatten()?;
        Some((name.clone(), value.clone()))
    };
    names.filter_map(value).collect()
}
