//! The traits that `#[module]` implements.

use std::future::Future;
use std::pin::Pin;

use tussah_weave::Body;

use super::args::Args;
use super::call::Called;
use super::compiled::ParamSpec;
use super::compiled::ports::{InputSpec, OutputSpec};
use super::describe::Describe;
use super::dropped::Unhandled;
use super::edge::Entry;
use super::flows::{Flow, Parcel};
use super::install::{Installed, Node};
use super::outbox::Held;
use super::outlet::Outs;
use super::swap::Swap;
use super::wake::Wake;
use super::way::Way;
use crate::stage::{Batch, BuildError, Reason};

/// The behavior of an instance in a graph. [`#[module]`](super::module) implements this trait.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a module",
    label = "not a module",
    note = "`#[module]` on the `impl` block with its methods makes a struct a module"
)]
pub trait Module: Sized + Send + 'static {
    /// The type of an item that arrives at any input port.
    #[doc(hidden)]
    type Item: Send + 'static;

    /// The type that contains all output ports.
    #[doc(hidden)]
    type Outs: Outs;

    /// The type of an instance in a fused chain.
    #[doc(hidden)]
    type Call: Called<Self>;

    /// The name of the module's type.
    #[doc(hidden)]
    const NAME: &'static str;

    /// The kind of code in the module's methods: plain, async or blocking.
    #[doc(hidden)]
    const BODY: Body;

    /// True if a method takes a batch.
    #[doc(hidden)]
    const TAKES_MANY: bool;

    /// True if all methods are plain functions that take one item.
    #[doc(hidden)]
    const IS_PLAIN: bool;

    /// True if the module keeps state for each flow.
    #[doc(hidden)]
    const HAS_STATE: bool;

    /// True if the module handles one item at a time, although its signature would allow more.
    #[doc(hidden)]
    const IS_SERIAL: bool;

    /// True if the instance handles one item at a time.
    #[doc(hidden)]
    const IS_ALONE: bool;

    /// True if the module sends its output in the order of its input.
    #[doc(hidden)]
    const IS_ORDERED: bool;

    /// True if the module has the parameters `flows` and `idle`, which limit the open flows of each
    /// output port.
    #[doc(hidden)]
    const BOUNDS_FLOWS: bool;

    /// A function that creates an item for a call to `tick`; `None` if the module has no such
    /// method. `WAKE` and `END` are the corresponding functions for `wake` and `end`.
    #[doc(hidden)]
    const TICK: Option<fn() -> Self::Item>;
    #[doc(hidden)]
    const WAKE: Option<fn(u64) -> Self::Item>;
    #[doc(hidden)]
    const END: Option<fn() -> Self::Item>;

    /// The method `start`, if the module has it.
    #[doc(hidden)]
    const START: Option<Begin<Self>>;

    /// The names of the parameters.
    #[doc(hidden)]
    const PARAMS: &'static [ParamSpec];

    /// The input ports.
    #[doc(hidden)]
    const INPUTS: &'static [InputSpec];

    /// The output ports.
    #[doc(hidden)]
    const OUTPUTS: &'static [OutputSpec];

    /// Creates the instance.
    ///
    /// # Errors
    /// Returns the reason if an argument is missing or invalid, or if the instance cannot be
    /// created.
    #[doc(hidden)]
    fn make(args: &Args) -> Result<Self, String>;

    /// Returns the signature of the module.
    #[doc(hidden)]
    fn describe() -> Describe;

    /// Creates the output ports, without edges.
    #[doc(hidden)]
    fn outs() -> Self::Outs;

    /// Adds the input ports.
    #[doc(hidden)]
    fn ports(entry: &mut Entry<Self::Item>);

    /// Returns the number of an item's port, if the method of that port takes a batch.
    #[doc(hidden)]
    fn port(_item: &Self::Item) -> Option<usize> {
        None
    }

    /// Sends an unhandled item to the `dropped` port that belongs to the item's input port. If the
    /// item stands for a call to `wake`, returns the item instead.
    #[doc(hidden)]
    fn dropped(
        item: Self::Item,
        flow: &Flow,
        why: Reason,
        outs: &Self::Outs,
    ) -> Unhandled<Self::Item>;

    /// Installs the handler of the instance's stage.
    ///
    /// # Errors
    /// Returns an error if the instance or an edge cannot be created.
    #[doc(hidden)]
    fn install<W: Way>(node: Node<Self, W>) -> Result<Installed, BuildError>;

    /// Replaces the current module of an instance with this module. The default implementation is
    /// for modules that cannot be swapped.
    ///
    /// # Errors
    /// Returns an error if the module cannot be created, or if the instance is closed.
    #[doc(hidden)]
    fn swap(_swap: Swap<Self>) -> impl Future<Output = Result<(), BuildError>> + Send {
        async { unreachable!("the module was checked") }
    }
}

