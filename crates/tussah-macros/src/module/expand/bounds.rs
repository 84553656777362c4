//! Writing the bounds of the types in signatures.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::{Ident, ItemImpl, Type, WherePredicate, parse_quote};

use crate::module::{Kind, Module, Port};

impl Module {
    /// Returns the block with the bounds of the types in its signatures, as a `where` clause.
    ///
    /// If a type does not meet its bound, the compiler reports the clause, at the type. It takes
    /// the clause for granted in the rest of the expansion, so it reports nothing else about the
    /// type. A block with type parameters has bounds of its own.
    pub(super) fn bounded(&self, block: &ItemImpl) -> ItemImpl {
        let mut block = block.clone();
        if !block.generics.params.is_empty() {
            return block;
        }
        let inputs = self.ports.iter().filter(|port| port.kind == Kind::Input);
        let items = inputs.clone().filter_map(Port::item);
        // The last outputs are those for the ends of items.
        let own = self.outputs.len() - self.ends().len();
        let outputs = self.outputs[..own].iter().map(|output| &output.item);
        let mut bounds: Vec<_> = items.chain(outputs).map(|of| sent(of, of)).collect();
        for result in inputs.chain(&self.start).filter_map(|it| it.fails.as_ref()) {
            let fails = quote_spanned!(place(result)=> __flow::Fails);
            bounds.push(parse_quote!(#result: #fails));
            bounds.push(sent(&quote!(<#result as #fails>::Error), result));
        }
        let this = Ident::new("Self", place(&block.self_ty));
        bounds.push(sent(&this, &this));
        let clause = block.generics.make_where_clause();
        clause.predicates.extend(bounds);
        block
    }
}

/// Returns the constant that says whether a generic module can clone the items of an output.
pub(super) fn clones(block: &ItemImpl, item: &Type) -> Option<TokenStream> {
    let mut types = block.generics.type_params();
    let clones = |_| quote!(#[doc(hidden)] const CLONES: bool = __flow::Probe::<#item>::CLONES;);
    types.next().map(clones)
}

/// Returns the bound of a type that goes from one worker to another, for messages about the place
/// of `at`.
fn sent(of: &impl ToTokens, at: &impl ToTokens) -> WherePredicate {
    let bound = quote_spanned!(place(at)=> : ::core::marker::Send + 'static);
    parse_quote!(#of #bound)
}

/// Returns the place where a type ends.
fn place(of: &impl ToTokens) -> Span {
    let end = of.to_token_stream().into_iter().last();
    let place = end.map_or_else(Span::call_site, |end| end.span());
    place.resolved_at(Span::call_site())
}
