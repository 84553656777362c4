//! Writing the implementations of the traits of modules.

mod batches;
mod bounds;
mod call;
mod params;
mod ports;
mod start;

use proc_macro2::TokenStream;
use quote::{ToTokens, format_ident, quote};
use syn::{Ident, ItemImpl, Type};

use super::read::plain_type;
use super::{Kind, Module, Output, Port, docs, plain};

impl Module {
    fn place(&self, name: &str) -> Ident {
        let place = self.outputs.iter().position(|it| it.name == name);
        format_ident!("port{}", place.expect("each argument has an output"))
    }

    /// Returns the implementations.
    pub(super) fn expand(&self, block: &ItemImpl) -> TokenStream {
        let bounded = &self.bounded(block);
        let module = self.module(bounded);
        let calls = match self.takes_many() {
            _ if self.is_source() => TokenStream::new(),
            true => self.calls(bounded, &self.batches()),
            false => self.calls(bounded, &TokenStream::new()),
        };
        let source = self.source(bounded);
        let ports = self.ports_of(block);
        quote! {
            const _: () = {
                // No other name of the expansion can be one of the user's.
                use ::tussah::flow::expansion as __flow;
                #[allow(unused_imports)]
                use __flow::NoProbe as _;

                #ports

                #[automatically_derived]
                #[allow(trivial_bounds)]
                #module

                #calls

                #source
            };
        }
    }

