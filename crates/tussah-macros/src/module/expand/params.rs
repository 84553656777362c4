//! Writing the parameters of a module.

use proc_macro2::TokenStream;
use quote::{ToTokens as _, quote};
use syn::{Type, parse_quote};

use crate::module::Module;

impl Module {
    /// Returns the body of `make`.
    pub(super) fn make(&self) -> TokenStream {
        let Some(init) = &self.init else {
            return quote! {
                ::core::result::Result::Ok(<Self as ::core::default::Default>::default())
            };
        };
        let values = self.params().into_iter().take(init.params.len());
        let values = values.map(|param| {
            let value = value(&param);
            quote!(#value?)
        });
        let made = quote!(Self::init(#(#values),*));
        match init.is_fallible {
            true => quote!(#made.map_err(|error| ::std::string::ToString::to_string(&error))),
            false => quote!(::core::result::Result::Ok(#made)),
        }
    }

    /// Returns the constants that describe the parameters.
    pub(super) fn param_specs(&self) -> impl Iterator<Item = TokenStream> {
        let own = self.init.as_ref().map_or(0, |init| init.params.len());
        let params = self.params().into_iter().enumerate();
        params.map(move |(place, param)| {
            // The parameters that the engine reads do not accept 0, although their types have it.
            let accepted = match param.0.as_str() {
                _ if place < own => param.1.clone(),
                "flows" => parse_quote!(::core::num::NonZeroUsize),
                _ => parse_quote!(__flow::Period),
            };
            param_spec(&param, &accepted)
        })
    }
}

/// A parameter: its name, its type, and whether it is optional.
type Param = (String, Type, bool);

/// Returns the code that gets the value of a parameter from `args`.
fn value((name, of, optional): &Param) -> TokenStream {
    let get = if *optional {
        quote!(get_if)
    } else {
        quote!(get)
    };
    quote!(args.#get::<#of>(#name, __flow::Probe::<#of>::new().read_fn()))
}

/// Returns the constant that describes a parameter, which takes the values that the type `accepted`
/// accepts.
fn param_spec(param: &Param, accepted: &Type) -> TokenStream {
    let (name, of, optional) = param;
    let (spelled, value) = (spelled(of), value(param));
    quote!(__flow::ParamSpec {
        name: #name,
        kind: __flow::Probe::<#of>::KIND,
        spelled: #spelled,
        range: __flow::Probe::<#accepted>::RANGE,
        words: __flow::Probe::<#of>::WORDS,
        names_field: __flow::Probe::<#of>::NAMES_FIELD,
        optional: #optional,
        check: |args: &__flow::Args| #value.map(::core::mem::drop),
    })
}

/// Returns a type as people write it, without the spaces between tokens.
pub(super) fn spelled(of: &Type) -> String {
    let mut text = of.to_token_stream().to_string();
    for token in ["<", ">", "::", "&"] {
        text = text.replace(&format!("{token} "), token);
    }
    for token in ["<", ">", "::", ","] {
        text = text.replace(&format!(" {token}"), token);
    }
    text
}
