//! Events: the units of work that colors and workers queue.
//!
//! Everything that runs begins with a [`Node`]: a link for whichever intrusive list holds it, and a table of
//! functions. A posted closure is a node with the closure behind it, a thread is a node with its future behind it,
//! and a color that has events is itself a node in a worker's run queue. So there is one kind of item to queue,
//! steal and run, and no allocation beyond the one that holds the event.

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
use crate::worker::Worker;

/// The head of everything that can be queued.
#[repr(C)]
pub(crate) struct Node {
    /// The next node of the list that holds this one; owned by that list.
    link: AtomicPtr<Node>,
    /// A pointer, not a reference: a thread's table is larger than this part of it.
    table: NonNull<VTable>,
}

/// What an event did with the color that it ran in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum After {
    /// The color goes on with its next event.
    Continue,
    /// The event took the color with it; somebody else will resume it.
    Parked,
}

/// Why an event is dropped without having run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum DropReason {
    /// Its deadline had passed when its turn came.
    Expired,
    /// The runtime was shut down first.
    ShutDown,
}

/// The functions of one kind of event.
pub(crate) struct VTable {
    /// Runs the event and consumes the node. Called by a worker that owns what the node was queued in. May unwind in a
    /// color, not out of a run queue.
    pub(crate) run: unsafe fn(NonNull<Node>, &Worker) -> After,
    /// Consumes the node without running it, on any OS thread, by the owner of what it was queued in.
    pub(crate) drop: unsafe fn(NonNull<Node>, DropReason) -> After,
    /// The type of the closure or future: names the function that the event came from.
    pub(crate) name: fn() -> &'static str,
    /// How many bytes into the node it says where the event was posted or spawned; `None` if it does not.
    pub(crate) location_at: Option<NonZeroUsize>,
    /// How it leaves its queue early; `None` if it does not.
    pub(crate) cancel: Option<Cancel>,
}

/// How events that can be cancelled leave the queue of their color before their turn.
pub(crate) struct Cancel {
    /// Whether the event was cancelled, and stays so. Called by whoever may walk along the queue.
    pub(crate) is_cancelled: unsafe fn(NonNull<Node>) -> bool,
    /// Consumes the node of a cancelled event that was taken out of its queue; calls nothing of the user's.
    pub(crate) leave: unsafe fn(NonNull<Node>),
}

impl Node {
    pub(crate) fn new(table: &'static VTable) -> Self {
        Self::with_table(NonNull::from(table))
    }

    /// A node whose table is the beginning of a larger one.
    ///
    /// # Safety
    /// `table` comes from a reference to a static.
    pub(crate) unsafe fn of_larger(table: NonNull<VTable>) -> Self {
        Self::with_table(table)
    }

    fn with_table(table: NonNull<VTable>) -> Self {
        Self {
            link: AtomicPtr::new(std::ptr::null_mut()),
            table,
        }
    }

    /// The functions of this kind of event.
    #[inline]
    pub(crate) fn vtable(&self) -> &'static VTable {
        // SAFETY: both constructors take pointers to statics.
        unsafe { self.table.as_ref() }
    }

    /// The same as a pointer to whatever it is the beginning of.
    #[inline]
    pub(crate) fn table(&self) -> NonNull<VTable> {
        self.table
    }

    /// The link word, for the color's inbox, which links nodes by hand.
    pub(crate) fn link(&self) -> &AtomicPtr<Node> {
        &self.link
    }
}

// SAFETY: `link` always names the same word of the node, and only the list that holds the node uses it.
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
/// The caller owns the node through the queue that it was taken from.
#[inline]
pub(crate) unsafe fn run(node: NonNull<Node>, worker: &Worker) -> After {
    // SAFETY: a queued node is alive and the caller owns it.
    unsafe {
        let vtable = node.as_ref().vtable();
        worker.begin_event(vtable, location(node, vtable));
        (vtable.run)(node, worker)
    }
}

/// Runs what came out of a run queue: a color's turn, or a thread that is its own color; says whether it was a color.
///
/// # Safety
/// As for [`run`].
#[inline]
pub(crate) unsafe fn run_turn(node: NonNull<Node>, worker: &Worker) -> bool {
    // SAFETY: passed on from the caller.
    unsafe {
        if std::ptr::eq(node.as_ref().vtable(), &TURN) {
            (TURN.run)(node, worker);
            return true;
        }
        run(node, worker);
        false
    }
}

/// Where the event was posted or spawned, if it says so.
///
/// # Safety
/// The node is alive, and this is its table.
#[inline]
unsafe fn location(node: NonNull<Node>, vtable: &VTable) -> Option<&'static Location<'static>> {
    let at = vtable.location_at?;
    // SAFETY: a table with an offset is one of a node that has its location there, and never changes it.
    Some(unsafe {
        node.byte_add(at.get())
            .cast::<&'static Location<'static>>()
            .read()
    })
}

/// Drops a node unrun.
///
/// # Safety
/// The caller owns the node through the queue that it was taken from.
pub(crate) unsafe fn drop_unrun(node: NonNull<Node>, reason: DropReason) -> After {
    // SAFETY: a queued node is alive and the caller owns it.
    unsafe { (node.as_ref().vtable().drop)(node, reason) }
}

/// What a posted event runs.
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

/// The memory of an event of type `E`: given back when this is dropped, unwinding included.
pub(crate) struct Allocation<E>(pub(crate) NonNull<E>);

impl<E> Drop for Allocation<E> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: whoever made this value owns the memory, which came from `Shared::alloc` for an `E`.
        unsafe { Shared::free(Kind::Event, self.0.cast(), Layout::new::<E>()) }
    }
}

/// The same on the worker that runs the event, and so is one of the event's runtime.
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

    /// Makes the event in memory that is its own.
    ///
    /// # Safety
    /// `memory` came from an allocation for a `Posted<B>` of the runtime that will run the event.
    #[inline]
    pub(crate) unsafe fn write(
        memory: NonNull<Self>,
        location: &'static Location<'static>,
        body: B,
    ) -> NonNull<Node> {
        // SAFETY: the memory is ours and not yet initialised.
        unsafe {
            memory.write(Self {
                node: Node::new(&Self::VTABLE),
                location,
                body: ManuallyDrop::new(body),
            });
        }
        memory.cast()
    }

    /// Unwinds if the body does: the color's turn catches it.
    unsafe fn run(node: NonNull<Node>, worker: &Worker) -> After {
        let this = node.cast::<Self>();
        let _free = HereAllocation(this, worker);
        // SAFETY: the color that runs here has its token, which keeps it alive.
        unsafe { worker.color().as_ref() }.count_taken();
        // SAFETY: the caller owns the node, and `run` consumes it, so the body is read exactly once.
        let body = unsafe { ManuallyDrop::take(&mut (*this.as_ptr()).body) };
        body.call(worker);
        After::Continue
    }

    unsafe fn drop(node: NonNull<Node>, _reason: DropReason) -> After {
        let this = node.cast::<Self>();
        let _free = Allocation(this);
        // A panic in a user's destructor must not stop the shutdown of the others.
        quietly(|| {
            // SAFETY: as in `run`: the node is consumed here, once.
            unsafe { ManuallyDrop::drop(&mut (*this.as_ptr()).body) }
        });
        After::Continue
    }
}
