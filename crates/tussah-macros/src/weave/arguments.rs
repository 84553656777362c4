//! The check of an instance's arguments by the compiler.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote, quote_spanned};
use tussah_weave::{Arg, Diagnostic, Graph, Kind, Node, Value};

use super::{Source, alias};
use crate::module::port_number;

impl Source<'_> {
    /// Returns the code that makes the compiler check the arguments in a graph. Those in graphs
    /// inside it are checked there, except for constants that this graph passes to them.
    pub(super) fn arguments(
        &self,
        graph: &Graph,
        graphs: &[Graph],
    ) -> Result<TokenStream, Vec<Diagnostic>> {
        let nodes = graph.nodes.iter().enumerate();
        let checks = nodes.map(|(at, node)| {
            let groups = graph.groups.iter();
            let around = groups.filter(|group| group.nodes.contains(&at));
            // The outermost of them is an instance in this graph.
            let Some(group) = around.max_by_key(|group| group.nodes.len()) else {
                return self.arguments_of(graph, node);
            };
            let inner = graphs.iter().find(|it| it.name == group.graph);
            let known = inner.and_then(|inner| inner.nodes.get(at - group.nodes.start));
            Ok(self.constants_of(graph, node, known))
        });
        checks.collect()
    }

    fn arguments_of(&self, graph: &Graph, node: &Node) -> Result<TokenStream, Vec<Diagnostic>> {
        let of = alias(node);
        let params = quote!(<#of as ::tussah::flow::expansion::Module>::PARAMS);
        let (place, module) = (self.place(node.module_span), &node.module);
        let unnamed = node.args.iter().filter(|arg| arg.name.is_none()).count();
        let names = node.args.iter().filter_map(|arg| arg.name.as_deref());
        let missing = quote! {
            missing_arguments(#params, #place, #module, #unnamed, &[#(#names),*])
        };
        let mut checks = vec![self.fails(node.module_span, &missing)];
        for (before, arg) in node.args.iter().enumerate() {
            let before = before.min(unnamed);
            checks.push(self.argument(graph, node, arg, before, module));
            let kinds = graph.kinds(&arg.value);
            if let Some(found @ Kind::Rust(_)) = kinds.first() {
                checks.push(self.typed(node, arg, before, &found.to_string())?);
            }
        }
        Ok(checks.into_iter().collect())
    }

    /// Checks the constants among the arguments of an instance in an inner graph. Those that the
    /// inner graph itself knows are checked there.
    fn constants_of(&self, graph: &Graph, node: &Node, known: Option<&Node>) -> TokenStream {
        let is_constant = |arg: &Arg| arg.value.eval(&|_| None).is_ok();
        let unnamed = node.args.iter().filter(|arg| arg.name.is_none()).count();
        let mut checks = Vec::new();
        for (at, arg) in node.args.iter().enumerate() {
            let inside = known.and_then(|known| known.args.get(at));
            if is_constant(arg) && !inside.is_some_and(is_constant) {
                checks.push(self.argument(graph, node, arg, at.min(unnamed), &node.name));
            }
        }
        checks.into_iter().collect()
    }

    /// Returns the code that checks an argument. `module` is its name in the message, and
    /// `before` the number of earlier arguments without a name.
    fn argument(
        &self,
        graph: &Graph,
        node: &Node,
        arg: &Arg,
        before: usize,
        module: &str,
    ) -> TokenStream {
        let (of, place) = (alias(node), self.place(arg.span));
        let kinds = graph.kinds(&arg.value);
        let found = kinds.first().map_or_else(String::new, Kind::to_string);
        let is_typed = matches!(kinds.first(), Some(Kind::Rust(_)));
        let kinds = kinds.iter().filter(|_| !is_typed).map(Kind::name);
        let name = named(arg);
        let constant = arg.value.eval(&|_| None).ok();
        let value = constant.as_ref().map_or_else(String::new, Value::to_string);
        let number = option(constant.as_ref().and_then(Value::number));
        let text = option(match &constant {
            Some(Value::Text(text)) => Some(text),
            _ => None,
        });
        let wrong = quote! {
            wrong_argument(
                <#of as ::tussah::flow::expansion::Module>::PARAMS,
                &::tussah::flow::expansion::Given {
                    place: #place,
                    module: #module,
                    before: #before,
                    name: #name,
                    kinds: &[#(#kinds),*],
                    found: #found,
                    value: #value,
                    number: #number,
                    text: #text,
                },
            )
        };
        self.fails(arg.span, &wrong)
    }

    /// Returns the code that fails with the message of a check.
    pub(super) fn fails(&self, at: tussah_weave::Span, check: &TokenStream) -> TokenStream {
        let fail = quote_spanned!(self.token(at)=> ::core::panic!("{}", message.text()));
        quote! {
            const _: () = if let ::core::option::Option::Some(message) =
                &::tussah::flow::expansion::#check
            {
                #fail
            };
        }
    }

    /// Returns the code that compares the types of a parameter and of a value of a Rust type.
    fn typed(
        &self,
        node: &Node,
        arg: &Arg,
        before: usize,
        found: &str,
    ) -> Result<TokenStream, Vec<Diagnostic>> {
        let of = alias(node);
        let given = self.located_type(found, arg.span)?;
        let (what, number) = match &arg.name {
            Some(name) => (format!("`{name}`"), port_number(name)),
            None => (format!("argument {}", before + 1), before as u64),
        };
        let name = named(arg);
        let (place, module) = (self.place(arg.span), &node.module);
        let message = format!("{place}{what} of `{module}`: expected `{{Self}}`, found `{{T}}`");
        let called = quote_spanned! {self.token(arg.span)=>
            same::<<Argument as ::tussah::flow::expansion::Takes<KNOWN>>::Value, #given>();
        };
        Ok(quote! {
            const _: () = {
                const KNOWN: bool = ::tussah::flow::expansion::has_param(
                    <#of as ::tussah::flow::expansion::Module>::PARAMS,
                    #before,
                    #name,
                );
                type Argument = ::tussah::flow::expansion::Argument<#of, #number, #given>;
                #[diagnostic::on_unimplemented(message = #message, label = "the argument")]
                trait Same<T> {}
                impl<T> Same<T> for T {}
                #[allow(dead_code)]
                fn check() {
                    fn same<A: Same<B>, B>() {}
                    #called
                }
            };
        })
    }
}

/// Returns the expression for the name of an argument.
fn named(arg: &Arg) -> TokenStream {
    option(arg.name.as_ref())
}

/// Returns the expression for an optional literal.
fn option(value: Option<impl ToTokens>) -> TokenStream {
    match value {
        Some(value) => quote!(::core::option::Option::Some(#value)),
        None => quote!(::core::option::Option::None),
    }
}
