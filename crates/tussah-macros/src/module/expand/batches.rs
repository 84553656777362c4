//! Writing the calls of methods that take batches.

use proc_macro2::TokenStream;
use quote::quote;

use super::wrap;
use crate::module::{Module, Port};

impl Module {
    /// Returns the ports whose methods take batches, with their numbers.
    fn batch_ports(&self) -> impl Iterator<Item = (usize, &Port)> {
        let ports = self.ports.iter().enumerate();
        ports.filter(|(_, port)| port.takes_many())
    }

    /// Returns the constant that says whether a method takes a batch, and the function that returns
    /// the number of the port of such a method.
    pub(super) fn facts_of_batches(&self) -> TokenStream {
        let arms = self.batch_ports().map(|(number, _)| {
            let pattern = wrap(number, quote!(_));
            quote!(#pattern => ::core::option::Option::Some(#number),)
        });
        let arms: Vec<_> = arms.collect();
        if arms.is_empty() {
            return quote!(
                const TAKES_MANY: bool = false;
            );
        }
        quote! {
            const TAKES_MANY: bool = true;

            fn port(item: &Self::Item) -> ::core::option::Option<usize> {
                match item { #(#arms)* _ => ::core::option::Option::None }
            }
        }
    }

    /// Returns the method that handles items of a batch.
    pub(super) fn batches(&self) -> TokenStream {
        let receiver = self.receiver();
        let (pattern, call) = (self.pattern(), self.call_many());
        let state = self.state();
        let more = state.map(|_| quote!(flow: &__flow::Flow, wake: &__flow::Wake,));
        let state = state.map(|state| quote!(state: &mut ::core::option::Option<#state>,));
        quote! {
            async fn call_many(
                #receiver,
                #state
                events: &mut __flow::Events<__flow::Parcel<Self::Item>>,
                #more
                outs: &Self::Outs,
            ) {
                let #pattern = outs;
                #call
            }
        }
    }

    /// Returns the body of `call_many`.
    fn call_many(&self) -> TokenStream {
        let arms = self.batch_ports().map(|(number, port)| {
            let call = self.call_batch(number, port);
            quote!(::core::option::Option::Some(#number) => { #call })
        });
        let handles = self.handles();
        let (state, wake) = match self.state() {
            Some(_) => (quote!(state,), quote!(wake,)),
            None => (TokenStream::new(), TokenStream::new()),
        };
        let called = self.handed_over(quote!(call));
        quote! {
            match __flow::port_of::<Self>(events) {
                #(#arms)*
                _ => {
                    let next = __flow::single::<Self>(events);
                    if let ::core::option::Option::Some((item, flow)) = next {
                        let call = #handles::call(self, #state item, &flow, #wake outs);
                        if !#called.await {
                            events.fail(1);
                        }
                        events.settle();
                    }
                }
            }
        }
    }

    /// Returns the call of a method with the batch of items at the head of `events`.
    fn call_batch(&self, number: usize, port: &Port) -> TokenStream {
        let (open, pass) = self.arguments(port);
        let (name, item) = (&port.name, port.item());
        let dropped = self.place(&port.end("dropped"));
        let flush = match self.options.ordered {
            true => quote!(__flow::flush_in_turn(&turn, &mut held)),
            false => quote!(held.flush()),
        };
        let turn = self.options.ordered;
        let turn = turn.then_some(quote!(let turn = __flow::turn_of(events);));
        let run = match port.is_async {
            true => {
                let end_outs = self.end_outs(port);
                let called = self.unless_cancelled(quote!({
                    let result = self.#name(#(#pass),*).await;
                    #(#end_outs)*
                    result
                }));
                let called = self.handed_over(called);
                quote! {
                    #(#open)*
                    let ::core::option::Option::Some(result) = #called.await else {
                        return;
                    };
                }
            }
            false => quote! {
                let mut held = __flow::Held::default();
                let result = __flow::call(|| { #(#open)* self.#name(#(#pass),*) });
                #flush.await;
                let result = __flow::unwound(result);
            },
        };
        let ended = self.end_of_batch(port);
        let current = match self.state() {
            None => quote!(default()),
            Some(_) => quote!(new(flow.clone())),
        };
        let begin = self.begin();
        let begun = port.state();
        let begun = begun.map(|_| quote!(let state = state.get_or_insert_with(|| #begin);));
        let (any, one) = (wrap(number, quote!(_)), wrap(number, quote!(item)));
        quote! {
            let current = __flow::Current::#current;
            let sends = __flow::Sends::default();
            #turn
            let clone = __flow::Probe::<#item>::new().clone_fn();
            let mut items = __flow::Of::new(
                events,
                |item| ::core::matches!(item, #any),
                |item| match item {
                    #one => ::core::option::Option::Some(item),
                    _ => ::core::option::Option::None,
                },
            );
            let mut items = __flow::Batch::new(&mut items, &current, #dropped, clone);
            #begun
            #run
            #ended
            items.end(is_handled);
        }
    }

    /// Returns the code after a call of a method with a batch: whether it handled the items.
    fn end_of_batch(&self, port: &Port) -> TokenStream {
        if port.fails.is_none() {
            return quote!(let () = result; let is_handled = true;);
        }
        let failed = self.place(&port.end("failed"));
        let opened = self.opener_of_batches();
        let send = quote!(__flow::AsyncOut::send(&#failed.#opened, error));
        let send = self.handed_over(send);
        quote! {
            let is_handled = match __flow::Fails::result(result) {
                ::core::result::Result::Ok(()) => true,
                ::core::result::Result::Err(error) => {
                    #send.await;
                    false
                }
            };
        }
    }

    /// Returns the call that opens an output of an async call with a batch.
    pub(super) fn opener_of_batches(&self) -> TokenStream {
        match self.options.ordered {
            true => quote!(in_turn_of(&current, &turn, &sends)),
            false => quote!(port_of(&current, &sends)),
        }
    }

    /// Returns the future of a call. In an ordered module, it hands over what the call has sent
    /// before the next item has its turn.
    fn handed_over(&self, call: TokenStream) -> TokenStream {
        match self.options.ordered {
            true => quote!(__flow::handed_over(#call)),
            false => call,
        }
    }
}
