//! Swapping the module of an instance while the graph runs.

use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use parking_lot::Mutex;
use tussah_weave::{Body, Parallelism, PortSignature, Signature};

use super::args::Args;
use super::error::GraphError;
use super::flows::Parcel;
use super::install::maker::make;
use super::install::{Elements, Flows, Serials, blocks};
use super::keepers::Keepers;
use super::kept::Kept;
use super::module::{Element, Module, PerFlow, Serial};
use super::running::Running;
use super::way::Along;
use crate::stage::{BuildError, Edges, Sender, Stage};
use crate::sync::Limit;

impl Running {
    /// Replaces the module of an instance while the graph runs. No item is lost: the queued items
    /// go to the new module, and the items of each sender keep their order.
    ///
    /// The new module must have the same input and output ports in the same order, the same
    /// parallelism, and the same optional methods (`tick`, `wake` and `end`). The new module can be
    /// the same module with other arguments. The instance keeps its edges and the flows that it has
    /// opened. The arguments `every`, `flows` and `idle` keep their values.
    ///
    /// If the two modules keep state for each flow, and their states have the same type, each flow
    /// keeps its state and its alarm. If the types differ, each flow gets a new state when its next
    /// item arrives, and its earlier state is dropped without a call to `end`.
    ///
    /// This method first waits until all instances that call this instance directly, as in a fused
    /// chain, are idle. If the module is serial or keeps state for each flow, calls to the earlier
    /// module and to the new module must not overlap, so this method also waits for running calls
    /// to this instance. If the module is not serial and does not keep state for each flow, calls
    /// that have already started complete in the earlier module. After a swap, calls to this
    /// instance are no longer inlined, even in a fused chain. If other instances call this
    /// instance, its original module stays in memory until the graph ends.
    ///
    /// Do not call this method from a module of the graph: the module could wait for itself.
    ///
    /// # Errors
    /// Returns an error if the instance does not exist, has shards, or is closed. A single shard,
    /// such as `pages#0`, counts as an instance. Also returns an error if the modules do not match,
    /// if only one of them blocks its OS thread, if one of them has `start`, or if the new module
    /// cannot be created because its `init` fails or panics. After an error, the module has not
    /// been replaced.
    ///
    /// # Cancellation
    /// If the future is dropped before it completes, the module is not replaced.
    ///
    /// # Examples
    /// ```
    /// use tussah::flow::{Args, Graph, Out, module};
    /// use tussah::modules::Logger;
    ///
    /// /// Multiplies numbers.
    /// struct Scale(u64);
    ///
    /// #[module]
    /// impl Scale {
    ///     fn init(by: u64) -> Self {
    ///         Self(by)
    ///     }
    ///
    ///     fn run(&self, number: u64, out: &impl Out<u64>) {
    ///         out.send(number * self.0);
    ///     }
    /// }
    ///
    /// # let runtime = tussah::Runtime::builder().workers(1).build().expect("a runtime");
    /// # runtime.block_on(async {
    /// let mut graph = Graph::new("scaled");
    /// graph.add::<Scale>("scale", Args::new().with("by", 2_u64))?;
    /// graph.add::<Logger<u64>>("log", Args::new())?;
    /// graph.connect("scale", "log")?;
    /// let running = graph.start()?;
    /// running.swap::<Scale>("scale", Args::new().with("by", 3_u64)).await?;
    /// # running.drain().await;
    /// # Ok::<(), tussah::flow::GraphError>(())
    /// # }).expect("the graph can be made");
    /// ```
    pub async fn swap<M: Module>(&self, instance: &str, args: Args) -> Result<(), GraphError> {
        let place = self.single(instance)?;
        let refused = |why| GraphError::Swap {
            instance: instance.to_owned(),
            module: M::NAME,
            why,
        };
        args.check(M::PARAMS).map_err(&refused)?;
        let ports = self.outputs[place].as_ref();
        let ports = ports.ok_or_else(|| self.no_instance(instance))?;
        let (present, new) = (ports.signature(), M::describe().signature);
        check(&present, &new).map_err(&refused)?;
        let mut unconnected = None;
        ports.each(&mut |name, outlet| {
            let required = new.output(name).is_some_and(|port| port.required);
            if required && outlet.edges() == 0 {
                unconnected = Some(format!("{instance}.{name}"));
            }
        });
        if let Some(from) = unconnected {
            return Err(GraphError::Unconnected { from });
        }
        let closed = || BuildError::Closed {
            stage: instance.to_owned(),
        };
        let rest = ports.rest().ok_or_else(closed)?;
        let Ok(rest) = rest.downcast::<Rest<M::Item, M::Outs>>() else {
            return Err(refused(not_alike(&present, &new)));
        };
        if rest.starts || M::START.is_some() {
            let why = "a module with `start` is not swapped: `start` would go on";
            return Err(refused(why.to_owned()));
        }
        let stage = self.network.find::<Parcel<M::Item>>(instance)?;
        let _held = self.network.hold_callers(instance).await;
        let swap = Swap {
            args: args.of(instance),
            stage: stage.clone(),
            rest: *rest,
        };
        M::swap(swap).await?;
        if M::BODY != Body::Plain && !M::TAKES_MANY {
            // As for a first module: items of one batch would wait for each other.
            stage.shared.make_batches_single();
        }
        Ok(())
    }
}

