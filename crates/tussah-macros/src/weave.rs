//! The expansion of `weave_file!`: the graphs of a file, and a check of every edge by the compiler.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote};
use syn::LitStr;
use tussah_weave::{Diagnostic, Edge, Graph, Node};

use crate::module::port_number;

/// Expands `weave_file!`.
pub(crate) fn file(input: TokenStream) -> TokenStream {
    let name: LitStr = match syn::parse2(input) {
        Ok(name) => name,
        Err(error) => return error.into_compile_error(),
    };
    // The same folder as `include_str!` uses. Some editors do not tell it.
    let source = local_file();
    let folder = source
        .as_deref()
        .and_then(Path::parent)
        .unwrap_or(Path::new(""));
    let path = folder.join(name.value());
    match std::fs::read_to_string(&path) {
        Ok(text) => {
            let graphs = expand(&name.value(), &text, &quote!(::core::include_str!(#name)));
            graphs.unwrap_or_else(|message| failed(&message, name.span()))
        }
        Err(error) => {
            let message = format!("cannot read {}: {error}", path.display());
            failed(&message, name.span())
        }
    }
}

/// Returns the source file that calls the macro, outside of tests.
fn local_file() -> Option<PathBuf> {
    proc_macro::is_available().then(|| proc_macro::Span::call_site().local_file())?
}

fn failed(message: &str, span: Span) -> TokenStream {
    syn::Error::new(span, message).into_compile_error()
}

/// Expands the graphs of a text. `include` is the expression that includes the text, so that a
/// change of the file compiles the program again.
///
/// # Errors
/// Returns the errors of the text.
fn expand(file: &str, text: &str, include: &TokenStream) -> Result<TokenStream, String> {
    let parsed = tussah_weave::parse(text);
    stop(file, text, &parsed.diagnostics)?;
    let checked = tussah_weave::check(&parsed.file, None);
    stop(file, text, &checked.diagnostics)?;
    let graphs = checked.graphs.iter();
    let graphs = graphs.filter(|graph| graph.inputs.is_empty() && graph.outputs.is_empty());
    let graphs = graphs.map(|graph| one(file, text, include, graph));
    graphs.collect()
}

/// Returns the messages of all errors, or `Ok` if no diagnostic is an error.
fn stop(file: &str, text: &str, diagnostics: &[Diagnostic]) -> Result<(), String> {
    let errors = diagnostics.iter().filter(|it| it.is_error());
    let messages: Vec<_> = errors.map(|error| error.render(file, text)).collect();
    match messages.is_empty() {
        true => Ok(()),
        false => Err(messages.join("\n")),
    }
}

/// Expands a graph.
fn one(
    file: &str,
    text: &str,
    include: &TokenStream,
    graph: &Graph,
) -> Result<TokenStream, String> {
    let place = |span: tussah_weave::Span| {
        let (line, column) = span.position(text);
        format!("{file}:{line}:{column}")
    };
    let name = format_ident!("{}", graph.name);
    let doc = format!("The graph `{}` of {file}. {}", graph.name, graph.doc);
    let used: BTreeSet<_> = graph.nodes.iter().map(|node| &node.module).collect();
    let mut with = Vec::new();
    for module in used {
        let path = path(module)?;
        with.push(quote!(.with::<#path>(#module)));
    }
    let mut checks = Vec::new();
    for (number, edge) in graph.edges.iter().enumerate() {
        checks.push(check(graph, edge, number, (text, &place(edge.span)))?);
    }
    let title = &graph.name;
    Ok(quote! {
        #[doc = #doc]
        #[derive(Clone, Copy, Debug)]
        pub struct #name;

        impl #name {
            /// The text of the graph.
            pub const TEXT: &'static str = #include;

            /// Returns the modules that the graph uses.
            #[must_use]
            pub fn modules() -> ::tussah::flow::Modules {
                ::tussah::flow::Modules::new() #(#with)*
            }

            /// Makes the graph with these values of its parameters.
            ///
            /// # Errors
            /// Returns an error if a parameter has no value, or a wrong value.
            pub fn graph(
                params: &::tussah::flow::Params,
            ) -> ::core::result::Result<::tussah::flow::Graph, ::tussah::flow::WeaveError> {
                let params = params.clone().graph(#title);
                Self::modules().graph(#file, Self::TEXT, &params)
            }
        }

        const _: () = { #(#checks)* };
    })
}

/// Returns the code that makes the compiler check an edge; `at` is the text, and the place of the
/// edge. The traits of each edge are its own, so
/// that their messages name it: stable Rust has no spans in other files.
fn check(
    graph: &Graph,
    edge: &Edge,
    number: usize,
    at: (&str, &str),
) -> Result<TokenStream, String> {
    let (text, place) = at;
    let (from, to) = (&graph.nodes[edge.from.node], &graph.nodes[edge.to.node]);
    let (from_type, to_type) = (path(&from.module)?, path(&to.module)?);
    let end = |node: &Node, port: &str| match port {
        "out" | "run" => format!("`{}`", node.name),
        port => format!("`{}.{port}`", node.name),
    };
    let (from_end, to_end) = (end(from, &edge.from.port), end(to, &edge.to.port));
    let types = format!("{place}: {from_end} sends `{{Self}}`, but {to_end} takes `{{T}}`");
    let label = format!("the edge {from_end} -> {to_end}");
    let (out, input) = (port_number(&edge.from.port), port_number(&edge.to.port));
    let [ends, checked] = ["Ends", "edge"].map(|it| format_ident!("{it}{number}"));
    // The compiler shows the names of these types where a port does not exist.
    let (line, _) = edge.span.position(text);
    let [from_at, to_at] =
        [&edge.from, &edge.to].map(|end| format_ident!("{}_in_line_{line}", end.port));
    Ok(quote! {
        const _: () = {
            #[allow(non_camel_case_types)]
            struct #from_at;
            const _: () = {
                #[allow(non_camel_case_types)]
                struct #to_at;
                #[diagnostic::on_unimplemented(
                    message = #types,
                    label = #label,
                    note = "connect ports of one type, or put a module between them",
                )]
                trait #ends<T> {}
                impl<T> #ends<T> for T {}
                #[allow(dead_code)]
                fn #checked() {
                    fn ends<A: #ends<B>, B>() {}
                    ends::<
                        <#from_type as ::tussah::flow::expansion::HasOutput<#out, #from_at>>::Item,
                        <#to_type as ::tussah::flow::expansion::HasInput<#input, #to_at>>::Item,
                    >();
                }
            };
        };
    })
}

fn path(module: &str) -> Result<syn::Path, String> {
    let parsed = syn::parse_str(module);
    parsed.map_err(|error| format!("`{module}` is not the path of a module in Rust: {error}"))
}
