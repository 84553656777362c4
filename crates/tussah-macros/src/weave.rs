//! The expansion of `weave!` and `weave_file!`: graphs, and a check of every edge by the compiler.

mod arguments;
mod cases;
mod fused;
mod modules;
mod ports;
mod report;
#[cfg(test)]
mod tests;
mod tokens;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::LitStr;
use tussah_weave::{Diagnostic, Edge, Graph, Node, PortRef, Shed, Via, WhenFull};

use self::report::{by_edges, stop};
use self::tokens::Text;
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
            let source = Source {
                file: &name.value(),
                text: &text,
                include: quote!(::core::include_str!(#name)),
                tokens: None,
            };
            let expanded = source.expand();
            expanded.unwrap_or_else(|diagnostics| {
                let messages = diagnostics.iter();
                let messages = messages.map(|error| error.render(source.file, &text));
                let message = messages.collect::<Vec<_>>().join("\n");
                // rustc itself writes `error: ` first.
                failed(message.trim_start_matches("error: "), name.span())
            })
        }
        Err(error) => {
            let message = format!("cannot read {}: {error}", path.display());
            failed(&message, name.span())
        }
    }
}

/// Expands `weave!`.
pub(crate) fn inline(input: TokenStream) -> TokenStream {
    let tokens = Text::of(input);
    let (file, text) = (local_file(), &tokens.text);
    let file = file.map_or_else(|| "weave!".to_owned(), |file| file.display().to_string());
    let source = Source {
        file: &file,
        text,
        include: quote!(#text),
        tokens: Some(&tokens),
    };
    source.expand().unwrap_or_else(|diagnostics| {
        let errors = diagnostics
            .iter()
            .map(|error| failed(&source.message(error), tokens.span(error.span)));
        errors.collect()
    })
}

/// Returns the source file that calls the macro, outside of tests.
fn local_file() -> Option<PathBuf> {
    proc_macro::is_available().then(|| proc_macro::Span::call_site().local_file())?
}

fn failed(message: &str, span: Span) -> TokenStream {
    syn::Error::new(span, message).into_compile_error()
}

/// The source text of graphs.
struct Source<'a> {
    /// The name of the file in messages.
    file: &'a str,
    text: &'a str,
    /// The expression for the text. It includes the file, so that cargo compiles the program again
    /// if the file changes.
    include: TokenStream,
    /// The tokens of the text, if it is in the program.
    tokens: Option<&'a Text>,
}