/// Checks what the types do not tell.
///
/// # Errors
/// Returns the reason if a module with the second signature cannot replace one with the first.
fn check(present: &Signature, new: &Signature) -> Result<(), String> {
    let names = |ports: &[PortSignature]| -> Vec<_> {
        let names = ports.iter().map(|port| port.name.clone());
        names.collect()
    };
    let all = |of: &Signature| (names(&of.inputs), names(&of.outputs));
    match () {
        () if present.inputs.is_empty() => Err("a source keeps its module".to_owned()),
        () if all(present) != all(new) => Err(not_alike(present, new)),
        () if (present.body == Body::Blocking) != (new.body == Body::Blocking) => {
            Err("only one of the two blocks its OS thread".to_owned())
        }
        () if present.parallelism != new.parallelism => Err(format!(
            "it handles {}, but the present module {}",
            at_a_time(new.parallelism),
            at_a_time(present.parallelism)
        )),
        () => Ok(()),
    }
}

fn at_a_time(parallelism: Parallelism) -> &'static str {
    match parallelism {
        Parallelism::Element => "any number of items",
        Parallelism::Ordered => "any number of items in order",
        Parallelism::Flow => "one item of each flow at a time",
        Parallelism::Serial => "one item at a time",
    }
}

/// Returns the reason why the ports of two modules differ.
fn not_alike(present: &Signature, new: &Signature) -> String {
    let list = |ports: &[PortSignature]| {
        let ports = ports.iter();
        let ports: Vec<_> = ports
            .map(|port| format!("{}: {}", port.name, port.item))
            .collect();
        match ports.is_empty() {
            true => "nothing".to_owned(),
            false => ports.join(", "),
        }
    };
    let all = |of: &Signature| format!("`{} -> {}`", list(&of.inputs), list(&of.outputs));
    let (present, new) = (all(present), all(new));
    if present == new {
        return "expected the same ones of the methods `tick`, `wake` and `end`, in the same order, and as many that may fail".to_owned();
    }
    format!("expected the ports {present}, but they are {new}")
}

/// The parts of an instance that are kept when its module is replaced.
pub struct Rest<I, O> {
    /// True if the module has the method `start`.
    pub(crate) starts: bool,
    pub(crate) outs: Arc<O>,
    pub(crate) keepers: Arc<Keepers>,
    pub(crate) slot: usize,
    pub(crate) limit: Option<Limit>,
    pub(crate) common: Arc<Mutex<Kept>>,
    pub(crate) alarms: Arc<AtomicU64>,
    pub(crate) sender: Option<Arc<Sender<Parcel<I>>>>,
}

/// A swap to the module `M`.
pub struct Swap<M: Module> {
    args: Args,
    stage: Stage<Parcel<M::Item>>,
    rest: Rest<M::Item, M::Outs>,
}

/// Makes the new module. The instance keeps its edges.
fn remake<M: Module>(args: &Args, edges: &Edges<'_>) -> Result<M, BuildError> {
    edges.inherit();
    make(args, edges)
}

impl<M: Module> Swap<M> {
    /// Swaps to a module that handles any number of items at a time.
    ///
    /// # Errors
    /// Returns an error if the module cannot be created, or if the instance is closed.
    pub async fn element(self) -> Result<(), BuildError>
    where
        M: Element,
    {
        let Self { args, stage, rest } = self;
        let made = stage.swap(|edges| {
            Ok(Elements::<M, Along> {
                module: remake(&args, edges)?,
                outs: rest.outs,
                keepers: rest.keepers,
                turn: async_lock::Mutex::new(()),
                way: PhantomData,
            })
        });
        made.await.map(drop)
    }

    /// Swaps to a module that blocks its OS thread.
    ///
    /// # Errors
    /// Returns an error if the module cannot be created, or if the instance is closed.
    pub async fn blocking(self) -> Result<(), BuildError>
    where
        M: Element,
    {
        let Self { args, stage, rest } = self;
        let runtime = stage.network.handle().clone();
        let made = stage.swap_blocking(|edges| {
            let module = remake::<M>(&args, edges)?;
            Ok(blocks(module, rest.outs, rest.keepers, runtime))
        });
        made.await
    }

    /// Swaps to a module that handles one item at a time.
    ///
    /// # Errors
    /// Returns an error if the module cannot be created, or if the instance is closed.
    pub async fn serial(self) -> Result<(), BuildError>
    where
        M: Serial,
    {
        let Self { args, stage, rest } = self;
        let made = stage.swap_serial(move |edges| {
            Ok(Serials::<M, Along> {
                module: remake(&args, edges)?,
                outs: Arc::clone(&rest.outs),
                keepers: Arc::clone(&rest.keepers),
                way: PhantomData,
            })
        });
        made.await.map(drop)
    }

    /// Swaps to a module that keeps state for each flow.
    ///
    /// # Errors
    /// Returns an error if the module cannot be created, or if the instance is closed.
    pub async fn per_flow(self) -> Result<(), BuildError>
    where
        M: PerFlow,
    {
        let Self { args, stage, rest } = self;
        let runtime = stage.network.handle().clone();
        let made = stage.swap(|edges| {
            Ok(Flows::<M, Along> {
                module: remake(&args, edges)?,
                outs: rest.outs,
                slot: rest.slot,
                common: rest.common,
                runtime,
                keepers: rest.keepers,
                limit: rest.limit,
                sender: rest.sender.ok_or_else(|| edges.failed("it is closed"))?,
                alarms: rest.alarms,
                way: PhantomData,
            })
        });
        made.await.map(drop)
    }
}
