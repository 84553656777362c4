//! Writing what the compiler knows of the ports and parameters.

use proc_macro2::TokenStream;
use quote::quote;
use syn::ItemImpl;

use super::bounds;
use super::params::spelled;
use crate::module::{Kind, Module, Output, plain, port_number};

impl Module {
    /// Returns the constants that describe the ports.
    pub(super) fn port_specs(&self) -> TokenStream {
        let inputs = self.ports.iter().filter(|port| port.kind == Kind::Input);
        let inputs = inputs.map(|port| {
            let (name, item) = (plain(&port.name), port.item().expect("an input has items"));
            let spelled = spelled(item);
            quote!(__flow::InputSpec {
                name: #name,
                spelled: #spelled,
                fields: __flow::Probe::<#item>::FIELDS,
            })
        });
        let outputs = self.outputs.iter().map(|output| {
            let Output { name, required, .. } = output;
            quote!(__flow::OutputSpec { name: #name, required: #required })
        });
        quote! {
            const INPUTS: &'static [__flow::InputSpec] = &[#(#inputs),*];
            const OUTPUTS: &'static [__flow::OutputSpec] = &[#(#outputs),*];
        }
    }

    /// Returns the traits that tell the compiler the types of the ports and parameters.
    pub(super) fn ports_of(&self, block: &ItemImpl) -> TokenStream {
        let (generics, _, bounds) = block.generics.split_for_impl();
        let this = &block.self_ty;
        let inputs = self.ports.iter().filter(|port| port.kind == Kind::Input);
        let inputs = inputs.map(|port| {
            let (number, item) = (port_number(&plain(&port.name)), port.item());
            quote! {
                impl #generics __flow::HasInput<#number> for #this #bounds { type Item = #item; }
            }
        });
        let outputs = self.outputs.iter().map(|Output { name, item, .. }| {
            let (number, clones) = (port_number(name), bounds::clones(block, item));
            quote! {
                impl #generics __flow::HasOutput<#number> for #this #bounds {
                    type Item = #item;
                    #clones
                }
            }
        });
        let params = self.params().into_iter().enumerate();
        let params = params.flat_map(|(place, (name, of, _))| {
            [place as u64, port_number(&name)].map(|number| {
                quote! {
                    impl #generics __flow::HasParam<#number> for #this #bounds { type Value = #of; }
                }
            })
        });
        quote!(#(#inputs)* #(#outputs)* #(#params)*)
    }
}
