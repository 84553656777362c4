//! The command `describe`.

use std::fmt::Write;
use std::process::ExitCode;

use clap::Args;
use tussah_weave::{Body, Modules, Parallelism, PortSignature, Signature, suggest};

use super::Program;
use super::source::{fail, print};

/// Print the manifest of the modules as JSON, or describe some modules
///
/// Without arguments, the command prints the manifest of all modules, which `check --modules` and
/// `draw --modules` read. With the names of modules, it prints their parameters, ports, item types
/// and documentation as text.
#[derive(Args)]
pub struct DescribeArguments {
    /// Modules to describe as text
    #[arg(value_name = "MODULE")]
    modules: Vec<String>,
}

impl DescribeArguments {
    pub(super) fn run(&self, program: &Program) -> ExitCode {
        let known = program.modules.signatures();
        let described = if self.modules.is_empty() {
            let manifest = serde_json::to_string_pretty(known);
            Ok(manifest.expect("a manifest has only text keys") + "\n")
        } else {
            let texts = self.modules.iter().map(|name| describe(name, known));
            texts
                .collect::<Result<Vec<_>, _>>()
                .map(|texts| texts.join("\n"))
        };
        match described.and_then(|text| print(&text)) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => fail(&error),
        }
    }
}

/// Describes the module with this name as text.
fn describe(name: &str, known: &Modules) -> Result<String, String> {
    let Some(module) = known.signatures.get(name) else {
        let names = known.signatures.keys().map(String::as_str);
        let all: Vec<_> = names.clone().collect();
        let help = suggest::help(name, names);
        let help = help.unwrap_or_else(|| format!("known: {}", all.join(", ")));
        return Err(format!("the program has no module `{name}`; {help}"));
    };
    let mut text = format!("{name}: {}\n", handling(module));
    let mut section = |title: &str, lines: Vec<(String, String)>| {
        if lines.is_empty() {
            return;
        }
        let width = lines.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        let _ = writeln!(text, "\n{title}:");
        for (name, rest) in lines {
            let line = format!("  {name:width$}  {rest}");
            let _ = writeln!(text, "{}", line.trim_end());
        }
    };
    let optional = |is: bool| if is { ", optional" } else { "" };
    let port = |port: &PortSignature, optional: &str| {
        (
            port.name.clone(),
            format!("{}{optional}", port.item.short()),
        )
    };
    let params = module.params.iter().map(|param| {
        let domain = param.domain.describe(&param.kind);
        let domain = domain.map(|domain| format!(" ({domain})"));
        let domain = domain.unwrap_or_default();
        let kind = format!("{}{domain}{}", param.kind, optional(param.optional));
        (param.name.clone(), kind)
    });
    section("parameters", params.collect());
    let inputs = module.inputs.iter().map(|input| port(input, ""));
    section("input ports", inputs.collect());
    let outputs = module.outputs.iter();
    let outputs = outputs.map(|output| port(output, optional(!output.required)));
    section("output ports", outputs.collect());
    section("item types", item_types(module, known));
    if !module.doc.is_empty() {
        let _ = writeln!(text, "\n{}", without_item_links(module.doc.trim_end()));
    }
    Ok(text)
}

/// Returns documentation with the texts of links to Rust items instead of these links, which only
/// rustdoc can follow.
fn without_item_links(doc: &str) -> String {
    let (mut plain, mut rest) = (String::new(), doc);
    while let Some((before, link)) = rest.split_once('[') {
        plain += before;
        rest = match item_link(link) {
            Some((text, after)) => {
                plain += text;
                after
            }
            None => {
                plain.push('[');
                link
            }
        };
    }
    plain + rest
}

/// Returns the text of a link to a Rust item, such as ``[`Peer`]`` or `[a peer](super::Peer)`, and
/// the documentation that follows. `link` begins after the bracket.
fn item_link(link: &str) -> Option<(&str, &str)> {
    let (text, after) = link.split_once(']')?;
    let Some(target) = after.strip_prefix('(') else {
        let name = text.strip_prefix('`')?.strip_suffix('`')?;
        return (!name.contains('`')).then_some((text, after));
    };
    let (target, after) = target.split_once(')')?;
    (!target.contains("://")).then_some((text, after))
}

/// Returns the types for which a generic module exists, each with its fields.
fn item_types(module: &Signature, known: &Modules) -> Vec<(String, String)> {
    let all = known.types.get(&module.name).into_iter().flatten();
    let lines = all.map(|types| {
        let is = module.generics.iter().zip(types);
        let is = is.map(|(generic, ty)| format!("{generic} = {}", ty.short()));
        let fields = types
            .iter()
            .filter_map(|ty| known.items.get(&ty.to_string()));
        let fields = fields.map(|fields| format!("(fields: {})", fields.join(", ")));
        let (is, fields): (Vec<_>, Vec<_>) = (is.collect(), fields.collect());
        (is.join(", "), fields.join(", "))
    });
    lines.collect()
}

fn handling(module: &Signature) -> String {
    if module.inputs.is_empty() {
        return "a source".to_owned();
    }
    let items = match module.parallelism {
        Parallelism::Element => "handles any number of items at the same time",
        Parallelism::Ordered => "handles any number of items at the same time; keeps their order",
        Parallelism::Flow => "handles one item of each flow at a time",
        Parallelism::Serial => "handles one item at a time",
    };
    let code = match module.body {
        Body::Plain => "",
        Body::Async => "; may wait",
        Body::Blocking => "; runs on OS threads of the blocking pool",
    };
    format!("{items}{code}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_to_rust_items_lose_their_targets() {
        let check = |doc: &str, expected: &str| assert_eq!(without_item_links(doc), expected);
        check(
            "ask [`TcpDemand`](super::TcpDemand) now",
            "ask `TcpDemand` now",
        );
        check(
            "a [`Peer`], [the peers](crate::Peer)",
            "a `Peer`, the peers",
        );
        check(
            "[text](https://a.org/b) stays",
            "[text](https://a.org/b) stays",
        );
        check("[`a`, `b`], [u8] and [", "[`a`, `b`], [u8] and [");
    }
}
