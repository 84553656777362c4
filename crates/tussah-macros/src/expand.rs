//! The expansion of `#[main]` and `#[test]`.

#[cfg(test)]
mod tests;

use proc_macro2::{Literal, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::{
    AttrStyle, Expr, ExprLit, Ident, Item, ItemFn, Lit, LitInt, LitStr, MetaNameValue, ReturnType,
    Signature, Token,
    parse::{Parse, ParseStream},
    punctuated::Punctuated,
    spanned::Spanned,
};

/// The number of workers of a test: enough for two threads to run in parallel, and no more than a
/// small machine has.
const TEST_WORKERS: usize = 2;

/// The attribute being expanded.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Entry {
    Main,
    Test,
}

impl Entry {
    fn attribute(self) -> &'static str {
        match self {
            Self::Main => "#[tussah::main]",
            Self::Test => "#[tussah::test]",
        }
    }
}

/// Expands one of the attributes. A mistake becomes a `compile_error!` at its location.
pub(crate) fn entry(entry: Entry, arguments: TokenStream, item: TokenStream) -> TokenStream {
    let function: ItemFn = match syn::parse2(item.clone()) {
        Ok(function) => function,
        // Keep the item unchanged, so that the compiler's own errors refer to the user's code.
        Err(error) => {
            let error = match syn::parse2::<Item>(item.clone()) {
                Ok(other) => syn::Error::new_spanned(
                    other,
                    format!(
                        "{} must be applied to an `async fn` with a body",
                        entry.attribute()
                    ),
                ),
                Err(_) => error,
            };
            let error = error.into_compile_error();
            return quote!(#error #item);
        }
    };
    let checked = collect([
        check_signature(entry, &function.sig),
        check_attributes(entry, &function),
    ]);
    let arguments = syn::parse2::<Arguments>(arguments);
    match (checked, arguments) {
        (Ok(()), Ok(arguments)) => expand(entry, &arguments, function),
        (Err(mut errors), Err(error)) => {
            errors.combine(error);
            failed(&errors, function)
        }
        (Err(error), Ok(_)) | (Ok(()), Err(error)) => failed(&error, function),
    }
}

/// Returns the errors and a function of the same name that compiles, to avoid follow-up errors.
fn failed(error: &syn::Error, mut function: ItemFn) -> TokenStream {
    let error = error.to_compile_error();
    function.sig.asyncness = None;
    function.sig.inputs.clear();
    function.sig.variadic = None;
    function.sig.generics = syn::Generics::default();
    function.sig.output = ReturnType::Default;
    function.attrs.clear();
    let ItemFn { vis, sig, .. } = function;
    quote!(#error #[allow(dead_code)] #vis #sig {})
}

/// Keeps the user's function unchanged, inside a function that starts the runtime and calls it. The
/// compiler therefore reports errors in the body as for a plain `async fn`.
///
/// The return value becomes an `ExitCode` on the worker that ran the body, so its type need not be
/// `Send`. A function without a return type remains one, because `#[should_panic]` requires that.
fn expand(entry: Entry, arguments: &Arguments, function: ItemFn) -> TokenStream {
    let ItemFn {
        mut attrs,
        vis,
        sig,
        block,
    } = function;
    for attribute in &mut attrs {
        attribute.style = AttrStyle::Outer;
    }
    let test = (entry == Entry::Test).then(|| quote!(#[::core::prelude::v1::test]));
    let default = (entry == Entry::Test).then(|| Literal::usize_unsuffixed(TEST_WORKERS));
    let workers = arguments.workers.as_ref().map(ToTokens::to_token_stream);
    let workers = workers.or(default.map(ToTokens::into_token_stream));
    let workers = workers.map(|workers| quote!(.workers(#workers)));
    let name = arguments.name.as_ref().map(|name| quote!(.name(#name)));
    let Signature { ident, output, .. } = &sig;
    // Errors about the body as a whole, such as a body that is not `Send`, are reported at its end.
    let end = block
        .brace_token
        .span
        .close()
        .resolved_at(Span::call_site());
    let (output, future) = match output {
        ReturnType::Default => (None, quote_spanned!(end=> #ident())),
        ReturnType::Type(_, of) => {
            // An error about the return type is reported at the type.
            let of = of.span().resolved_at(Span::call_site());
            let report = quote_spanned! {of=>
                ::std::process::Termination::report(#ident().await)
            };
            let output = quote!(-> ::std::process::ExitCode);
            (Some(output), quote_spanned!(end=> async { #report }))
        }
    };
    let run = quote_spanned!(end=> runtime.block_on_spawned(#future));
    quote! {
        #(#attrs)*
        #test
        #vis fn #ident() #output {
            #sig #block
            let runtime = ::tussah::Runtime::builder()
                #workers
                #name
                .build()
                .unwrap_or_else(|error| ::core::panic!("cannot start the runtime: {error}"));
            #run
        }
    }
}

fn check_signature(entry: Entry, sig: &Signature) -> syn::Result<()> {
    let attribute = entry.attribute();
    let mut errors = Vec::new();
    let mut error = |span: Span, message: &str| {
        errors.push(Err(syn::Error::new(span, format!("{attribute} {message}"))));
    };
    if sig.asyncness.is_none() {
        error(sig.fn_token.span(), "needs an `async fn`");
    }
    if !sig.inputs.is_empty() {
        error(sig.inputs.span(), "needs a function without arguments");
    }
    if !sig.generics.params.is_empty() {
        error(
            sig.generics.params.span(),
            "needs a function without generic parameters",
        );
    }
    if let Some(clause) = &sig.generics.where_clause {
        error(clause.span(), "needs a function without a where clause");
    }
    if let Some(token) = &sig.constness {
        error(token.span(), "cannot be used with `const`");
    }
    if let Some(token) = &sig.unsafety {
        error(token.span(), "cannot be used with `unsafe`");
    }
    if let Some(abi) = &sig.abi {
        error(abi.span(), "cannot be used with `extern`");
    }
    if entry == Entry::Main && sig.ident != "main" {
        error(sig.ident.span(), "must be applied to the function `main`");
    }
    collect(errors)
}

fn check_attributes(entry: Entry, function: &ItemFn) -> syn::Result<()> {
    let second = function.attrs.iter().find(|attribute| {
        attribute
            .path()
            .segments
            .last()
            .is_some_and(|last| last.ident == "test")
    });
    match second {
        Some(second) if entry == Entry::Test => {
            let message = "#[tussah::test] already makes this a test; remove this attribute";
            Err(syn::Error::new(second.span(), message))
        }
        _ => Ok(()),
    }
}

/// Combines all errors into one.
fn collect(results: impl IntoIterator<Item = syn::Result<()>>) -> syn::Result<()> {
    let errors = results.into_iter().filter_map(Result::err);
    let all = errors.reduce(|mut all, error| {
        all.combine(error);
        all
    });
    all.map_or(Ok(()), Err)
}

/// The arguments of the attribute.
#[derive(Default)]
struct Arguments {
    workers: Option<LitInt>,
    name: Option<LitStr>,
}

impl Parse for Arguments {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let mut arguments = Self::default();
        let pairs = Punctuated::<MetaNameValue, Token![,]>::parse_terminated(input)?;
        // Report every wrong argument, not only the first.
        let results: Vec<_> = pairs.into_iter().map(|pair| arguments.set(pair)).collect();
        collect(results)?;
        Ok(arguments)
    }
}

impl Arguments {
    fn set(&mut self, pair: MetaNameValue) -> syn::Result<()> {
        let key = pair.path.get_ident().map(Ident::to_string);
        let is_double = match key.as_deref() {
            Some("workers") => self.workers.replace(workers(&pair.value)?).is_some(),
            Some("name") => self.name.replace(name(&pair.value)?).is_some(),
            _ => {
                let message = "unknown argument; expected `workers = 4` or `name = \"web\"`";
                return Err(syn::Error::new(pair.path.span(), message));
            }
        };
        if is_double {
            return Err(syn::Error::new(
                pair.path.span(),
                "this argument is given twice",
            ));
        }
        Ok(())
    }
}

fn workers(value: &Expr) -> syn::Result<LitInt> {
    let wrong = || {
        syn::Error::new(
            value.span(),
            "`workers` needs a whole number of at least 1, like `workers = 4`",
        )
    };
    let Expr::Lit(ExprLit {
        lit: Lit::Int(number),
        ..
    }) = value
    else {
        return Err(wrong());
    };
    match number.base10_parse::<usize>() {
        Ok(1..) if matches!(number.suffix(), "" | "usize") => Ok(number.clone()),
        _ => Err(wrong()),
    }
}

fn name(value: &Expr) -> syn::Result<LitStr> {
    match value {
        // The name becomes part of an OS thread's name, which is a C string.
        Expr::Lit(ExprLit {
            lit: Lit::Str(name),
            ..
        }) if !name.value().contains('\0') => Ok(name.clone()),
        _ => Err(syn::Error::new(
            value.span(),
            "`name` needs a string without null characters, like `name = \"web\"`",
        )),
    }
}
