//! Reading a block: the methods, their arguments, and their errors.

mod arguments;

use quote::ToTokens;
use syn::{FnArg, Ident, ImplItemFn, ItemImpl, ReturnType, Type};

pub(super) use self::arguments::{generic, plain_type};
use self::arguments::{is, name};

use super::{Argument, Init, Kind, Module, Options, Output, Port, functions};

impl Module {
    pub(super) fn read(block: &ItemImpl, options: Options) -> syn::Result<Self> {
        if let Some((_, of, _)) = &block.trait_ {
            return Err(syn::Error::new_spanned(
                of,
                "#[module] must be applied to the `impl` block of a struct, not of a trait",
            ));
        }
        let (mut init, mut start) = (None, None);
        let (mut ports, mut outputs, mut has_begin) = (Vec::new(), Vec::new(), false);
        for function in functions(block) {
            let name = &function.sig.ident;
            let is_port = function.attrs.iter().any(|it| it.path().is_ident("port"));
            if name == "init" {
                init = Some(Init::read(function)?);
            } else if name == "start" {
                let port = Port::read(function, Kind::Start, &mut outputs)?;
                port.check(function)?;
                start = Some(port);
            } else if name == "begin" {
                has_begin = true;
            } else if let Some(kind) = Kind::of(name, is_port) {
                let port = Port::read(function, kind, &mut outputs)?;
                port.check(function)?;
                ports.push(port);
            }
        }
        let has_input = ports.iter().any(|port| port.kind == Kind::Input);
        match &start {
            Some(start) if !has_input && !ports.is_empty() => {
                return Err(syn::Error::new(
                    start.name.span(),
                    "a module with `start` and without `run` is a source; expected no other method of a module",
                ));
            }
            None if !has_input => {
                return Err(syn::Error::new_spanned(
                    &block.self_ty,
                    "a module handles items in `run`, or produces them in `start`; found neither",
                ));
            }
            _ => {}
        }
        let module = Self {
            options,
            init,
            ports,
            start,
            has_begin,
            outputs,
        };
        module.check()
    }

    /// Checks the rules that concern several methods, and adds the ports for the ends of items.
    fn check(mut self) -> syn::Result<Self> {
        self.check_state()?;
        self.check_kinds()?;
        for end in self.ends() {
            if let Some(taken) = self.outputs.iter().find(|it| it.name == end.name) {
                return Err(syn::Error::new(
                    taken.span,
                    format!(
                        "every module has the output `{}` for items that were not handled; expected another name",
                        end.name
                    ),
                ));
            }
            self.outputs.push(end);
        }
        Ok(self)
    }

    /// Checks that all methods agree on the state of a flow.
    fn check_state(&self) -> syn::Result<()> {
        let Some(state) = self.ports.iter().find_map(Port::state) else {
            return Ok(());
        };
        if let Some(exclusive) = self.ports.iter().find(|port| port.is_exclusive) {
            let mut error = syn::Error::new(
                exclusive.name.span(),
                "a method of `&mut self` handles one item at a time, so state for each flow is of no use",
            );
            error.combine(syn::Error::new_spanned(state, "the state is here"));
            return Err(error);
        }
        let text = |of: &Type| of.to_token_stream().to_string();
        let mut others = self.ports.iter().filter_map(Port::state);
        match others.find(|other| text(other) != text(state)) {
            None => Ok(()),
            Some(other) => Err(syn::Error::new_spanned(
                other,
                "all methods of a module share the state of a flow; expected the same type",
            )),
        }
    }

    /// Checks that the methods fit together.
    fn check_kinds(&self) -> syn::Result<()> {
        let find = |kind| self.ports.iter().find(|port| port.kind == kind);
        let error = |name: &Ident, message: &str| Err(syn::Error::new(name.span(), message));
        let has_state = self.ports.iter().any(|port| port.state().is_some());
        if let Some(Port { name, .. }) = find(Kind::Wake).or(find(Kind::End))
            && !has_state
        {
            let message = format!(
                "`{name}` is for modules with state for each flow; expected an argument by `&mut`"
            );
            return error(name, &message);
        }
        let takes_flow = |port: &Port| {
            let mut arguments = port.arguments.iter();
            arguments.any(|argument| matches!(argument, Argument::Flow))
        };
        let mut batches = self.ports.iter().filter(|port| port.takes_many());
        if let Some(Port { name, .. }) = batches.find(|port| !has_state && takes_flow(port)) {
            let message = "a batch has items of several flows; expected `items.flow()`, the flow of the last one";
            return error(name, message);
        }
        let keeps = has_state || self.is_exclusive() || self.options.serial || self.is_source();
        let mut methods = self.ports.iter().chain(&self.start);
        let first = methods.clone().next().expect("a module has a method");
        if self.options.ordered && keeps {
            let message = "a module keeps the order of all of its items, or of each flow; expected no `ordered`";
            return error(&first.name, message);
        }
        let waits = |port: &Port| port.is_async || port.is_exclusive;
        if self.options.blocking && (has_state || methods.any(waits)) {
            let message =
                "a module that blocks has plain methods of `&self` without state, and no `start`";
            return error(&first.name, message);
        }
        let exclusive = self.ports.iter().find(|port| port.is_exclusive);
        if let (Some(_), Some(Port { name, .. })) = (&self.start, exclusive) {
            let message = format!(
                "`start` runs beside `{name}`, and both cannot have `&mut self` at once; expected `&self`, a lock around what changes, and `#[module(serial)]` for one item at a time"
            );
            return error(name, &message);
        }
        Ok(())
    }

