//! Events: the units of work that colors and workers queue.
//!
//! Everything that runs begins with a [`Node`]: a link for the intrusive list that holds it, and a
//! table of functions. A posted closure is a node followed by the closure, and a thread is a node
//! followed by its future. A color that has events is itself a node in a worker's run queue. So
//! there is one kind of item to queue, steal and run, and the only allocation is the one that holds
//! the event.

use std::alloc::Layout;
use std::mem::ManuallyDrop;
use std::num::NonZeroUsize;
use std::panic::Location;
use std::ptr::NonNull;

use crate::color::turn::TURN;
use crate::loom::atomic::AtomicPtr;
use crate::queue::Link;
use crate::quietly::quietly;
use crate::runtime::Shared;
use crate::slab::Kind;
use crate::stats::Running;
use crate::worker::Worker;

/// The head of everything that can be queued.
#[repr(C)]
pub(crate) struct Node {
    /// The next node of the list that holds this one. Owned by that list.
    link: AtomicPtr<Node>,
    /// This is a pointer, not a reference: a thread's table is larger than this part of it.
    table: NonNull<VTable>,
}

/// The effect of an event on the color that it ran in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum After {
    /// The color continues with its next event.
    Continue,
    /// The event took the color with it, and other code will resume the color.
    Parked,
}

/// The reason why an event was dropped without running.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum DropReason {
    /// The event's deadline passed before the event ran.
    Expired,
    /// The runtime shut down before the event ran.
    ShutDown,
}

/// The functions of one kind of event.
pub(crate) struct VTable {
    /// Runs the event and consumes the node. The caller is a worker that owns the queue of the
    /// node. May unwind in a color, but not out of a run queue.
    pub(crate) run: unsafe fn(NonNull<Node>, &Worker) -> After,
    /// Consumes the node without running it, on any OS thread. The caller owns the queue of the
    /// node.
    pub(crate) drop: unsafe fn(NonNull<Node>, DropReason) -> After,
    /// Returns the type of the closure or future, which names the function that the event came
    /// from.
    pub(crate) name: fn() -> &'static str,
    /// The offset in the node of the location that posted or spawned it, in bytes; `None` if it has
    /// none.
    pub(crate) location_at: Option<NonZeroUsize>,
    /// The way in which the event leaves its queue early; `None` if it cannot.
    pub(crate) cancel: Option<Cancel>,
}

/// The functions by which cancelled events leave the queue of their color before their turn.
pub(crate) struct Cancel {
    /// Returns whether the event was cancelled, which is final. Called by any code that may walk
    /// along the queue.
    pub(crate) is_cancelled: unsafe fn(NonNull<Node>) -> bool,
    /// Consumes the node of a cancelled event that was taken out of its queue. Calls no code of the
    /// user.
    pub(crate) leave: unsafe fn(NonNull<Node>),
}

impl Node {
    pub(crate) fn new(table: &'static VTable) -> Self {
        Self::with_table(NonNull::from(table))
    }

    /// Creates a node whose table is the beginning of a larger one.
    ///
    /// # Safety
    /// `table` must come from a reference to a static.
    pub(crate) unsafe fn of_larger(table: NonNull<VTable>) -> Self {
        Self::with_table(table)
    }

    fn with_table(table: NonNull<VTable>) -> Self {
        Self {
            link: AtomicPtr::new(std::ptr::null_mut()),
            table,
        }
    }

    /// Returns the functions of this kind of event.
    #[inline]
    pub(crate) fn vtable(&self) -> &'static VTable {
        // SAFETY: both constructors take pointers to statics.
        unsafe { self.table.as_ref() }
    }

    /// Returns the table as a pointer to the larger table that it begins.
    #[inline]
    pub(crate) fn table(&self) -> NonNull<VTable> {
        self.table
    }

    /// Returns the link word, for the color's inbox, which links nodes directly.
    pub(crate) fn link(&self) -> &AtomicPtr<Node> {
        &self.link
    }
}

// SAFETY: `link` always names the same word of the node, and only the list that holds the node uses
// it.
unsafe impl Link for Node {
    #[inline]
    fn link(node: NonNull<Self>) -> NonNull<AtomicPtr<Self>> {
        // The link is the first field.
        node.cast()
    }
}

/// Runs a node.
///
/// # Safety
/// The caller must own the node through the queue that it was taken from.
#[inline]
pub(crate) unsafe fn run(node: NonNull<Node>, running: &Running, worker: &Worker) -> After {
    // SAFETY: a queued node is alive and the caller owns it.
    unsafe {
        let vtable = node.as_ref().vtable();
        running.set(vtable, location(node, vtable));
        (vtable.run)(node, worker)
    }
}