    /// Returns the implementation of `Module`.
    fn module(&self, block: &ItemImpl) -> TokenStream {
        let (generics, _, bounds) = block.generics.split_for_impl();
        let this = &block.self_ty;
        let name = name_of(this);
        let (item, (outs, new)) = (self.item(), self.outs());
        let body = self.body();
        let (is_serial, has_state) = (self.options.serial, self.state().is_some());
        let is_alone = is_serial || self.is_exclusive();
        let (takes_many, is_plain) = (self.facts_of_batches(), self.is_plain());
        let [tick, wake, end] = [Kind::Tick, Kind::Wake, Kind::End].map(|kind| self.ask(kind));
        let (make, params, ports) = (self.make(), self.param_specs(), self.port_specs());
        let (bounds_flows, is_ordered, swap) =
            (self.options.flows, self.options.ordered, self.swap());
        let (inputs, dropped, pattern) = (self.inputs(), self.dropped(), self.pattern());
        let (install, describe, called) = (self.install(), self.describe(block), self.called());
        let start = self.start_fn();
        quote! {
            impl #generics __flow::Module for #this #bounds {
                type Item = #item; type Outs = #outs;
                type Call = __flow::#called<Self>;
                const NAME: &'static str = #name;
                const BODY: __flow::Body = __flow::Body::#body;
                #takes_many
                const IS_PLAIN: bool = #is_plain;
                const HAS_STATE: bool = #has_state;
                const IS_SERIAL: bool = #is_serial;
                const IS_ALONE: bool = #is_alone;
                const IS_ORDERED: bool = #is_ordered;
                const BOUNDS_FLOWS: bool = #bounds_flows;
                const TICK: ::core::option::Option<fn() -> Self::Item> = #tick;
                const WAKE: ::core::option::Option<fn(u64) -> Self::Item> = #wake;
                const END: ::core::option::Option<fn() -> Self::Item> = #end;
                const START: ::core::option::Option<__flow::Begin<Self>> = #start;
                const PARAMS: &'static [__flow::ParamSpec] = &[#(#params),*];
                #ports

                fn make(args: &__flow::Args) -> ::core::result::Result<Self, ::std::string::String> {
                    args.making(|| { #make })
                }

                fn describe() -> __flow::Describe {
                    #describe
                }

                fn outs() -> Self::Outs {
                    #new
                }

                fn ports(entry: &mut __flow::Entry<Self::Item>) {
                    #inputs
                }

                #[allow(unused_variables)]
                fn dropped(
                    item: Self::Item,
                    flow: &__flow::Flow,
                    why: __flow::Reason,
                    outs: &Self::Outs,
                ) -> __flow::Unhandled<Self::Item> {
                    let #pattern = outs;
                    #dropped
                }

                fn install<__Way: __flow::Way>(node: __flow::Node<Self, __Way>) -> ::core::result::Result<__flow::Installed, __flow::BuildError> {
                    node.#install()
                } #swap
            }
        }
    }

    /// Returns the kind of the methods that handle items.
    fn body(&self) -> TokenStream {
        match self.is_source() || self.ports.iter().any(|port| port.is_async) {
            _ if self.options.blocking => quote!(Blocking),
            true => quote!(Async),
            false => quote!(Plain),
        }
    }

    pub(super) fn receiver(&self) -> TokenStream {
        match self.is_exclusive() {
            true => quote!(&mut self),
            false => quote!(&self),
        }
    }

    /// Returns the trait whose methods handle items.
    pub(super) fn handles(&self) -> TokenStream {
        match self.state() {
            _ if self.is_exclusive() => quote!(__flow::Serial),
            Some(_) => quote!(__flow::PerFlow),
            None => quote!(__flow::Element),
        }
    }

    /// Returns the implementation of the trait that handles items, with the method for batches.
    fn calls(&self, block: &ItemImpl, batches: &TokenStream) -> TokenStream {
        let (generics, _, bounds) = block.generics.split_for_impl();
        let this = &block.self_ty;
        let (of, receiver) = (self.handles(), self.receiver());
        let types = self.state().map(|state| quote!(type State = #state;));
        let state = self.state();
        let state = state.map(|state| quote!(state: &mut ::core::option::Option<#state>,));
        let wake = self.state().map(|_| quote!(wake: &__flow::Wake,));
        let (pattern, call) = (self.pattern(), self.call());
        let begin = match self.is_plain() {
            true => quote!(#[inline] fn call_now<'a, __Way: __flow::Way>),
            false => quote!(async fn call),
        };
        let turn = (self.options.ordered && !self.is_plain())
            .then_some(quote!(let (turn, flow) = (flow, &flow.without_ticket());));
        let lifetime = self.is_plain().then_some(quote!('a));
        let held = self.is_plain().then_some(quote!((held, way): (
            &__flow::Held<'a>,
            ::core::option::Option<&mut __Way::Open<'a>>,
        )));
        let lend = self
            .is_plain()
            .then_some(quote!(let way = way.map(::core::cell::RefCell::new);));
        quote! {
            #[automatically_derived]
            #[allow(unused_variables, trivial_bounds)]
            impl #generics #of for #this #bounds {
                #types
                #begin(
                    #receiver,
                    #state
                    item: Self::Item,
                    flow: &__flow::Flow,
                    #wake
                    outs: &#lifetime Self::Outs,
                    #held
                ) -> bool {
                    let #pattern = outs;
                    #turn
                    #lend
                    #call
                }

                #batches
            }
        }
    }

    pub(super) fn state(&self) -> Option<&Type> {
        self.ports.iter().find_map(Port::state)
    }

    pub(super) fn is_exclusive(&self) -> bool {
        self.ports.iter().any(|port| port.is_exclusive)
    }

    /// Returns the method of `Node` that installs a module of this kind.
    pub(super) fn install(&self) -> TokenStream {
        match () {
            () if self.is_source() => quote!(source),
            () if self.is_exclusive() => quote!(serial),
            () if self.state().is_some() => quote!(per_flow),
            () if self.options.blocking => quote!(blocking),
            () => quote!(element),
        }
    }

    /// Returns the type of an instance in a fused chain.
    fn called(&self) -> TokenStream {
        match self.is_exclusive() {
            _ if !self.is_plain() || self.options.blocking => quote!(NotPlain),
            _ if self.state().is_some() => quote!(NotPlain),
            true => quote!(PlainSerial),
            false => quote!(PlainElement),
        }
    }

    /// Returns the type of the items of all ports.
    fn item(&self) -> TokenStream {
        let ports = self.ports.iter().rev();
        ports.fold(quote!(__flow::Never), |others, port| {
            let this = port.what();
            quote!(__flow::Ports<#this, #others>)
        })
    }

    /// Returns the type of the output ports, and the expression that makes them.
    fn outs(&self) -> (TokenStream, TokenStream) {
        let outputs = self.outputs.iter().rev();
        outputs.fold((quote!(()), quote!(())), |(types, values), output| {
            let Output {
                name,
                item,
                required,
                ..
            } = output;
            let value = quote!(__flow::Outlet::new(#name, #required, __flow::Probe::<#item>::new().clone_fn()));
            (quote!((__flow::Outlet<#item>, #types)), quote!((#value, #values)))
        })
    }

    /// Returns the function that makes the item for which a method is called.
    fn ask(&self, kind: Kind) -> TokenStream {
        let Some(number) = self.ports.iter().position(|port| port.kind == kind) else {
            return quote!(::core::option::Option::None);
        };
        let made = match kind {
            Kind::Wake => wrap(number, quote!(__flow::Woken(number))),
            Kind::End => wrap(number, quote!(__flow::Ended)),
            _ => wrap(number, quote!(__flow::Tick)),
        };
        match kind {
            Kind::Wake => quote!(::core::option::Option::Some(|number| #made)),
            _ => quote!(::core::option::Option::Some(|| #made)),
        }
    }

    /// Returns the expression that makes the signature.
    fn describe(&self, block: &ItemImpl) -> TokenStream {
        let doc = docs(&block.attrs);
        let parallelism = match self.state() {
            _ if self.is_exclusive() || self.options.serial => quote!(Serial),
            Some(_) => quote!(Flow),
            None if self.options.ordered => quote!(Ordered),
            None => quote!(Element),
        };
        let params = self.params().into_iter().enumerate();
        let params = params.map(
            |(place, (_, of, _))| quote!(.param::<#of>(&<Self as __flow::Module>::PARAMS[#place])),
        );
        let inputs = self.ports.iter().filter(|port| port.kind == Kind::Input);
        let inputs = inputs.map(|port| {
            let (name, item) = (plain(&port.name), port.item());
            let (spelled, text) = (item.to_token_stream().to_string(), text(&item));
            quote! {
                .input::<#item>(#name, #spelled, __flow::Probe::<#item>::FIELDS) #text
            }
        });
        let outputs = self.outputs.iter().enumerate();
        let outputs = outputs.map(|(place, Output { item, .. })| {
            let (spelled, text) = (item.to_token_stream().to_string(), text(item));
            let output = quote!(&<Self as __flow::Module>::OUTPUTS[#place]);
            let clones = quote!(__flow::Probe::<#item>::CLONES);
            quote!(.output::<#item>(#output, #spelled, #clones) #text)
        });
        let generics = block.generics.type_params().map(|of| {
            let (of, name) = (&of.ident, of.ident.to_string());
            quote!(.generic::<#of>(#name))
        });
        quote! {
            __flow::Describe::new(#doc, __flow::Parallelism::#parallelism, Self::BODY)
                .doc_of(__flow::Probe::<Self>::new().doc())
                #(#generics)* #(#params)* #(#inputs)* #(#outputs)*
        }
    }

    fn inputs(&self) -> TokenStream {
        let ports = self.ports.iter().enumerate();
        let ports = ports.filter(|(_, port)| port.kind == Kind::Input);
        let ports = ports.map(|(number, port)| {
            let name = plain(&port.name);
            let wrapped = wrap(number, quote!(item));
            let item = port.item();
            quote! {
                let hash = __flow::Probe::<#item>::new().hash_fn();
                #[allow(unreachable_patterns, clippy::result_large_err)]
                let unwrap = |item| match item { #wrapped => ::core::result::Result::Ok(item), other => ::core::result::Result::Err(other) };
                entry.port::<#item>(#name, |item| #wrapped, unwrap, hash);
            }
        });
        quote!(#(#ports)*)
    }

    fn dropped(&self) -> TokenStream {
        let wakes = self.ports.iter().position(|port| port.kind == Kind::Wake);
        self.for_each_item(|port| match port.kind {
            Kind::Input => {
                let outlet = self.place(&port.end("dropped"));
                quote!(#outlet.dropped(item, flow, why))
            }
            Kind::Wake => {
                let item = wrap(wakes.expect("this is one"), quote!(item));
                quote!(__flow::Unhandled::Alarm(#item))
            }
            _ => quote!(__flow::Unhandled::Whole),
        })
    }

    fn pattern(&self) -> TokenStream {
        let names = (0..self.outputs.len()).rev();
        names.fold(quote!(()), |rest, number| {
            let name = format_ident!("port{number}");
            quote!((#name, #rest))
        })
    }
}

/// Returns the call that describes a type of items as text.
fn text(item: &impl ToTokens) -> TokenStream {
    let probe = quote!(__flow::Probe::<#item>::new());
    quote!(.text::<#item>(#probe.parse_fn(), #probe.show_fn(), #probe.debug_fn()))
}

/// Returns the pattern or the value of an item of the port with this number.
fn wrap(number: usize, item: TokenStream) -> TokenStream {
    (0..number).fold(
        quote!(__flow::Ports::This(#item)),
        |inner, _| quote!(__flow::Ports::Other(#inner)),
    )
}

/// Returns the last name in the path of a type.
fn name_of(of: &Type) -> Option<String> {
    let Type::Path(path) = plain_type(of) else {
        return None;
    };
    let last = path.path.segments.last()?;
    Some(last.ident.to_string())
}
