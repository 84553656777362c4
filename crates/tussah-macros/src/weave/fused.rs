//! Fused chains, as types that let the compiler inline each call.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use tussah_weave::{Edge, Graph, Via};

use super::{Source, alias};
use crate::module::port_number;

impl Source<'_> {
    /// Returns the code that sets the ways of all instances with which fused chains begin.
    pub(super) fn fused(&self, graph: &Graph) -> TokenStream {
        let mut fused = Vec::new();
        for edge in graph.edges.iter().filter(|edge| edge.via == Via::Fused) {
            let mut edges = graph.edges.iter();
            if edges.any(|it| it.via == Via::Fused && it.to.node == edge.from.node) {
                continue;
            }
            let head = &graph.nodes[edge.from.node];
            let (of, name) = (alias(head), &head.name);
            let way = self.way(graph, edge, &of);
            fused.push(quote!(graph.fuse::<#of, #way>(#name);));
        }
        quote!(#(#fused)*)
    }

    /// Returns the way along an edge and the rest of its chain, which begins with `head`.
    fn way(&self, graph: &Graph, edge: &Edge, head: &impl ToTokens) -> TokenStream {
        let (port, to) = (port_number(&edge.from.port), edge.to.node);
        let of = alias(&graph.nodes[to]);
        let mut edges = graph.edges.iter();
        let next = edges.find(|it| it.via == Via::Fused && it.from.node == to);
        let next = match next {
            Some(next) => self.way(graph, next, head),
            None => quote!(::tussah::flow::expansion::Along),
        };
        quote!(::tussah::flow::expansion::Fuse<#port, #head, #of, #next>)
    }
}
