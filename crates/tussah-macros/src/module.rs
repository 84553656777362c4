//! The expansion of `#[module]`: the signatures of an `impl` block become the ports of a module.

mod expand;
mod read;
#[cfg(test)]
mod tests;

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote};
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{DeriveInput, Ident, ImplItem, ImplItemFn, ItemImpl, Token, Type};

pub(crate) use tussah_weave::port_number;

use self::read::generic;

/// Expands `#[module]`. A mistake becomes a `compile_error!` at its location, beside the unchanged
/// block.
pub(crate) fn module(arguments: TokenStream, item: TokenStream) -> TokenStream {
    if arguments.is_empty()
        && let Ok(of) = syn::parse2::<DeriveInput>(item.clone())
    {
        let documented = documented(&of);
        return quote!(#item #documented);
    }
    let mut block: ItemImpl = match syn::parse2(item.clone()) {
        Ok(block) => block,
        Err(error) => {
            let error = match syn::parse2::<syn::Item>(item.clone()) {
                Ok(_) => syn::Error::new(
                    Span::call_site(),
                    "#[module] must be applied to the `impl` block of a struct",
                ),
                Err(_) => syn::Error::new(
                    error.span(),
                    format!("#[module] cannot read this `impl` block: {error}"),
                ),
            };
            let error = error.into_compile_error();
            return quote!(#error #item);
        }
    };
    let checked = syn::parse2(arguments).and_then(|options| Module::read(&block, options));
    for function in functions_mut(&mut block) {
        function.attrs.retain(|it| !it.path().is_ident("port"));
    }
    let expanded = match checked {
        Ok(module) => module.expand(&block),
        Err(error) => error.into_compile_error(),
    };
    quote!(#block #expanded)
}

/// Returns the implementation of `Documented` for the type of a module.
fn documented(of: &DeriveInput) -> TokenStream {
    let (name, doc) = (&of.ident, docs(&of.attrs));
    let (generics, arguments, bounds) = of.generics.split_for_impl();
    quote! {
        #[automatically_derived]
        impl #generics ::tussah::flow::expansion::Documented for #name #arguments #bounds {
            const DOC: &'static str = #doc;
        }
    }
}

/// Returns the documentation in attributes.
fn docs(attributes: &[syn::Attribute]) -> String {
    let lines = attributes.iter().filter_map(|attribute| {
        let syn::Meta::NameValue(value) = &attribute.meta else {
            return None;
        };
        match &value.value {
            syn::Expr::Lit(syn::ExprLit {
                lit: syn::Lit::Str(text),
                ..
            }) if value.path.is_ident("doc") => Some(text.value().trim().to_owned()),
            _ => None,
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn functions(block: &ItemImpl) -> impl Iterator<Item = &ImplItemFn> {
    block.items.iter().filter_map(|item| match item {
        ImplItem::Fn(function) => Some(function),
        _ => None,
    })
}

fn functions_mut(block: &mut ItemImpl) -> impl Iterator<Item = &mut ImplItemFn> {
    block.items.iter_mut().filter_map(|item| match item {
        ImplItem::Fn(function) => Some(function),
        _ => None,
    })
}

/// The arguments of the attribute.
#[derive(Clone, Copy, Default)]
struct Options {
    blocking: bool,
    serial: bool,
    flows: bool,
    ordered: bool,
}

impl Parse for Options {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let mut options = Self::default();
        for name in Punctuated::<Ident, Token![,]>::parse_terminated(input)? {
            let option = match name.to_string().as_str() {
                "blocking" => &mut options.blocking,
                "serial" => &mut options.serial,
                "flows" => &mut options.flows,
                "ordered" => &mut options.ordered,
                _ => {
                    return Err(syn::Error::new_spanned(
                        name,
                        "unknown argument; expected `blocking`, `serial`, `flows` or `ordered`",
                    ));
                }
            };
            *option = true;
        }
        Ok(options)
    }
}

/// A module, as the signatures of its block describe it.
struct Module {
    options: Options,
    init: Option<Init>,
    /// The methods that handle items. A module without them is a source.
    ports: Vec<Port>,
    /// The method that produces items.
    start: Option<Port>,
    has_begin: bool,
    outputs: Vec<Output>,
}

impl Module {
    /// Returns whether the module has no input.
    fn is_source(&self) -> bool {
        self.ports.is_empty()
    }

    /// Returns whether the module takes batches.
    fn takes_many(&self) -> bool {
        self.ports.iter().any(Port::takes_many)
    }

    /// Returns the parameters, with those that the engine reads instead of `init`: the name, the
    /// type, and whether the argument may be missing.
    fn params(&self) -> Vec<(String, Type, bool)> {
        let own = self.init.iter().flat_map(|init| &init.params);
        let own = own.map(|(name, of)| match generic(of, "Option") {
            Some(inner) => (plain(name), inner.clone(), true),
            None => (plain(name), of.clone(), false),
        });
        let mut params: Vec<_> = own.collect();
        let mut add = |name: &str, of, optional| params.push((name.to_owned(), of, optional));
        let time = || syn::parse_quote!(::core::time::Duration);
        if self.ports.iter().any(|port| port.kind == Kind::Tick) {
            add("every", time(), false);
        }
        if self.options.flows {
            add("flows", syn::parse_quote!(usize), true);
            add("idle", time(), true);
        }
        params
    }
}

/// The constructor.
struct Init {
    params: Vec<(Ident, Type)>,
    is_fallible: bool,
}

/// The reason for which the engine calls a method.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// An item at an input port.
    Input,
    Tick,
    Wake,
    End,
    /// Not an item: the begin of the graph.
    Start,
}

/// A method that handles or produces items.
struct Port {
    name: Ident,
    kind: Kind,
    is_async: bool,
    is_exclusive: bool,
    arguments: Vec<Argument>,
    /// The return type, a `Result`, if the method returns one.
    fails: Option<Type>,
}

enum Argument {
    Item(Type),
    /// A batch of items of this type.
    Items(Type),
    State(Type),
    Flow,
    Wake,
    Out {
        name: Ident,
        optional: bool,
    },
}

/// An output port.
#[derive(Clone)]
struct Output {
    name: String,
    span: Span,
    item: Type,
    required: bool,
}

impl Port {
    /// Returns the type of item that leads to a call of this method.
    fn what(&self) -> TokenStream {
        match self.kind {
            Kind::Input => self.item().to_token_stream(),
            Kind::Tick => quote!(__flow::Tick),
            Kind::Wake => quote!(__flow::Woken),
            Kind::End => quote!(__flow::Ended),
            Kind::Start => unreachable!("it gets no items"),
        }
    }

    fn item(&self) -> Option<&Type> {
        self.arguments.iter().find_map(|argument| match argument {
            Argument::Item(item) | Argument::Items(item) => Some(item),
            _ => None,
        })
    }

    fn takes_many(&self) -> bool {
        let mut arguments = self.arguments.iter();
        arguments.any(|argument| matches!(argument, Argument::Items(_)))
    }

    fn state(&self) -> Option<&Type> {
        self.arguments.iter().find_map(|argument| match argument {
            Argument::State(state) => Some(state),
            _ => None,
        })
    }

    /// Returns the name of a port for the ends of this port's items.
    fn end(&self, end: &str) -> String {
        match self.name == "run" {
            true => end.to_owned(),
            false => format!("{}_{end}", self.name),
        }
    }
}

/// Returns the name of a port or parameter: without `r#`, and without the underscore of an unused
/// argument.
pub(crate) fn plain(name: &Ident) -> String {
    let name = name.to_string();
    let name = name.strip_prefix("r#").unwrap_or(&name);
    name.strip_prefix('_').unwrap_or(name).to_owned()
}
