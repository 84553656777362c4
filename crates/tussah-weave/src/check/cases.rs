//! Tests of graphs: their names are resolved and their values checked.

use std::collections::{HashMap, HashSet};

use super::args::Wanted;
use super::ends::{IN, OUT, RUN};

use super::values::Params;
use super::{Checker, Target, doubles};
use crate::diagnostic::Diagnostic;
use crate::graph::{Boundary, Graph, Group, Place, PortRef, Step, Test};
use crate::suggest;
use crate::token::Span;
use crate::tree::{File, Name, TestCase, TestEnd, TestStep};
use crate::value::Kind;

/// Checks the tests of a file.
pub(super) fn tests(
    checker: &mut Checker<'_>,
    file: &File,
    graphs: &[Graph],
    broken: &HashSet<usize>,
) -> Vec<Test> {
    let mut tests: Vec<Test> = Vec::new();
    // The positions of the tests by their names.
    let mut known: HashMap<&str, Span> = HashMap::new();
    for case in &file.tests {
        if let Some(&first) = known.get(case.name.as_str()) {
            let message = format!("the test {:?} exists twice", case.name);
            let error = Diagnostic::error(case.span, message).other(first, "it exists here first");
            checker.report(error);
        }
        if let Some(test) = test(checker, graphs, broken, case) {
            known.entry(&case.name).or_insert(test.span);
            tests.push(test);
        }
    }
    tests
}

fn test(
    checker: &mut Checker<'_>,
    graphs: &[Graph],
    broken: &HashSet<usize>,
    case: &TestCase,
) -> Option<Test> {
    let name = &case.graph;
    let Some(&graph) = checker.definitions.get(name.text.as_str()) else {
        let mut error = Diagnostic::error(name.span, format!("unknown graph `{}`", name.text));
        error.help = suggest::help(&name.text, checker.definitions.keys().copied());
        checker.report(error);
        return None;
    };
    let wanted = Wanted::of_graph(&graphs[graph].params);
    let role = format!("`{}`", name.text);
    // A test has no parameters.
    let mut params = Params::default();
    let args = checker.check_args(&mut params, &case.args, &wanted, &role, name.span);
    let errors = checker.diagnostics.len();
    let mut cases = Cases {
        checker,
        graph: &graphs[graph],
        is_broken: broken.contains(&graph),
        params,
    };
    let steps = case.steps.iter().filter_map(|step| cases.step(step));
    let mut steps = steps.collect::<Vec<_>>();
    // After another error, an edge or a double may be missing.
    if checker.diagnostics.len() == errors && !broken.contains(&graph) {
        doubles::check(checker, &graphs[graph], &mut steps);
    }
    Some(Test {
        name: case.name.clone(),
        graph,
        args,
        steps,
        span: case.span,
    })
}

struct Cases<'c, 'a> {
    checker: &'c mut Checker<'a>,
    graph: &'c Graph,
    is_broken: bool,
    params: Params,
}

impl Cases<'_, '_> {
    fn step(&mut self, step: &TestStep) -> Option<Step> {
        match step {
            TestStep::Replace {
                name,
                module,
                types,
                args,
            } => {
                let node = self.node(name)?;
                let path = match self.checker.resolve(module) {
                    Target::Module(path) => path,
                    Target::Graph(_) => {
                        let message = format!("`{module}` is a graph, expected a module");
                        self.checker
                            .report(Diagnostic::error(module.span(), message));
                        return None;
                    }
                    Target::Unknown => return None,
                };
                let signature = self.checker.signature(&path);
                let role = format!("`{}`", module.last());
                let args = match signature {
                    Some(signature) => {
                        let wanted = Wanted::of_module(signature);
                        let (checker, params) = (&mut *self.checker, &mut self.params);
                        checker.check_type_count(types, signature, &role);
                        checker.check_args(params, args, &wanted, &role, module.span())
                    }
                    None => args.clone(),
                };
                Some(Step::Replace {
                    node,
                    module: path,
                    types: types.iter().map(|found| found.ty.clone()).collect(),
                    args,
                    span: module.span(),
                })
            }
            TestStep::Send { to, values } => {
                self.values(values);
                Some(Step::Send {
                    to: self.place(to, true)?,
                    values: values.clone(),
                    span: to.span(),
                })
            }
            TestStep::Expect { at, values, within } => {
                self.values(values);
                if let Some(within) = within {
                    self.duration(within);
                }
                Some(Step::Expect {
                    at: self.place(at, false)?,
                    values: values.clone(),
                    within: within.clone(),
                    span: at.span(),
                })
            }
            TestStep::Advance(time) => {
                self.duration(time);
                Some(Step::Advance(time.clone()))
            }
            TestStep::Drain(span) => Some(Step::Drain(*span)),
        }
    }