    /// Returns the outputs for items that were not handled.
    pub(super) fn ends(&self) -> Vec<Output> {
        let mut ends = Vec::new();
        let inputs = self.ports.iter().filter(|port| port.kind == Kind::Input);
        for port in inputs {
            let item = port.item().expect("a port takes items");
            let mut end = |end: &str, item| {
                ends.push(Output {
                    name: port.end(end),
                    span: port.name.span(),
                    item,
                    required: false,
                });
            };
            end("dropped", syn::parse_quote!(::tussah::flow::Dropped<#item>));
            if let Some(result) = &port.fails {
                let fails = syn::parse_quote!(<#result as ::tussah::flow::expansion::Fails>::Error);
                end("failed", fails);
            }
        }
        ends
    }
}

impl Kind {
    fn of(name: &Ident, is_port: bool) -> Option<Self> {
        Some(match name.to_string().as_str() {
            _ if is_port => Self::Input,
            "run" => Self::Input,
            "tick" => Self::Tick,
            "wake" => Self::Wake,
            "end" => Self::End,
            _ => return None,
        })
    }
}

impl Port {
    /// Checks the arguments of a method.
    fn check(&self, function: &ImplItemFn) -> syn::Result<()> {
        let name = &self.name;
        let error = |message: String| Err(syn::Error::new_spanned(&function.sig, message));
        let takes = (self.item().is_some(), self.state().is_some());
        let is_output = |it: &Argument| matches!(it, Argument::Out { .. } | Argument::Flow);
        match (self.kind, takes) {
            (Kind::Start, _) if !self.is_async || self.is_exclusive => {
                error("`start` must be an `async fn` of `&self`".to_owned())
            }
            (Kind::Start, _) if !self.arguments.iter().all(is_output) => {
                error("`start` takes outputs only: `out: &impl AsyncOut<T>`".to_owned())
            }
            (Kind::Input, (false, _)) => error(format!(
                "`{name}` takes no item; expected an argument by value"
            )),
            (Kind::Tick, (_, true)) => error(
                "`tick` is for all flows, without state; expected `wake`, which is for one flow"
                    .to_owned(),
            ),
            (Kind::Tick, (true, _)) => error("`tick` takes outputs only".to_owned()),
            (Kind::Wake, (true, _) | (_, false)) => {
                error("`wake` takes the state of the flow by `&mut`, and no item".to_owned())
            }
            (Kind::End, (false, _) | (_, true)) => {
                error("`end` takes the state of the flow by value".to_owned())
            }
            (Kind::Tick | Kind::Wake | Kind::End, _) if self.fails.is_some() => {
                error(format!("`{name}` returns nothing"))
            }
            _ => Ok(()),
        }
    }
}

impl Init {
    fn read(function: &ImplItemFn) -> syn::Result<Self> {
        let mut params = Vec::new();
        for argument in &function.sig.inputs {
            let FnArg::Typed(argument) = argument else {
                return Err(syn::Error::new_spanned(
                    argument,
                    "`init` makes the module; expected no `self`",
                ));
            };
            params.push((name(&argument.pat)?, (*argument.ty).clone()));
        }
        let is_fallible = match &function.sig.output {
            ReturnType::Default => false,
            ReturnType::Type(_, of) => is(of, "Result"),
        };
        if function.sig.asyncness.is_some() {
            return Err(syn::Error::new_spanned(
                &function.sig,
                "`init` cannot wait; expected a plain `fn`",
            ));
        }
        Ok(Self {
            params,
            is_fallible,
        })
    }
}

impl Port {
    fn read(function: &ImplItemFn, kind: Kind, outputs: &mut Vec<Output>) -> syn::Result<Self> {
        let sig = &function.sig;
        let Some(receiver) = sig.receiver().filter(|it| it.reference.is_some()) else {
            return Err(syn::Error::new_spanned(
                sig,
                format!("`{}` must take `&self` or `&mut self`", sig.ident),
            ));
        };
        if let Some(parameter) = sig.generics.params.first() {
            return Err(syn::Error::new_spanned(
                parameter,
                "the methods of a module have no parameters of their own; expected them on the `impl`",
            ));
        }
        let mut port = Self {
            name: sig.ident.clone(),
            kind,
            is_async: sig.asyncness.is_some(),
            is_exclusive: receiver.mutability.is_some(),
            arguments: Vec::new(),
            fails: match &sig.output {
                ReturnType::Default => None,
                ReturnType::Type(_, of) => match plain_type(of) {
                    Type::Tuple(tuple) if tuple.elems.is_empty() => None,
                    of => Some(of.clone()),
                },
            },
        };
        for argument in sig.inputs.iter().skip(1) {
            let FnArg::Typed(argument) = argument else {
                continue;
            };
            let read = port.argument(&argument.pat, &argument.ty, outputs)?;
            port.arguments.push(read);
        }
        Ok(port)
    }
}
