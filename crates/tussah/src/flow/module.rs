//! The traits that `#[module]` implements.

use std::future::Future;

use tussah_weave::Body;

use super::args::Args;
use super::compiled::ParamSpec;
use super::describe::Describe;
use super::edge::Entry;
use super::flows::Flow;
use super::install::{Installed, Node};
use super::outlet::{Held, Outs};
use super::wake::Wake;
use crate::stage::{BuildError, Reason};

/// A module: the behavior of an instance in a graph. Implemented by [`#[module]`](super::module).
pub trait Module: Sized + Send + 'static {
    /// The items of all input ports.
    #[doc(hidden)]
    type Item: Send + 'static;

    /// The output ports.
    #[doc(hidden)]
    type Outs: Outs;

    /// The name of the type.
    #[doc(hidden)]
    const NAME: &'static str;

    /// The kind of the module's calls.
    #[doc(hidden)]
    const BODY: Body;

    /// True if all methods are plain functions.
    #[doc(hidden)]
    const IS_PLAIN: bool;

    /// True if the module keeps state for each flow.
    #[doc(hidden)]
    const HAS_STATE: bool;

    /// True if the module handles one item at a time although it could handle more.
    #[doc(hidden)]
    const IS_SERIAL: bool;

    /// True if the output leaves in the order of the input.
    #[doc(hidden)]
    const IS_ORDERED: bool;

    /// True if the parameters `flows` and `idle` bound the open flows of the output ports.
    #[doc(hidden)]
    const BOUNDS_FLOWS: bool;

    /// Makes the item that asks for `tick`, if the module has one; the others ask for `wake` and
    /// `end`.
    #[doc(hidden)]
    const TICK: Option<fn() -> Self::Item>;
    #[doc(hidden)]
    const WAKE: Option<fn(u64) -> Self::Item>;
    #[doc(hidden)]
    const END: Option<fn() -> Self::Item>;

    /// The parameters.
    #[doc(hidden)]
    const PARAMS: &'static [ParamSpec];

    /// Makes the instance.
    ///
    /// # Errors
    /// Returns the reason if an argument is missing or wrong, or if the instance cannot be made.
    #[doc(hidden)]
    fn make(args: &Args) -> Result<Self, String>;

    /// Returns the signature.
    #[doc(hidden)]
    fn describe() -> Describe;

    /// Returns the output ports, without edges.
    #[doc(hidden)]
    fn outs() -> Self::Outs;

    /// Adds the input ports.
    #[doc(hidden)]
    fn ports(entry: &mut Entry<Self::Item>);

    /// Sends an item that ended without being handled to its port. Returns the item if it asks for
    /// `wake`.
    #[doc(hidden)]
    fn dropped(item: Self::Item, flow: &Flow, why: Reason, outs: &Self::Outs)
    -> Option<Self::Item>;

    /// Gives the instance's stage its handler.
    ///
    /// # Errors
    /// Returns an error if the instance or an edge cannot be made.
    #[doc(hidden)]
    fn install(node: Node<Self>) -> Result<Installed, BuildError>;
}

/// A module that handles any number of items at a time.
///
/// This trait and the next two have two methods: `call_now` of a module whose methods are all plain
/// functions, and `call` of other modules. The expansion implements one of them.
pub trait Element: Module + Sync {
    /// Handles an item. Returns false if it failed.
    fn call(
        &self,
        _item: Self::Item,
        _flow: &Flow,
        _outs: &Self::Outs,
    ) -> impl Future<Output = bool> + Send {
        async { unreachable!("a plain module") }
    }

    /// Handles an item. Items without room are put into `held`.
    fn call_now<'a>(
        &self,
        _item: Self::Item,
        _flow: &Flow,
        _outs: &'a Self::Outs,
        _held: &Held<'a>,
    ) -> bool {
        unreachable!("an async module")
    }
}

/// A module that handles one item at a time.
pub trait Serial: Module {
    /// Handles an item. Returns false if it failed.
    fn call(
        &mut self,
        _item: Self::Item,
        _flow: &Flow,
        _outs: &Self::Outs,
    ) -> impl Future<Output = bool> + Send {
        async { unreachable!("a plain module") }
    }

    /// Handles an item. Items without room are put into `held`.
    fn call_now<'a>(
        &mut self,
        _item: Self::Item,
        _flow: &Flow,
        _outs: &'a Self::Outs,
        _held: &Held<'a>,
    ) -> bool {
        unreachable!("an async module")
    }
}

/// A module that handles one item of each flow at a time, with its state for the flow.
pub trait PerFlow: Module + Sync {
    /// The state.
    type State: Send + 'static;

    /// Handles an item. Returns false if it failed.
    fn call(
        &self,
        _state: &mut Option<Self::State>,
        _item: Self::Item,
        _flow: &Flow,
        _wake: &Wake,
        _outs: &Self::Outs,
    ) -> impl Future<Output = bool> + Send {
        async { unreachable!("a plain module") }
    }

    /// Handles an item. Items without room are put into `held`.
    fn call_now<'a>(
        &self,
        _state: &mut Option<Self::State>,
        _item: Self::Item,
        _flow: &Flow,
        _wake: &Wake,
        _outs: &'a Self::Outs,
        _held: &Held<'a>,
    ) -> bool {
        unreachable!("an async module")
    }
}

/// A module that has no input.
pub trait Source: Module + Sync {
    /// Produces items until there are no more. Returns the reason if the source failed.
    fn start(
        &self,
        flow: &Flow,
        outs: &Self::Outs,
    ) -> impl Future<Output = Result<(), String>> + Send;
}

/// The items of several input ports: one of the first, or one of the others.
pub enum Ports<A, B> {
    /// An item of the first port.
    This(A),
    /// An item of another port.
    Other(B),
}

/// The items of no input port.
pub enum Never {}

/// The item that asks for `tick`.
pub struct Tick;

/// The item that asks for `wake`, with the number of its alarm.
pub struct Woken(pub u64);

/// The item that asks for `end`.
pub struct Ended;

/// A module with the input port of this number, which is a hash of the port's name. `At` names the
/// edge in messages.
#[diagnostic::on_unimplemented(message = "the module `{Self}` has no input port `{At}`")]
pub trait HasInput<const PORT: u64, At> {
    /// The type of the items.
    type Item;
}

/// A module with the parameter of this number, which is the parameter's place, or a hash of its
/// name. `At` names the argument in messages.
#[diagnostic::on_unimplemented(message = "the module `{Self}` has no parameter `{At}`")]
pub trait HasParam<const PARAM: u64, At> {
    /// The type of the argument.
    type Value;
}

/// A module with the output port of this number, which is a hash of the port's name. `At` names the
/// edge in messages.
#[diagnostic::on_unimplemented(message = "the module `{Self}` has no output port `{At}`")]
pub trait HasOutput<const PORT: u64, At> {
    /// The type of the items.
    type Item;
}
