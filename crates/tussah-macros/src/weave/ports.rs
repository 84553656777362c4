//! The check of an instance's ports by the compiler: that they are connected, and that calls and
//! shards fit them.

use std::collections::BTreeSet;

use proc_macro2::TokenStream;
use quote::quote;
use tussah_weave::{Edge, Graph, Via};

use super::{Source, alias, spelled};

impl Source<'_> {
    /// Returns the code that makes the compiler check the ports in a graph without ports of its
    /// own, in which all graphs inside it are expanded.
    pub(super) fn ports(&self, graph: &Graph) -> TokenStream {
        let mut checks = Vec::new();
        for (at, node) in graph.nodes.iter().enumerate() {
            let of = alias(node);
            let module = quote!(<#of as ::tussah::flow::expansion::Module>);
            let (place, name) = (self.place(node.span), &node.name);
            let rejected = graph.sheds.iter().filter_map(|shed| shed.to.as_ref());
            let mut inputs = graph.edges.iter().map(|edge| &edge.to).chain(rejected);
            let has_input = inputs.any(|to| to.node == at);
            let outputs = graph.edges.iter().map(|edge| &edge.from);
            let outputs = outputs.filter(|from| from.node == at);
            let outputs: BTreeSet<_> = outputs.map(|from| &from.port).collect();
            let outputs = outputs.into_iter();
            let unconnected = quote! {
                unconnected(
                    #module::INPUTS,
                    #module::OUTPUTS,
                    #place,
                    #name,
                    #has_input,
                    &[#(#outputs),*],
                )
            };
            checks.push(self.fails(node.span, &unconnected));
            if let Some(shards) = &node.shards {
                let (place, of) = (self.place(shards.span), spelled(node));
                let field = match &shards.by {
                    Some(field) => quote!(::core::option::Option::Some(#field)),
                    None => quote!(::core::option::Option::None),
                };
                let wrong = quote!(wrong_shards(#module::INPUTS, #place, #of, #field));
                checks.push(self.fails(shards.span, &wrong));
            }
        }
        let is_call = |edge: &&Edge| matches!(edge.via, Via::Call | Via::Fused);
        for edge in graph.edges.iter().filter(is_call) {
            checks.push(self.call(graph, edge));
        }
        checks.into_iter().collect()
    }

    /// Returns the code that checks that the end of a call needs no queue.
    fn call(&self, graph: &Graph, edge: &Edge) -> TokenStream {
        let node = &graph.nodes[edge.to.node];
        let of = alias(node);
        let module = quote!(<#of as ::tussah::flow::expansion::Module>);
        let (place, name) = (self.place(edge.to_span), &node.name);
        let is_fused = edge.via == Via::Fused;
        let wrong = quote! {
            needs_queue(
                #module::BODY,
                #module::HAS_STATE && !#module::IS_ALONE,
                #module::IS_ORDERED && !#module::IS_ALONE,
                #place,
                #name,
                #is_fused,
            )
        };
        self.fails(edge.to_span, &wrong)
    }
}
