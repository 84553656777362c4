//! The construction of one graph from its definition.

use std::collections::BTreeMap;

use super::scope::{Branches, Content, Entity, Place, Scope, are_exclusive};
use super::values::{self, Params};
use super::{Checker, copies, cycles, fused, ports, unify};
use crate::diagnostic::Diagnostic;
use crate::graph::{Graph, Limit, Node, Shed};
use crate::suggest;
use crate::token::Span;
use crate::tree::{Choice, Definition, Instance, LimitRule, Name, ShedRule, Statement};
use crate::value::{Kind, Value};

/// Bound, in instances and edges: the maximum of a graph with all graphs inside it. A larger graph
/// is an error, because graphs inside graphs multiply.
pub(super) const PARTS_MAX: usize = 4096;

/// Bound, in instances and edges: the maximum of all graphs inside other graphs of a file; long
/// texts, expressions and types count as several. More are an error, because each graph contains
/// copies of all graphs inside it.
pub(super) const COPIED_MAX: usize = 262_144;

/// A graph while it is built.
pub(super) struct Builder<'c, 'a> {
    pub(super) checker: &'c mut Checker<'a>,
    /// The graphs that this graph can contain.
    pub(super) built: &'c BTreeMap<usize, Graph>,
    pub(super) params: Params,
    pub(super) scope: Scope,
    pub(super) graph: Graph,
    /// The branches of the graph's own limits, which are its last ones.
    limit_branches: Vec<Branches>,
    /// The number of `if`s so far.
    choices: usize,
    /// True if errors make missing edges and unused names likely.
    pub(super) is_broken: bool,
    /// True if an error hides instances of a limit, so that it may bound any cycle.
    pub(super) has_lost_limit: bool,
}

/// Returns a graph without its content.
pub(super) fn empty(definition: &Definition) -> Graph {
    Graph {
        name: definition.name.text.clone(),
        doc: definition.doc.clone(),
        params: definition.params.clone(),
        nodes: Vec::new(),
        edges: Vec::new(),
        sheds: Vec::new(),
        limits: Vec::new(),
        inputs: Vec::new(),
        outputs: Vec::new(),
        groups: Vec::new(),
        span: definition.name.span,
    }
}

/// Builds the graph of a definition. Returns whether an error may hide parts of it.
pub(super) fn graph(
    checker: &mut Checker<'_>,
    definition: &Definition,
    built: &BTreeMap<usize, Graph>,
) -> (Graph, bool) {
    let mut builder = Builder {
        checker,
        built,
        params: Params {
            is_incomplete: definition.is_broken,
            ..Params::default()
        },
        scope: Scope::default(),
        graph: empty(definition),
        limit_branches: Vec::new(),
        choices: 0,
        is_broken: definition.is_broken,
        has_lost_limit: definition.has_lost_limit,
    };
    builder.params(definition);
    builder.lost_instances(definition);
    let mut statements = Vec::new();
    builder.instances(&definition.body, &Place::default(), &mut statements);
    for (statement, place) in &statements {
        match statement {
            Statement::Chain(chain) => builder.chain(chain, place),
            Statement::Shed(rule) => builder.shed(rule, place),
            Statement::Limit(rule) => builder.limit(rule, place),
            Statement::Instance(_) | Statement::If(_) => {}
        }
    }
    unify::types(&mut builder);
    copies::check(&mut builder);
    ports::check(&mut builder);
    cycles::check(&mut builder);
    fused::check(&mut builder);
    builder.report_unused(definition);
    (builder.graph, builder.is_broken)
}

impl Builder<'_, '_> {
    pub(super) fn report(&mut self, diagnostic: Diagnostic) {
        self.is_broken |= diagnostic.is_error();
        self.checker.report(diagnostic);
    }

    /// Adds the instances whose statements did not parse, so that their names are known.
    fn lost_instances(&mut self, definition: &Definition) {
        for name in &definition.lost {
            let entity = Entity {
                span: name.span,
                place: Place::default(),
                content: Content::Unknown,
                is_faulty: true,
            };
            self.scope.insert(&name.text, entity);
        }
    }

    fn params(&mut self, definition: &Definition) {
        for param in &definition.params {
            if let Some(default) = &param.default {
                let role = format!("the default of `{}`", param.name);
                // A default can use the parameters before it.
                self.checker
                    .check_value(&mut self.params, default, Some(&param.kind), &role);
            }
            match values::conflict(&definition.params, param) {
                Some(error) => self.report(error),
                None => {
                    let (name, kind) = (param.name.clone(), param.kind.clone());
                    self.params.kinds.insert(name, kind);
                }
            }
        }
    }