/// A module that handles any number of items concurrently.
///
/// Like [`Serial`] and [`PerFlow`], this trait has three methods. `#[module]` implements `call_now`
/// if all of the module's methods are plain functions, and `call` otherwise. If a method takes
/// batches, `#[module]` also implements `call_many`, which calls one method with the items at the
/// head of a batch.
pub trait Element: Module + Sync {
    /// Handles an item. Returns false if the method failed.
    fn call(
        &self,
        _item: Self::Item,
        _flow: &Flow,
        _outs: &Self::Outs,
    ) -> impl Future<Output = bool> + Send {
        async { unreachable!("a plain module") }
    }

    /// Handles the items at the head of a batch.
    fn call_many(
        &self,
        _events: &mut Batch<Parcel<Self::Item>>,
        _outs: &Self::Outs,
    ) -> impl Future<Output = ()> + Send {
        async { unreachable!("a module of single items") }
    }

    /// Handles an item. If a receiver cannot accept an item that the method sends, that item goes
    /// into `held`. Returns false if the method failed.
    fn call_now<'a, W: Way>(
        &self,
        _item: Self::Item,
        _flow: &Flow,
        _outs: &'a Self::Outs,
        _sends: (&Held<'a>, Option<&mut W::Open<'a>>),
    ) -> bool {
        unreachable!("an async module")
    }
}

/// A module that handles one item at a time.
pub trait Serial: Module {
    /// Handles an item. Returns false if the method failed.
    fn call(
        &mut self,
        _item: Self::Item,
        _flow: &Flow,
        _outs: &Self::Outs,
    ) -> impl Future<Output = bool> + Send {
        async { unreachable!("a plain module") }
    }

    /// Handles the items at the head of a batch.
    fn call_many(
        &mut self,
        _events: &mut Batch<Parcel<Self::Item>>,
        _outs: &Self::Outs,
    ) -> impl Future<Output = ()> + Send {
        async { unreachable!("a module of single items") }
    }

    /// Handles an item. If a receiver cannot accept an item that the method sends, that item goes
    /// into `held`. Returns false if the method failed.
    fn call_now<'a, W: Way>(
        &mut self,
        _item: Self::Item,
        _flow: &Flow,
        _outs: &'a Self::Outs,
        _sends: (&Held<'a>, Option<&mut W::Open<'a>>),
    ) -> bool {
        unreachable!("an async module")
    }
}

/// A module that keeps state for each flow, and handles one item of each flow at a time.
pub trait PerFlow: Module + Sync {
    /// The type of the state.
    type State: Send + 'static;

    /// Handles an item. Returns false if the method failed.
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

    /// Handles the items at the head of a batch, all of which belong to this flow.
    fn call_many(
        &self,
        _state: &mut Option<Self::State>,
        _events: &mut Batch<Parcel<Self::Item>>,
        _flow: &Flow,
        _wake: &Wake,
        _outs: &Self::Outs,
    ) -> impl Future<Output = ()> + Send {
        async { unreachable!("a module of single items") }
    }

    /// Handles an item. If a receiver cannot accept an item that the method sends, that item goes
    /// into `held`. Returns false if the method failed.
    fn call_now<'a, W: Way>(
        &self,
        _state: &mut Option<Self::State>,
        _item: Self::Item,
        _flow: &Flow,
        _wake: &Wake,
        _outs: &'a Self::Outs,
        _sends: (&Held<'a>, Option<&mut W::Open<'a>>),
    ) -> bool {
        unreachable!("an async module")
    }
}

/// A function that calls `start`.
pub type Begin<M> = for<'a> fn(
    &'a M,
    &'a Flow,
    &'a <M as Module>::Outs,
) -> Pin<Box<dyn Future<Output = Result<(), String>> + Send + 'a>>;

/// A module with the method `start`.
pub trait Source: Module + Sync {
    /// Produces items until the method ends. Returns the reason if the method failed.
    fn start(
        &self,
        flow: &Flow,
        outs: &Self::Outs,
    ) -> impl Future<Output = Result<(), String>> + Send;
}

/// An item of a module with several input ports.
pub enum Ports<A, B> {
    /// An item that arrived at the first port.
    This(A),
    /// An item that arrived at another port.
    Other(B),
}

/// The item type of a module without input ports.
pub enum Never {}

/// An item that stands for a call to `tick`.
pub struct Tick;

/// An item that stands for a call to `wake`, with the number of the alarm.
pub struct Woken(pub u64);

/// An item that stands for a call to `end`.
pub struct Ended;

/// A module with an input port whose name has the hash `PORT`.
pub trait HasInput<const PORT: u64> {
    /// The type of the port's items.
    type Item;
}

/// A module with the parameter that `PARAM` identifies by its position or by a hash of its name.
pub trait HasParam<const PARAM: u64> {
    /// The type of the argument.
    type Value;
}

/// A module with an output port whose name has the hash `PORT`.
pub trait HasOutput<const PORT: u64> {
    /// The type of the port's items.
    type Item;

    /// False if a generic module cannot clone the items, because a type parameter lacks the bound
    /// `Clone`. In all other modules, an item can be cloned if its type is `Clone`.
    #[doc(hidden)]
    const CLONES: bool = true;
}
