//! The order of graphs: each follows those that it contains, and none contains itself.

use super::Checker;
use crate::diagnostic::Diagnostic;
use crate::suggest;
use crate::token::Span;
use crate::tree::{File, Statement};

impl<'a> Checker<'a> {
    /// Returns the graphs in an order in which each follows the graphs that it contains. Reports
    /// recursion.
    pub(super) fn order(&mut self, file: &'a File) -> Vec<usize> {
        let inner: Vec<Vec<(usize, Span)>> = file
            .graphs
            .iter()
            .map(|definition| {
                let mut inner = Vec::new();
                self.collect_inner(&definition.body, &mut inner);
                inner
            })
            .collect();
        let mut search = Search {
            inner: &inner,
            state: vec![State::New; inner.len()],
            path: Vec::new(),
            order: Vec::new(),
            cycles: Vec::new(),
        };
        (0..inner.len()).for_each(|index| search.visit(index));
        let Search { order, cycles, .. } = search;
        for (cycle, span) in cycles {
            let names: Vec<&str> = cycle
                .iter()
                .map(|&index| file.graphs[index].name.text.as_str())
                .collect();
            let error = match names.as_slice() {
                [name] => Diagnostic::error(span, format!("the graph `{name}` contains itself")),
                [name, ..] => {
                    let path = suggest::list(names.iter().copied().chain([*name]));
                    let message = format!("the graph `{name}` contains itself: {path}");
                    Diagnostic::error(span, message)
                }
                [] => continue,
            };
            self.report(error);
        }
        order
    }

    /// Collects the graphs that statements name.
    fn collect_inner(&self, body: &[Statement], inner: &mut Vec<(usize, Span)>) {
        for statement in body {
            match statement {
                Statement::Instance(instance) if instance.module.names.len() == 1 => {
                    let graph = self.definitions.get(instance.module.last());
                    inner.extend(graph.map(|&graph| (graph, instance.module.span())));
                }
                Statement::If(choice) => {
                    self.collect_inner(&choice.then, inner);
                    self.collect_inner(&choice.otherwise, inner);
                }
                _ => {}
            }
        }
    }
}

/// A depth-first search for graphs that contain themselves.
struct Search<'a> {
    inner: &'a [Vec<(usize, Span)>],
    state: Vec<State>,
    path: Vec<usize>,
    order: Vec<usize>,
    cycles: Vec<(Vec<usize>, Span)>,
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    New,
    Open,
    Done,
    Recursive,
}

impl Search<'_> {
    fn visit(&mut self, index: usize) {
        // The depth is that of graphs inside graphs.
        let mut stack = vec![(index, 0)];
        if self.state[index] != State::New {
            return;
        }
        self.state[index] = State::Open;
        self.path.push(index);
        while let Some((at, next)) = stack.pop() {
            let Some(&(inner, span)) = self.inner[at].get(next) else {
                self.path.pop();
                if self.state[at] == State::Open {
                    self.state[at] = State::Done;
                    self.order.push(at);
                }
                continue;
            };
            stack.push((at, next + 1));
            match self.state[inner] {
                State::New => {
                    self.state[inner] = State::Open;
                    self.path.push(inner);
                    stack.push((inner, 0));
                }
                State::Done => {}
                State::Open | State::Recursive => {
                    if let Some(start) = self.path.iter().position(|&index| index == inner) {
                        let cycle = self.path[start..].to_vec();
                        for &index in &cycle {
                            self.state[index] = State::Recursive;
                        }
                        self.cycles.push((cycle, span));
                    }
                }
            }
        }
    }
}
