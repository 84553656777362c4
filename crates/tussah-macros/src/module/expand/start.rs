//! Writing the call of `start`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::ItemImpl;

use crate::module::Module;

impl Module {
    /// Returns the implementation of `Source`, if the module has `start`.
    pub(super) fn source(&self, block: &ItemImpl) -> Option<TokenStream> {
        let start = self.start.as_ref()?;
        let (generics, _, bounds) = block.generics.split_for_impl();
        let (this, pattern) = (&block.self_ty, self.pattern());
        let (open, pass) = self.arguments(start);
        let end = match start.fails.is_some() {
            true => quote!(
                __flow::Fails::result(result)
                    .map_err(|error| ::std::string::ToString::to_string(&error))
            ),
            false => quote!(let () = result; ::core::result::Result::Ok(())),
        };
        Some(quote! {
            #[automatically_derived]
            #[allow(unused_variables, trivial_bounds)]
            impl #generics __flow::Source for #this #bounds {
                async fn start(
                    &self,
                    flow: &__flow::Flow,
                    outs: &Self::Outs,
                ) -> ::core::result::Result<(), ::std::string::String> {
                    let #pattern = outs;
                    let sends = __flow::Sends::default();
                    #(#open)*
                    let result = self.start(#(#pass),*).await;
                    #end
                }
            }
        })
    }

    /// Returns the function that calls `start`, if the module has it.
    pub(super) fn start_fn(&self) -> TokenStream {
        match self.start {
            None => quote!(::core::option::Option::None),
            Some(_) => quote! {
                ::core::option::Option::Some(|module, flow, outs| {
                    ::std::boxed::Box::pin(__flow::Source::start(module, flow, outs))
                })
            },
        }
    }
}
