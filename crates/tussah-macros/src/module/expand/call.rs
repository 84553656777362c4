//! Writing the calls of a module's methods.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};

use super::wrap;
use crate::module::{Argument, Kind, Module, Port, plain, port_number};

impl Module {
    /// Returns whether no method waits, so that a call is a plain function.
    pub(super) fn is_plain(&self) -> bool {
        let mut ports = self.ports.iter();
        !self.is_source() && ports.all(|port| !port.is_async && !port.takes_many())
    }

    pub(super) fn call(&self) -> TokenStream {
        let is_plain = self.is_plain();
        let begin = self.begin();
        self.for_each_item(|port| {
            if port.takes_many() {
                return quote!(::core::unreachable!("the item of a batch"));
            }
            let (open, pass) = self.arguments(port);
            let run = self.run(port, &open, &pass);
            let open = (port.is_async || is_plain).then_some(quote!(#(#open)*));
            let sends = (!is_plain).then_some(quote!(let sends = __flow::Sends::default();));
            let end = self.end(port);
            let keep = (port.kind == Kind::Input).then(|| {
                let (item, dropped) = (port.item(), self.place(&port.end("dropped")));
                quote!(let kept = #dropped.keep(&item, flow, __flow::Probe::<#item>::new().clone_fn());)
            });
            let handled = keep.is_some().then(|| {
                quote! {
                    if let ::core::option::Option::Some(kept) = kept {
                        kept.handled();
                    }
                }
            });
            // After `keep`, because it may panic.
            let begun = matches!(port.kind, Kind::Input | Kind::Tick)
                .then(|| port.state())
                .flatten()
                .map(|_| quote!(let state = state.get_or_insert_with(|| #begin);));
            let body = quote! {
                #keep
                #begun
                #sends
                #open
                #run
                #handled
                #end
            };
            match port.kind {
                Kind::Input | Kind::Tick | Kind::Start => quote!({ #body }),
                // An alarm that was set again, or whose flow has no state any more, is over.
                Kind::Wake => quote! {{
                    let __flow::Woken(number) = item;
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

    /// Returns the code that calls a method with one item. Its outputs are open, except those of a
    /// plain method beside an async one.
    fn run(&self, port: &Port, open: &[TokenStream], pass: &[TokenStream]) -> TokenStream {
        let (name, end_outs) = (&port.name, self.end_outs(port));
        let turn = self.options.ordered.then_some(quote!(turn.turn().await;));
        match (port.is_async, self.is_plain()) {
            (true, _) => {
                let called = self.unless_cancelled(quote!({
                    let result = self.#name(#(#pass),*).await;
                    #(#end_outs)*
                    result
                }));
                quote! {
                    let ::core::option::Option::Some(result) = #called.await else {
                        return false;
                    };
                }
            }
            (false, true) => quote!(let result = self.#name(#(#pass),*);),
            (false, false) => quote! {
                let mut held = __flow::Held::default();
                let result = __flow::call(|| { #(#open)* self.#name(#(#pass),*) });
                #turn
                held.flush().await;
                let result = __flow::unwound(result);
            },
        }
    }

    /// Returns the future of an async call. Its output is `None` if the graph stopped the call.
    pub(super) fn unless_cancelled(&self, call: TokenStream) -> TokenStream {
        let mut inputs = self.ports.iter().filter(|port| port.kind == Kind::Input);
        let input = inputs
            .next()
            .expect("a module without a source has an input");
        // Any port would do.
        let outlet = self.place(&input.end("dropped"));
        quote!(#outlet.unless_cancelled(&sends, async #call))
    }

    /// Returns the expression that makes the state of a flow.
    pub(super) fn begin(&self) -> TokenStream {
        match self.has_begin {
            true => quote!(self.begin()),
            false => quote!(::core::default::Default::default()),
        }
    }

    /// Returns the code after a call of a method: whether it handled the item.
    fn end(&self, port: &Port) -> TokenStream {
        match &port.fails {
            None => quote!(let () = result; true),
            Some(_) => {
                let failed = self.place(&port.end("failed"));
                let (outbox, port) = self.openers();
                let send = match self.is_plain() {
                    true => quote!(__flow::Out::send(&#failed.#outbox(flow, held), error)),
                    false => quote!(__flow::AsyncOut::send(&#failed.#port, error).await),
                };
                quote! {
                    match __flow::Fails::result(result) {
                        ::core::result::Result::Ok(()) => true,
                        ::core::result::Result::Err(error) => {
                            #send;
                            false
                        }
                    }
                }
            }
        }
    }

    /// Returns the method that swaps to this module, if that is possible.
    pub(super) fn swap(&self) -> Option<TokenStream> {
        let install = self.install();
        self.start.is_none().then(|| {
            quote! {
                async fn swap(swap: __flow::Swap<Self>) -> ::core::result::Result<(), __flow::BuildError> {
                    swap.#install().await
                }
            }
        })
    }

    /// Returns the code that ends the outputs of an async call of an ordered module.
    pub(super) fn end_outs(&self, port: &Port) -> Vec<TokenStream> {
        let outs = port.arguments.iter().filter_map(|argument| match argument {
            Argument::Out { name, .. } if self.options.ordered => {
                let out = format_ident!("out_{}", self.place(&plain(name)));
                Some(quote!(#out.end().await;))
            }
            _ => None,
        });
        outs.collect()
    }

    /// Returns the method that opens an output of a plain call, and the call that opens one of an
    /// async call.
    fn openers(&self) -> (TokenStream, TokenStream) {
        match self.options.ordered {
            true => (quote!(later), quote!(in_turn(flow, turn, &sends))),
            false => (quote!(outbox), quote!(port(flow, &sends))),
        }
    }

    /// Returns the code that opens the outputs of a call, and the arguments.
    pub(super) fn arguments(&self, port: &Port) -> (Vec<TokenStream>, Vec<TokenStream>) {
        let (mut open, mut pass) = (Vec::new(), Vec::new());
        for argument in &port.arguments {
            match argument {
                Argument::Item(_) if port.kind == Kind::End => pass.push(quote!(state)),
                Argument::Item(_) => pass.push(quote!(item)),
                Argument::Items(_) => pass.push(quote!(&mut items)),
                Argument::State(_) => pass.push(quote!(state)),
                Argument::Flow => pass.push(quote!(flow)),
                Argument::Wake => pass.push(quote!(wake)),
                Argument::Out { name, optional } => {
                    let outlet = self.place(&plain(name));
                    let out = format_ident!("out_{}", outlet);
                    let held = match self.is_plain() {
                        true => quote!(held),
                        false => quote!(&held),
                    };
                    let (outbox, async_port) = self.openers();
                    let opened = match port.is_async {
                        // What `start` sends has no turn.
                        _ if port.kind == Kind::Start => quote!(port(flow, &sends)),
                        true if port.takes_many() => self.opener_of_batches(),
                        false if port.takes_many() && self.options.ordered => {
                            quote!(later_of(&current, &held))
                        }
                        false if port.takes_many() => quote!(outbox_of(&current, &held)),
                        true => async_port,
                        false if self.is_plain() && !self.options.ordered => {
                            let number = port_number(&plain(name));
                            quote!(outbox_by::<__Way>(flow, held, way.as_ref(), #number))
                        }
                        false => quote!(#outbox(flow, #held)),
                    };
                    open.push(quote!(let #out = #outlet.#opened;));
                    pass.push(match optional {
                        true => quote!(#outlet.is_connected().then_some(&#out)),
                        false => quote!(&#out),
                    });
                }
            }
        }
        (open, pass)
    }

    /// Returns a match of `item` with an arm for each port.
    pub(super) fn for_each_item(&self, arm: impl Fn(&Port) -> TokenStream) -> TokenStream {
        if self.is_source() {
            return quote!(match item {});
        }
        let arms = self.ports.iter().enumerate().map(|(number, port)| {
            let (pattern, arm) = (wrap(number, quote!(item)), arm(port));
            quote!(#pattern => #arm,)
        });
        let mut never = quote!(never);
        for _ in &self.ports {
            never = quote!(__flow::Ports::Other(#never));
        }
        quote!(match item { #(#arms)* #never => match never {} })
    }
}
