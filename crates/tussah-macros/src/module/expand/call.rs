//! Writing the calls of a module's methods.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};

use super::wrap;
use crate::module::{Argument, Kind, Module, Port, plain};

impl Module {
    pub(super) fn call(&self) -> TokenStream {
        let begin = match self.has_begin {
            true => quote!(self.begin()),
            false => quote!(::core::default::Default::default()),
        };
        self.for_each_item(|port| {
            let (open, pass, flush) = self.arguments(port);
            let name = &port.name;
            let run = match port.is_async {
                true => quote!(let result = self.#name(#(#pass),*).await;),
                false => quote! {
                    let result = call(|| self.#name(#(#pass),*));
                    #(#flush)*
                    let result = unwound(result);
                },
            };
            let end = match &port.fails {
                None => quote!(let () = result; true),
                Some(_) => {
                    let failed = self.place(&port.end("failed"));
                    quote! {
                        match result {
                            ::core::result::Result::Ok(()) => true,
                            ::core::result::Result::Err(error) => {
                                AsyncOut::send(&#failed.port(flow), error).await;
                                false
                            }
                        }
                    }
                }
            };
            let keep = (port.kind == Kind::Input).then(|| {
                let (item, dropped) = (port.item(), self.place(&port.end("dropped")));
                quote!(let _kept = #dropped.keep(&item, flow, Probe::<#item>::new().clone_fn());)
            });
            let begun = port
                .state()
                .map(|_| quote!(let state = state.get_or_insert_with(|| #begin);));
            let body = quote! {
                #keep
                #(#open)*
                #run
                #end
            };
            match port.kind {
                Kind::Input | Kind::Tick => quote!({ #begun #body }),
                // An alarm that was set again, or whose flow has no state any more, is over.
                Kind::Wake => quote! {{
                    let Woken(number) = item;
                    match state.as_mut().filter(|_| wake.is(number)) {
                        ::core::option::Option::None => true,
                        ::core::option::Option::Some(state) => { #body }
                    }
                }},
                Kind::End => quote! {{
                    match state.take() {
                        ::core::option::Option::None => true,
                        ::core::option::Option::Some(state) => { #body }
                    }
                }},
            }
        })
    }

    pub(super) fn start(&self) -> TokenStream {
        let start = &self.ports[0];
        let (open, pass, _) = self.arguments(start);
        quote! {
            #(#open)*
            self.start(#(#pass),*).await;
        }
    }

    /// Returns the code that opens the outputs of a call, the arguments, and the code that waits
    /// for room.
    fn arguments(&self, port: &Port) -> (Vec<TokenStream>, Vec<TokenStream>, Vec<TokenStream>) {
        let (mut open, mut pass, mut flush) = (Vec::new(), Vec::new(), Vec::new());
        for argument in &port.arguments {
            match argument {
                Argument::Item(_) if port.kind == Kind::End => pass.push(quote!(state)),
                Argument::Item(_) => pass.push(quote!(item)),
                Argument::State(_) => pass.push(quote!(state)),
                Argument::Flow => pass.push(quote!(flow)),
                Argument::Wake => pass.push(quote!(wake)),
                Argument::Out { name, optional } => {
                    let outlet = self.place(&plain(name));
                    let out = format_ident!("out_{}", outlet);
                    let opened = match port.is_async {
                        true => quote!(port),
                        false => quote!(outbox),
                    };
                    open.push(quote!(let #out = #outlet.#opened(flow);));
                    pass.push(match optional {
                        true => quote!(#outlet.is_connected().then_some(&#out)),
                        false => quote!(&#out),
                    });
                    flush.push(quote!(#out.flush().await;));
                }
            }
        }
        (open, pass, flush)
    }

    /// Returns a match of `item` with an arm for each port.
    pub(super) fn for_each_item(&self, arm: impl Fn(&Port) -> TokenStream) -> TokenStream {
        if self.is_source {
            return quote!(match item {});
        }
        let arms = self.ports.iter().enumerate().map(|(number, port)| {
            let (pattern, arm) = (wrap(number, quote!(item)), arm(port));
            quote!(#pattern => #arm,)
        });
        let mut never = quote!(never);
        for _ in &self.ports {
            never = quote!(Ports::Other(#never));
        }
        quote!(match item { #(#arms)* #never => match never {} })
    }
}
