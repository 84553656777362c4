//! Fused chains and edges `via call`, as types that let the compiler inline each call.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use tussah_weave::{Edge, Graph, Via};

use super::{Source, alias};
use crate::module::port_number;

/// Bound, in calls: the maximum number in the type of one chain. There can be very many paths to an
/// instance that several others call. All further calls are made along the edges.
pub(super) const CALLS_MAX: usize = 32;

impl Source<'_> {
    /// Returns the code that sets the ways of all instances with which chains of calls begin.
    pub(super) fn fused(&self, graph: &Graph) -> TokenStream {
        let heads = graph.nodes.iter().enumerate();
        let heads = heads.filter(|&(head, _)| {
            let mut edges = graph.edges.iter();
            !edges.any(|edge| edge.to.node == head && is_direct(graph, edge))
        });
        let fused = heads.filter_map(|(head, node)| {
            let (of, name) = (alias(node), &node.name);
            let way = self.way(graph, head, &of, &mut { CALLS_MAX })?;
            Some(quote!(graph.fuse::<#of, #way>(#name);))
        });
        fused.collect()
    }

    /// Returns the way of the items that an instance sends, or `None` if none of its edges is a
    /// call. `head` is the first instance of a fused chain, and `room` is the number of calls that
    /// the type of the chain can still contain.
    fn way(
        &self,
        graph: &Graph,
        from: usize,
        head: &impl ToTokens,
        room: &mut usize,
    ) -> Option<TokenStream> {
        let calls = graph.edges.iter().filter(|edge| {
            let mut same_port = graph.edges.iter().filter(|it| it.from == edge.from);
            edge.from.node == from && is_direct(graph, edge) && same_port.nth(1).is_none()
        });
        let calls: Vec<_> = calls.take(*room).collect();
        *room -= calls.len();
        let ways = calls.into_iter().map(|edge| {
            let (port, to) = (port_number(&edge.from.port), edge.to.node);
            let of = alias(&graph.nodes[to]);
            let head = match edge.via {
                Via::Fused => head.to_token_stream(),
                _ => quote!(::tussah::flow::expansion::Each),
            };
            let next = self.way(graph, to, &head, room);
            let next = next.unwrap_or_else(|| quote!(::tussah::flow::expansion::Along));
            let way = quote!(::tussah::flow::expansion::Fuse<#port, #head, #of, #next>);
            (port, way)
        });
        let joined = ways.reduce(|(_, others), (port, way)| {
            let fork = quote!(::tussah::flow::expansion::Fork<#port, #way, #others>);
            (port, fork)
        });
        joined.map(|(_, way)| way)
    }
}

/// Returns whether the compiler may know the receiver of an edge. An instance that begins a fused
/// chain has a way of its own, which calls to it would not take.
fn is_direct(graph: &Graph, edge: &Edge) -> bool {
    let mut fused = graph.edges.iter().filter(|it| it.via == Via::Fused);
    match edge.via {
        Via::Fused => true,
        Via::Call => !fused.any(|it| it.from.node == edge.to.node),
        _ => false,
    }
}
