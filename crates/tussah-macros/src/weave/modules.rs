//! The types of modules, and the places at which the compiler reports errors in them.

use std::collections::BTreeMap;

use proc_macro2::{Group, Span, TokenStream, TokenTree};
use quote::{ToTokens as _, format_ident, quote};
use tussah_weave::{Diagnostic, Graph};

use super::{Source, alias, spelled};

impl Source<'_> {
    /// Returns an alias for each type of module, so that the compiler reports an error in the type
    /// once. The alias has the place of the first instance.
    pub(super) fn modules(&self, graphs: &[Graph]) -> Result<TokenStream, Vec<Diagnostic>> {
        let nodes = graphs.iter().flat_map(|graph| &graph.nodes);
        let nodes = nodes.map(|node| (spelled(node), node)).rev();
        let nodes = nodes.collect::<BTreeMap<_, _>>().into_values();
        let aliases = nodes.map(|node| {
            let of = self.located_type(&node.module, node.module_span)?;
            let types = node.types.iter().zip(&node.type_spans);
            let types = types.map(|(of, span)| self.located_type(&of.to_string(), *span));
            let types = types.collect::<Result<Vec<_>, _>>()?;
            let types = (!types.is_empty()).then(|| quote!(<#(#types),*>));
            let alias = alias(node);
            let alias = quote!(type #alias = #of #types;);
            Ok(match self.tokens {
                Some(_) => alias,
                None => self.in_line(node.module_span, &alias),
            })
        });
        aliases.collect()
    }

    /// Returns a Rust type, at its place in the text.
    pub(super) fn located_type(
        &self,
        spelled: &str,
        at: tussah_weave::Span,
    ) -> Result<TokenStream, Vec<Diagnostic>> {
        let of = syn::parse_str::<syn::Type>(spelled).map_err(|error| {
            let message = format!("`{spelled}` is not a type in Rust: {error}");
            vec![Diagnostic::error(at, message)]
        })?;
        Ok(located(of.into_token_stream(), self.token(at)))
    }

    /// Returns code that comes from a macro whose name contains the line in the file. The compiler
    /// adds this name to its errors about the code, and there is no other way to name the line if a
    /// type does not exist.
    fn in_line(&self, at: tussah_weave::Span, code: &TokenStream) -> TokenStream {
        let (line, _) = at.position(self.text);
        let file = self.file.rsplit('/').next().unwrap_or_default();
        let file = file.replace(|c: char| !c.is_ascii_alphanumeric(), "_");
        let name = format_ident!("line_{line}_of_{file}");
        quote! {
            macro_rules! #name { () => { #code } }
            #name! {}
        }
    }
}

/// Returns tokens at another place.
fn located(tokens: TokenStream, span: Span) -> TokenStream {
    let tokens = tokens.into_iter().map(|mut token| {
        if let TokenTree::Group(group) = &token {
            let inner = located(group.stream(), span);
            token = Group::new(group.delimiter(), inner).into();
        }
        token.set_span(span);
        token
    });
    tokens.collect()
}
