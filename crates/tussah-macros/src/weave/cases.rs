//! The check of the ports in tests by the compiler.

use proc_macro2::TokenStream;
use quote::quote;
use tussah_weave::Graph;
use tussah_weave::tree::{TestCase, TestStep};

use super::{Source, alias};

impl Source<'_> {
    /// Returns the code that makes the compiler check the ports that the tests of a graph name.
    pub(super) fn cases(&self, graph: &Graph, tests: &[TestCase]) -> TokenStream {
        let tests = tests.iter().filter(|test| test.graph.text == graph.name);
        let ends = tests
            .flat_map(|test| &test.steps)
            .filter_map(|step| match step {
                TestStep::Send { to: end, .. } | TestStep::Expect { at: end, .. } => Some(end),
                TestStep::Replace { .. } | TestStep::Advance(_) | TestStep::Drain(_) => None,
            });
        let checks = ends.filter_map(|end| {
            let (port, node) = end.names.split_last()?;
            let node = end.first(node.len());
            let node = graph.nodes.iter().find(|it| it.name == node)?;
            let of = alias(node);
            let module = quote!(<#of as ::tussah::flow::expansion::Module>);
            let (place, name, text) = (self.place(port.span), &node.name, &port.text);
            let unknown = quote! {
                unknown_port(#module::INPUTS, #module::OUTPUTS, #place, #name, "port", #text)
            };
            Some(self.fails(port.span, &unknown))
        });
        checks.collect()
    }
}