    fn values(&mut self, values: &[crate::Expr]) {
        for value in values {
            self.checker.check_value(&mut self.params, value, None, "");
        }
    }

    fn duration(&mut self, time: &crate::Expr) {
        self.checker
            .check_value(&mut self.params, time, Some(&Kind::Duration), "the time");
    }

    /// Resolves an instance, or an instance inside a nested graph, such as `cache.read`.
    fn node(&mut self, end: &TestEnd) -> Option<String> {
        let name = end.first(end.names.len());
        if self.graph.nodes.iter().any(|node| node.name == name) {
            return Some(name);
        }
        if let Some(group) = self.graph.groups.iter().find(|group| group.name == name) {
            let message = format!("`{name}` is the graph `{}`, not a module", group.graph);
            let mut error = Diagnostic::error(end.span(), message);
            let inside = self.graph.nodes[group.nodes.clone()].iter();
            error.help = inside
                .min_by_key(|node| node.name.matches('.').count())
                .map(|node| {
                    format!(
                        "replace an instance inside the graph, such as `{}`",
                        node.name
                    )
                });
            self.checker.report(error);
            return None;
        }
        self.report_unknown(end.span(), &name);
        None
    }

    fn report_unknown(&mut self, at: Span, name: &str) {
        if self.is_broken {
            return;
        }
        let mut error = Diagnostic::error(
            at,
            format!("`{}` has no instance `{name}`", self.graph.name),
        );
        let known = self.graph.nodes.iter().map(|node| node.name.as_str());
        error.help = suggest::help(name, known);
        self.checker.report(error);
    }

    /// Resolves a port. If its name is missing, it is the port that a test most likely means. A
    /// test sends items to an instance's input, or in the place of a source. It expects items at an
    /// instance's output, or at a sink.
    fn place(&mut self, end: &TestEnd, is_sent: bool) -> Option<Place> {
        let first = end.names.first()?;
        if first.text == IN || first.text == OUT {
            return self.own_port(end, is_sent);
        }
        let count = end.names.len();
        // A port of a nested graph precedes an instance of the same name inside it.
        for prefix in [count - 1, count] {
            let (name, port) = (end.first(prefix), end.names.get(prefix));
            let mut groups = self.graph.groups.iter();
            let group = groups.find(|group| group.name == name);
            if let Some(place) = group.and_then(|it| self.group_port(it, port, is_sent)) {
                return Some(place);
            }
        }
        for prefix in [count, count - 1] {
            let (name, port) = (end.first(prefix), end.names.get(prefix));
            let mut nodes = self.graph.nodes.iter();
            if let Some(node) = nodes.position(|node| node.name == name) {
                return self.node_port(node, port, is_sent);
            }
        }
        self.report_no_place(end, is_sent);
        None
    }

    /// Reports that an end names neither an instance nor a port.
    fn report_no_place(&mut self, end: &TestEnd, is_sent: bool) {
        if self.is_broken {
            return;
        }
        let count = end.names.len();
        for prefix in [count, count - 1] {
            let name = end.first(prefix);
            let mut groups = self.graph.groups.iter();
            let Some(group) = groups.find(|group| group.name == name) else {
                continue;
            };
            let default = if is_sent { IN } else { OUT };
            let port = end.names.get(prefix);
            let span = port.map_or(end.span(), |port| port.span);
            let port = port.map_or(default, |port| port.text.as_str());
            let message = format!("`{name}` has no port `{port}`");
            let mut error = Diagnostic::error(span, message);
            let ports = group.inputs.iter().chain(&group.outputs);
            let ports = ports.map(|boundary| boundary.port.as_str());
            let inside = self.graph.nodes[group.nodes.clone()].iter();
            let inside = inside.filter_map(|node| node.name[name.len()..].strip_prefix('.'));
            error.help = suggest::help(port, ports.chain(inside));
            self.checker.report(error);
            return;
        }
        // Without a nested graph, only the last of two names is that of a port.
        let is_port = |count: usize| count == 2 && self.graph.groups.is_empty();
        let count = if is_port(count) { 1 } else { count };
        let span = end.names[0].span.to(end.names[count - 1].span);
        self.report_unknown(span, &end.first(count));
    }

