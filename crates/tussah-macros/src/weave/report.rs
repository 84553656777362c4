//! The errors and warnings of the checker, as code for which the compiler reports them.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use tussah_weave::{Diagnostic, Edge, Graph};

use super::Source;

impl Source<'_> {
    /// Returns a diagnostic as text for a message of the compiler.
    pub(super) fn message(&self, diagnostic: &Diagnostic) -> String {
        if self.tokens.is_none() {
            let message = diagnostic.render(self.file, self.text);
            // rustc itself writes `error: ` first.
            return message.trim_start_matches("error: ").to_owned();
        }
        match &diagnostic.help {
            Some(help) => format!("{}\nhelp: {help}", diagnostic.message),
            None => diagnostic.message.clone(),
        }
    }

    /// Returns code for which the compiler shows the warnings: each is the note of a constant that
    /// is deprecated, because a macro in stable Rust cannot warn.
    pub(super) fn warnings(&self, diagnostics: &[Diagnostic]) -> TokenStream {
        let warnings = diagnostics.iter().filter(|it| !it.is_error());
        let warnings = warnings.map(|warning| {
            let note = format!("{}{}", self.place(warning.span), warning.message);
            let used = quote_spanned!(self.token(warning.span)=> WEAVE_WARNING);
            quote! {
                const _: () = {
                    #[deprecated(note = #note)]
                    const WEAVE_WARNING: () = ();
                    #used
                };
            }
        });
        warnings.collect()
    }

    /// Returns code that fails with errors about edges. If a port of such an edge does not exist,
    /// the code fails with that error instead: an edge into a source closes no cycle.
    ///
    /// # Errors
    /// Returns the errors in types.
    pub(super) fn errors_of_edges(
        &self,
        graphs: &[Graph],
        errors: &[Diagnostic],
    ) -> Result<TokenStream, Vec<Diagnostic>> {
        let modules = self.modules(graphs)?;
        let errors = errors.iter().map(|error| {
            let edges = edges(graphs, error);
            let ports = edges.flat_map(|(graph, edge)| {
                let (from, to) = (&graph.nodes[edge.from.node], &graph.nodes[edge.to.node]);
                let output = self.unknown(edge.from_span, from, &edge.from.port, false);
                let input = self.unknown(edge.to_span, to, &edge.to.port, true);
                [(edge.from_span, output), (edge.to_span, input)]
            });
            let ports: Vec<_> = ports.collect();
            let unknown = ports.iter().map(|(at, port)| self.fails(*at, port));
            let ports = ports.iter().map(|(_, port)| port);
            let message = self.message(error);
            let span = self.token(error.span);
            let fail = quote_spanned!(span=> ::core::panic!("{}", #message));
            quote! {
                #(#unknown)*
                const _: () = if true #(&& ::tussah::flow::expansion::#ports.is_none())* {
                    #fail
                };
            }
        });
        Ok(quote!(const _: () = { #modules #(#errors)* };))
    }
}

/// Returns the edges at the places that an error names.
fn edges<'g>(
    graphs: &'g [Graph],
    error: &'g Diagnostic,
) -> impl Iterator<Item = (&'g Graph, &'g Edge)> {
    let all = graphs
        .iter()
        .flat_map(|graph| graph.edges.iter().map(move |edge| (graph, edge)));
    all.filter(|(_, edge)| {
        let mut others = error.others.iter();
        error.span == edge.span || others.any(|other| other.span == edge.span)
    })
}

/// Divides the errors into those about edges, and all others.
pub(super) fn by_edges(
    graphs: &[Graph],
    diagnostics: Vec<Diagnostic>,
) -> (Vec<Diagnostic>, Vec<Diagnostic>) {
    let errors = diagnostics.into_iter().filter(Diagnostic::is_error);
    errors.partition(|error| edges(graphs, error).next().is_some())
}

/// Returns the errors, if there are any.
pub(super) fn stop(diagnostics: Vec<Diagnostic>) -> Result<(), Vec<Diagnostic>> {
    let errors = diagnostics.into_iter().filter(Diagnostic::is_error);
    let errors: Vec<_> = errors.collect();
    match errors.is_empty() {
        true => Ok(()),
        false => Err(errors),
    }
}