    /// Adds the instances, and collects the other statements with their places.
    fn instances<'t>(
        &mut self,
        body: &'t [Statement],
        place: &Place,
        statements: &mut Vec<(&'t Statement, Place)>,
    ) {
        for statement in body {
            match statement {
                Statement::Instance(instance) => self.add_instance(instance, place),
                Statement::If(choice) => self.choice(choice, place, statements),
                _ => statements.push((statement, place.clone())),
            }
        }
    }

    fn choice<'t>(
        &mut self,
        choice: &'t Choice,
        place: &Place,
        statements: &mut Vec<(&'t Statement, Place)>,
    ) {
        let role = "a condition";
        self.checker
            .check_value(&mut self.params, &choice.condition, Some(&Kind::Flag), role);
        let number = self.choices;
        self.choices += 1;
        for (branch, body) in [(true, &choice.then), (false, &choice.otherwise)] {
            let condition = match branch {
                true => choice.condition.clone(),
                false => choice.condition.clone().not(),
            };
            let mut inside = place.clone();
            inside.branches.push((number, branch));
            inside.condition = Some(match inside.condition.take() {
                Some(outer) => outer.and(condition),
                None => condition,
            });
            self.instances(body, &inside, statements);
        }
    }

    fn add_instance(&mut self, instance: &Instance, place: &Place) {
        let errors = self.checker.diagnostics.len();
        let content = self.instance(instance, place);
        let name = &instance.name;
        let entity = Entity {
            span: name.span,
            place: place.clone(),
            content,
            is_faulty: self.checker.diagnostics.len() > errors,
        };
        let taken = self.scope.insert(&name.text, entity);
        if let Some(first) = taken {
            let message = format!("the instance `{}` exists twice", name.text);
            self.report(Diagnostic::error(name.span, message).other(first, "it exists here first"));
        } else if let Some(param) = self
            .graph
            .params
            .iter()
            .find(|param| param.name == name.text)
        {
            let message = format!("the name `{}` is taken", name.text);
            let error =
                Diagnostic::error(name.span, message).other(param.span, "by this parameter");
            self.report(error);
        }
    }

    /// Resolves the name of an instance in a statement. Reports an unknown name, and an instance
    /// that does not exist in every case in which the statement applies.
    pub(super) fn find(&mut self, name: &Name, place: &Place) -> Vec<usize> {
        let found = self.scope.find(&name.text).to_vec();
        let text = &name.text;
        if found.is_empty() {
            let error = Diagnostic::error(name.span, format!("unknown instance `{text}`"));
            let error = match suggest::nearest(text, self.scope.names()) {
                Some(near) => error.help(format!("did you mean `{near}`?")),
                None if self.checker.is_module(text) => {
                    error.help(format!("add an instance of `{text}`: `name = {text}()`"))
                }
                None => error.help(format!("add an instance: `{text} = Module()`")),
            };
            self.report(error);
        } else if !self.scope.covers(&found, &place.branches) {
            let first = self.scope.entities[found[0]].span;
            let message = format!("`{text}` exists only under a condition");
            let error = Diagnostic::error(name.span, message)
                .other(first, "this instance is inside an `if`")
                .help(
                    "write this statement inside the same `if`, or add the instance to its `else`",
                );
            self.report(error);
        }
        found
    }

    fn shed(&mut self, rule: &ShedRule, place: &Place) {
        let wanted = Some(&Kind::Duration);
        let role = "the bound of the response time";
        self.checker
            .check_value(&mut self.params, &rule.above, wanted, role);
        for index in self.find(&rule.name, place) {
            match &self.scope.entities[index].content {
                Content::Unknown => {}
                Content::Graph(inner) => {
                    let message = format!(
                        "`{}` is the graph `{}`, not a module",
                        rule.name.text, inner.graph
                    );
                    let help = "write the rule inside the graph, at the module that is slow";
                    let error = Diagnostic::error(rule.name.span, message).help(help);
                    self.report(error);
                }
                &Content::Node(node) => self.shed_node(rule, place, node),
            }
        }
    }

