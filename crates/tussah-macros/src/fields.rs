//! The expansion of `#[derive(Fields)]`: the fields of an item by their names.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Data, DeriveInput, Field, Fields};

/// Expands `#[derive(Fields)]`.
pub(crate) fn derive(input: TokenStream) -> TokenStream {
    syn::parse2(input)
        .and_then(|input| expand(&input))
        .unwrap_or_else(syn::Error::into_compile_error)
}

fn expand(input: &DeriveInput) -> syn::Result<TokenStream> {
    let wrong = || {
        syn::Error::new_spanned(
            &input.ident,
            "`Fields` can only be derived for a struct with named fields",
        )
    };
    let Data::Struct(data) = &input.data else {
        return Err(wrong());
    };
    let Fields::Named(named) = &data.fields else {
        return Err(wrong());
    };
    let mut fields = Vec::new();
    for field in &named.named {
        if !is_skipped(field)? {
            fields.push(field.ident.as_ref().expect("the fields have names"));
        }
    }
    let names = fields.iter().map(|field| crate::module::plain(field));
    let names: Vec<_> = names.collect();
    let this = &input.ident;
    let (generics, arguments, bounds) = input.generics.split_for_impl();
    Ok(quote! {
        #[automatically_derived]
        impl #generics ::tussah::flow::Fields for #this #arguments #bounds {
            const NAMES: &'static [&'static str] = &[#(#names),*];

            fn field(&self, name: &str) -> ::core::option::Option<::tussah::flow::Value> {
                match name {
                    #(#names => ::tussah::flow::FieldValue::value(&self.#fields),)*
                    _ => ::core::option::Option::None,
                }
            }
        }
    })
}

/// Returns whether a field has the attribute `#[fields(skip)]`.
fn is_skipped(field: &Field) -> syn::Result<bool> {
    let mut is_skipped = false;
    for attribute in &field.attrs {
        if attribute.path().is_ident("fields") {
            attribute.parse_nested_meta(|meta| {
                if !meta.path.is_ident("skip") {
                    return Err(meta.error("unknown argument; expected `skip`"));
                }
                is_skipped = true;
                Ok(())
            })?;
        }
    }
    Ok(is_skipped)
}