impl Source<'_> {
    /// Expands the graphs.
    ///
    /// # Errors
    /// Returns the errors in the text.
    fn expand(&self) -> Result<TokenStream, Vec<Diagnostic>> {
        let parsed = tussah_weave::parse(self.text);
        stop(parsed.diagnostics)?;
        let checked = tussah_weave::check(&parsed.file, None);
        let graphs = &checked.graphs;
        let warnings = self.warnings(&checked.diagnostics);
        let (of_edges, others) = by_edges(graphs, checked.diagnostics);
        stop(others)?;
        if !of_edges.is_empty() {
            return self.errors_of_edges(graphs, &of_edges);
        }
        let whole = graphs.iter();
        let whole = whole.filter(|graph| graph.inputs.is_empty() && graph.outputs.is_empty());
        let names = whole.clone().map(|graph| self.name(graph));
        let modules = self.modules(graphs)?;
        let arguments = graphs.iter().map(|graph| self.arguments(graph, graphs));
        let arguments = arguments.collect::<Result<Vec<_>, _>>()?;
        let cases = graphs.iter().map(|it| self.cases(it, &parsed.file.tests));
        let whole = whole.map(|graph| self.one(graph));
        Ok(quote! {
            #(#names)*
            const _: () = { #warnings #modules #(#arguments)* #(#cases)* #(#whole)* };
        })
    }

    /// Returns the type that stands for a graph.
    fn name(&self, graph: &Graph) -> TokenStream {
        let name = format_ident!("{}", graph.name);
        let doc = format!("The graph `{}` of {}. {}", graph.name, self.file, graph.doc);
        quote! {
            #[doc = #doc]
            #[derive(Clone, Copy, Debug)]
            pub struct #name;
        }
    }

    /// Expands a graph.
    fn one(&self, graph: &Graph) -> TokenStream {
        let Self { file, include, .. } = self;
        let name = format_ident!("{}", graph.name);
        let used = graph.nodes.iter().map(|node| (spelled(node), node));
        let used = used.collect::<BTreeMap<_, _>>().into_values();
        let with = used.map(|node| {
            let (of, module) = (alias(node), &node.module);
            quote!(.with::<#of>(#module))
        });
        let (mut checks, copies) = (Vec::new(), graph.copies());
        let rejected = graph.sheds.iter().filter_map(rejected);
        for (number, edge) in graph.edges.iter().cloned().chain(rejected).enumerate() {
            let is_second = copies.iter().any(|(_, second)| *second == number);
            checks.push(self.check(graph, &edge, number, is_second));
        }
        checks.push(self.ports(graph));
        let (title, fused) = (&graph.name, self.fused(graph));
        quote! {
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
                    let modules = Self::modules();
                    let mut graph = modules.compiled(#file, Self::TEXT, #title, params)?;
                    #fused
                    ::core::result::Result::Ok(graph)
                }
            }

            #(#checks)*
        }
    }

    /// Returns the code that makes the compiler check an edge. Each edge has its own traits, whose
    /// messages name the edge, because a macro in stable Rust cannot create a span in another file.
    /// The second edge of an output needs copies of the items.
    fn check(&self, graph: &Graph, edge: &Edge, number: usize, is_second: bool) -> TokenStream {
        let (from, to) = (&graph.nodes[edge.from.node], &graph.nodes[edge.to.node]);
        let (from_type, to_type) = (alias(from), alias(to));
        let end = |node: &Node, port: &str| match port {
            "out" | "run" => format!("`{}`", node.name),
            port => format!("`{}.{port}`", node.name),
        };
        let (from_end, to_end) = (end(from, &edge.from.port), end(to, &edge.to.port));
        let place = self.place(edge.span);
        let types = format!("{place}{from_end} sends `{{Self}}`, but {to_end} takes `{{T}}`");
        let label = format!("the edge {from_end} -> {to_end}");
        let [ends, checked] = ["Ends", "edge"].map(|it| format_ident!("{it}{number}"));
        let (out, input) = (port_number(&edge.from.port), port_number(&edge.to.port));
        let output = self.unknown(edge.from_span, from, &edge.from.port, false);
        let unknown_output = self.fails(edge.from_span, &output);
        let target = self.unknown(edge.to_span, to, &edge.to.port, true);
        let unknown_input = self.fails(edge.to_span, &target);
        let span = self.token(edge.span);
        let joins = quote_spanned!(span=> <Along as ::tussah::flow::expansion::Joins<KNOWN>>);
        let called = quote_spanned!(span=> ends::<#joins::Sent, #joins::Taken>(););
        let (copies, also) = match is_second {
            true => copies(&place, &from_end, number),
            false => Default::default(),
        };
        let bound = is_second.then(|| bound(&place, &from_end, &joins, span));
        quote! {
            #unknown_output
            #unknown_input
            const _: () = {
                type Along =
                    ::tussah::flow::expansion::Between<#from_type, #out, #to_type, #input>;
                const KNOWN: bool = ::tussah::flow::expansion::#output.is_none()
                    && ::tussah::flow::expansion::#target.is_none();
                #[diagnostic::on_unimplemented(
                    message = #types,
                    label = #label,
                    note = "connect ports of one type, or put a module between them",
                )]
                trait #ends<T> {}
                impl<T> #ends<T> for T {}
                #copies
                #[allow(dead_code)]
                fn #checked() {
                    fn ends<A: #ends<B>, B>() #also {}
                    #called
                }
                #bound
            };
        }
    }

    /// Returns the check of a port at an end of an edge.
    fn unknown(
        &self,
        at: tussah_weave::Span,
        node: &Node,
        port: &str,
        is_input: bool,
    ) -> TokenStream {
        let (of, place, name) = (alias(node), self.place(at), &node.name);
        let module = quote!(<#of as ::tussah::flow::expansion::Module>);
        match is_input {
            true => quote!(unknown_port(#module::INPUTS, &[], #place, #name, "input", #port)),
            false => quote!(unknown_port(&[], #module::OUTPUTS, #place, #name, "output", #port)),
        }
    }

    /// Returns a position in a file, with which a message begins.
    fn place(&self, at: tussah_weave::Span) -> String {
        match self.tokens {
            // The compiler shows the place.
            Some(_) => String::new(),
            None => format!("{}: ", at.place(self.file, self.text)),
        }
    }

    /// Returns the token at a place, or the call of the macro.
    fn token(&self, at: tussah_weave::Span) -> Span {
        self.tokens
            .map_or_else(Span::call_site, |tokens| tokens.span(at))
    }
}

/// Returns a trait for the items of an output with two edges, and a clause that requires it. The
/// trait's message is about the second edge. It is a trait of `()`, because the compiler would
/// otherwise propose to send a reference, which can be cloned.
fn copies(place: &str, from: &str, number: usize) -> (TokenStream, TokenStream) {
    let of = format_ident!("Copies{number}");
    let message = format!("{place}{from} has two edges, but its item `{{T}}` cannot be cloned");
    let label = format!("the second edge of {from}");
    let copies = quote! {
        #[diagnostic::on_unimplemented(
            message = #message,
            label = #label,
            note = "derive `Clone` for the item, or send an `Arc` of it",
        )]
        trait #of<T> {}
        #[diagnostic::do_not_recommend]
        impl<T: ::core::clone::Clone> #of<T> for () {}
    };
    (copies, quote!(where (): #of<A>))
}

/// Returns the code that fails if a module cannot clone the items of an output with two edges,
/// although their type can be cloned. The trait of [`copies`] is about the other types.
fn bound(place: &str, from: &str, joins: &TokenStream, span: Span) -> TokenStream {
    let message = format!(
        "{place}{from} has two edges, but its module cannot clone the items: \
         add the bound `Clone` to its type parameter"
    );
    let fail = quote_spanned!(span=> ::core::panic!("{}", #message));
    quote! {
        const _: () = {
            #[allow(unused_imports)]
            use ::tussah::flow::expansion::NoProbe as _;
            if ::tussah::flow::expansion::Probe::<#joins::Sent>::CLONES && !#joins::CLONES {
                #fail
            }
        };
    }
}

/// Returns the edge for the items that a rule rejects.
fn rejected(shed: &Shed) -> Option<Edge> {
    let from = PortRef {
        node: shed.node,
        port: "dropped".to_owned(),
    };
    Some(Edge {
        from,
        to: shed.to.clone()?,
        via: Via::Queue {
            room: None,
            when_full: WhenFull::default(),
        },
        after: None,
        back: false,
        condition: shed.condition.clone(),
        item: None,
        span: shed.span,
        from_span: shed.span,
        to_span: shed.span,
    })
}

/// Returns the alias of the type of a node's module.
fn alias(node: &Node) -> Ident {
    format_ident!("__Module{}", port_number(&spelled(node)))
}

/// Returns the type of a node's module as Rust spells it.
fn spelled(node: &Node) -> String {
    if node.types.is_empty() {
        return node.module.clone();
    }
    let types: Vec<_> = node.types.iter().map(ToString::to_string).collect();
    format!("{}<{}>", node.module, types.join(", "))
}