    /// Returns a port of an instance. Without a name, it is the one that a test most likely means.
    fn node_port(&mut self, node: usize, named: Option<&Name>, is_sent: bool) -> Option<Place> {
        let name = self.graph.nodes[node].name.clone();
        let port = named.map(|port| port.text.clone());
        let signature = self.checker.signature(&self.graph.nodes[node].module);
        let is_input = match (&port, signature) {
            (Some(port), Some(signature)) => {
                let (is_input, is_output) = (
                    signature.input(port).is_some(),
                    signature.output(port).is_some(),
                );
                if !is_input && !is_output {
                    let at = named.map_or(Span::default(), |port| port.span);
                    let known = signature.inputs.iter().chain(&signature.outputs);
                    let mut error = Diagnostic::error(at, format!("`{name}` has no port `{port}`"));
                    error.help = suggest::help(port, known.map(|port| port.name.as_str()));
                    self.checker.report(error);
                    return None;
                }
                is_input
            }
            (None, Some(signature)) if is_sent => !signature.inputs.is_empty(),
            (None, Some(signature)) => signature.output(OUT).is_none(),
            (Some(port), None) => {
                let mut edges = self.graph.edges.iter();
                edges.any(|edge| edge.to.node == node && edge.to.port == *port)
            }
            (None, None) => {
                let has_input = self.graph.edges.iter().any(|edge| edge.to.node == node);
                let has_output = self
                    .graph
                    .edges
                    .iter()
                    .any(|edge| edge.from.node == node && edge.from.port == OUT);
                if is_sent { has_input } else { !has_output }
            }
        };
        let port = port.unwrap_or_else(|| if is_input { RUN } else { OUT }.to_owned());
        Some(match is_input {
            true => Place::Input { node: name, port },
            false => Place::Output { node: name, port },
        })
    }

    /// Returns a port of a graph inside the graph, if it has the port.
    fn group_port(&self, group: &Group, named: Option<&Name>, is_sent: bool) -> Option<Place> {
        let default = if is_sent { IN } else { OUT };
        let port = named.map_or(default, |port| port.text.as_str());
        let find = |boundaries: &[Boundary]| {
            let boundary = boundaries.iter().find(|boundary| boundary.port == port)?;
            Some(boundary.inner.clone())
        };
        let node = |port: &PortRef| self.graph.nodes[port.node].name.clone();
        if let Some(inner) = find(&group.inputs) {
            let (node, port) = (node(&inner), inner.port);
            return Some(Place::Input { node, port });
        }
        let inner = find(&group.outputs)?;
        let (node, port) = (node(&inner), inner.port);
        Some(Place::Output { node, port })
    }

    fn own_port(&mut self, end: &TestEnd, is_sent: bool) -> Option<Place> {
        let is_in = end.names[0].text == IN;
        let port = match &*end.names {
            [own] => own.text.clone(),
            [_, ports @ ..] => {
                let ports = ports.iter().map(|port| port.text.as_str());
                ports.collect::<Vec<_>>().join(".")
            }
            [] => return None,
        };
        if is_in != is_sent {
            let message = match is_sent {
                true => "items cannot be sent to `out`",
                false => "items cannot be expected at `in`",
            };
            self.checker.report(Diagnostic::error(end.span(), message));
            return None;
        }
        let boundaries = if is_in {
            &self.graph.inputs
        } else {
            &self.graph.outputs
        };
        if boundaries.iter().all(|boundary| boundary.port != port) && !self.is_broken {
            let message = format!("`{}` has no port `{port}` of its own", self.graph.name);
            self.checker.report(Diagnostic::error(end.span(), message));
            return None;
        }
        Some(match is_in {
            true => Place::GraphInput(port),
            false => Place::GraphOutput(port),
        })
    }
}