/// Runs a node from a run queue: a color's turn, or a thread with a color of its own. Returns
/// whether the node was a color.
///
/// # Safety
/// Same as for [`run`].
#[inline]
pub(crate) unsafe fn run_turn(node: NonNull<Node>, worker: &Worker) -> bool {
    // SAFETY: the caller's promise.
    unsafe {
        if std::ptr::eq(node.as_ref().vtable(), &TURN) {
            (TURN.run)(node, worker);
            return true;
        }
        run(node, &worker.remote.running, worker);
        false
    }
}

/// Returns the location that posted or spawned the event, if the node has it.
///
/// # Safety
/// The node must be alive, and this must be its table.
#[inline]
unsafe fn location(node: NonNull<Node>, vtable: &VTable) -> Option<&'static Location<'static>> {
    let at = vtable.location_at?;
    // SAFETY: a table with an offset belongs to a node that has its location there, and never
    // changes it.
    Some(unsafe {
        node.byte_add(at.get())
            .cast::<&'static Location<'static>>()
            .read()
    })
}

/// Drops a node without running it.
///
/// # Safety
/// The caller must own the node through the queue that it was taken from.
pub(crate) unsafe fn drop_unrun(node: NonNull<Node>, reason: DropReason) -> After {
    // SAFETY: a queued node is alive and the caller owns it.
    unsafe { (node.as_ref().vtable().drop)(node, reason) }
}

/// The content of a posted event.
pub(crate) trait Body: Send + 'static {
    fn call(self, worker: &Worker);
}

/// A posted closure.
#[repr(C)]
pub(crate) struct Posted<B> {
    node: Node,
    location: &'static Location<'static>,
    body: ManuallyDrop<B>,
}

/// The memory of an event of type `E`. Freed when this is dropped, even during unwinding.
pub(crate) struct Allocation<E>(pub(crate) NonNull<E>);

impl<E> Drop for Allocation<E> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the creator of this value owns the memory, which came from `Shared::alloc` for an
        // `E`.
        unsafe { Shared::free(Kind::Event, self.0.cast(), Layout::new::<E>()) }
    }
}

/// The memory of an event, freed on the worker that runs the event, which belongs to the event's
/// runtime.
struct HereAllocation<'a, E>(NonNull<E>, &'a Worker);

impl<E> Drop for HereAllocation<'_, E> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: as for `Allocation`.
        unsafe { self.1.free(Kind::Event, self.0.cast(), Layout::new::<E>()) }
    }
}

impl<B: Body> Posted<B> {
    const VTABLE: VTable = VTable {
        run: Self::run,
        drop: Self::drop,
        name: std::any::type_name::<B>,
        location_at: NonZeroUsize::new(std::mem::offset_of!(Self, location)),
        cancel: None,
    };

    /// Creates the event in its own memory.
    ///
    /// # Safety
    /// `memory` must have come from an allocation for a `Posted<B>` of the runtime that will run
    /// the event.
    #[inline]
    pub(crate) unsafe fn write(
        memory: NonNull<Self>,
        location: &'static Location<'static>,
        body: B,
    ) -> NonNull<Node> {
        // SAFETY: the caller owns the memory, which is not yet initialized.
        unsafe {
            memory.write(Self {
                node: Node::new(&Self::VTABLE),
                location,
                body: ManuallyDrop::new(body),
            });
        }
        memory.cast()
    }

    /// Unwinds if the body does. The color's turn catches the panic.
    unsafe fn run(node: NonNull<Node>, worker: &Worker) -> After {
        let this = node.cast::<Self>();
        let _free = HereAllocation(this, worker);
        // SAFETY: the color that runs here has its token, which keeps it alive.
        unsafe { worker.color().as_ref() }.count_taken();
        // SAFETY: the caller owns the node, and `run` consumes it, so the body is read exactly
        // once.
        let body = unsafe { ManuallyDrop::take(&mut (*this.as_ptr()).body) };
        body.call(worker);
        After::Continue
    }

    unsafe fn drop(node: NonNull<Node>, _reason: DropReason) -> After {
        let this = node.cast::<Self>();
        let _free = Allocation(this);
        // A panic in a user's destructor must not stop the shutdown of other events.
        quietly(|| {
            // SAFETY: as in `run`, the node is consumed here, once.
            unsafe { ManuallyDrop::drop(&mut (*this.as_ptr()).body) }
        });
        After::Continue
    }
}