    fn shed_node(&mut self, rule: &ShedRule, place: &Place, node: usize) {
        let module = self.graph.nodes[node].module.clone();
        let signature = self.checker.signature(&module);
        if signature.is_some_and(|signature| signature.inputs.is_empty()) {
            let message = format!(
                "`{}` has no input, so it cannot reject items",
                rule.name.text
            );
            let help = "shed at an instance that receives items";
            self.report(Diagnostic::error(rule.name.span, message).help(help));
            return;
        }
        let twice = self.graph.sheds.iter().any(|shed| shed.node == node);
        if twice && place.condition.is_none() {
            let message = format!("`{}` has two `shed` rules", rule.name.text);
            self.report(Diagnostic::error(rule.span, message));
        }
        let targets = match &rule.to {
            Some(end) => self.shed_targets(end, place),
            None => Vec::new(),
        };
        if rule.to.is_some() && targets.is_empty() {
            return;
        }
        let to = targets.into_iter().next();
        self.graph.sheds.push(Shed {
            node,
            above: rule.above.clone(),
            to,
            condition: place.condition.clone(),
            span: rule.span,
        });
    }

    fn limit(&mut self, rule: &LimitRule, place: &Place) {
        let role = "the limit";
        let count =
            self.checker
                .check_value(&mut self.params, &rule.count, Some(&Kind::Count), role);
        if count == Some(Value::Count(0)) {
            self.report(Diagnostic::error(
                rule.count.span,
                "a limit of 0 admits no item",
            ));
        }
        let mut nodes: Vec<usize> = Vec::new();
        for name in &rule.names {
            let found = self.find(name, place);
            self.has_lost_limit |= found.is_empty();
            for index in found {
                let of_name: Vec<usize> = match &self.scope.entities[index].content {
                    Content::Node(node) => vec![*node],
                    Content::Graph(inner) => inner.nodes.clone().collect(),
                    Content::Unknown => {
                        self.has_lost_limit = true;
                        continue;
                    }
                };
                self.refuse_overlap(name, &of_name, &nodes, place);
                self.refuse_sources(name.span, &of_name);
                nodes.extend(of_name);
            }
        }
        if rule.names.is_empty() {
            self.report(Diagnostic::error(rule.span, "this limit has no instances"));
        }
        nodes.sort_unstable();
        nodes.dedup();
        self.limit_branches.push(place.branches.clone());
        self.graph.limits.push(Limit {
            count: rule.count.clone(),
            nodes,
            condition: place.condition.clone(),
            span: rule.span,
        });
    }

    /// Reports nodes that are in another limit, or twice in this limit. Limits in different
    /// branches of an `if` never apply together.
    fn refuse_overlap(&mut self, name: &Name, nodes: &[usize], so_far: &[usize], place: &Place) {
        let (span, name) = (name.span, &name.text);
        let is_in = |set: &[usize]| nodes.iter().any(|node| set.contains(node));
        if is_in(so_far) {
            self.report(Diagnostic::error(
                span,
                format!("`{name}` is named twice in this limit"),
            ));
            return;
        }
        let limits = &self.graph.limits;
        let nested = limits.len() - self.limit_branches.len();
        let branches = std::iter::repeat_n(None, nested);
        let branches = branches.chain(self.limit_branches.iter().map(Some));
        let others: Vec<Span> = (limits.iter().zip(branches))
            .filter(|(limit, branches)| {
                let is_exclusive = branches.is_some_and(|it| are_exclusive(it, &place.branches));
                !is_exclusive && is_in(&limit.nodes)
            })
            .map(|(limit, _)| limit.span)
            .collect();
        if let Some(&other) = others.first() {
            let message = format!("`{name}` is in two limits");
            let error = Diagnostic::error(span, message).other(other, "the other limit");
            self.report(error.help("an instance can be in one limit only"));
        }
    }

    /// Reports a node in a limit whose module has no input: its items would enter uncounted.
    fn refuse_sources(&mut self, span: Span, nodes: &[usize]) {
        let mut nodes = nodes.iter().map(|&node| &self.graph.nodes[node]);
        let is_source = |node: &&Node| {
            let signature = self.checker.signature(&node.module);
            signature.is_some_and(|signature| signature.inputs.is_empty())
        };
        if let Some(node) = nodes.find(is_source) {
            let message = format!(
                "`{}` has no input, so a limit cannot count its items",
                node.name
            );
            let help = "name the instances that receive its items";
            self.report(Diagnostic::error(span, message).help(help));
        }
    }

    fn report_unused(&mut self, definition: &Definition) {
        if self.is_broken {
            return;
        }
        for param in &definition.params {
            if !self.params.used.contains(&param.name) {
                let message = format!("the parameter `{}` has no effect", param.name);
                self.report(Diagnostic::warning(param.span, message));
            }
        }
    }
}
