//! Events: the units of work that colors and workers queue.
//!
//! Everything that runs begins with a [`Node`]: a link for whichever intrusive list holds it, and a table of
//! functions. A posted closure is a node with the closure behind it, a thread is a node with its future behind it,
//! and a color that has events is itself a node in a worker's run queue. So there is one kind of item to queue,
//! steal and run, and no allocation beyond the one that holds the event.

use std::alloc::Layout;
use std::mem::ManuallyDrop;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::ptr::NonNull;

use crate::color::turn::TURN;
use crate::loom::atomic::AtomicPtr;
use crate::queue::Link;
use crate::runtime::Shared;
use crate::slab::Kind;
use crate::worker::Worker;

/// The head of everything that can be queued.
#[repr(C)]
pub(crate) struct Node {
    /// The next node of the list that holds this one; owned by that list.
    link: AtomicPtr<Node>,
    pub(crate) vtable: &'static VTable,
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
    /// Runs the event and consumes the node. Called by a worker that owns what the node was queued in.
    pub(crate) run: unsafe fn(NonNull<Node>, &Worker) -> After,
    /// Consumes the node without running it, on any OS thread, by the owner of what it was queued in.
    pub(crate) drop: unsafe fn(NonNull<Node>, DropReason) -> After,
    /// The type of the closure or future: names the function that the event came from.
    pub(crate) name: fn() -> &'static str,
    /// How many bytes into the node it says where the event was posted or spawned; `None` if it does not.
    pub(crate) location_at: Option<NonZeroUsize>,
}

impl Node {
    pub(crate) fn new(vtable: &'static VTable) -> Self {
        Self { link: AtomicPtr::new(std::ptr::null_mut()), vtable }
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
        let vtable = node.as_ref().vtable;
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
        if std::ptr::eq(node.as_ref().vtable, &TURN) {
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
    Some(unsafe { node.byte_add(at.get()).cast::<&'static Location<'static>>().read() })
}

/// Drops a node unrun.
///
/// # Safety
/// The caller owns the node through the queue that it was taken from.
pub(crate) unsafe fn drop_unrun(node: NonNull<Node>, reason: DropReason) -> After {
    // SAFETY: a queued node is alive and the caller owns it.
    unsafe { (node.as_ref().vtable.drop)(node, reason) }
}

/// A posted closure.
#[repr(C)]
struct Closure<F> {
    node: Node,
    location: &'static Location<'static>,
    body: ManuallyDrop<F>,
}

/// The allocation of an event: released when this is dropped, unwinding included.
pub(crate) struct Allocation {
    pub(crate) ptr: NonNull<u8>,
    pub(crate) layout: Layout,
}

impl Drop for Allocation {
    fn drop(&mut self) {
        // SAFETY: whoever made this value owns the allocation, which came from `Shared::alloc` with this layout.
        unsafe { Shared::free(Kind::Event, self.ptr, self.layout) }
    }
}

impl<F: FnOnce(&Worker) + Send + 'static> Closure<F> {
    const VTABLE: VTable = VTable {
        run: Self::run,
        drop: Self::drop,
        name: std::any::type_name::<F>,
        location_at: NonZeroUsize::new(std::mem::offset_of!(Self, location)),
    };

    unsafe fn run(node: NonNull<Node>, worker: &Worker) -> After {
        let this = node.cast::<Self>();
        let _free = Allocation { ptr: node.cast(), layout: Layout::new::<Self>() };
        // SAFETY: the caller owns the node, and `run` consumes it, so the closure is read exactly once.
        let body = unsafe { ManuallyDrop::take(&mut (*this.as_ptr()).body) };
        // SAFETY: the color that runs here has its token, which keeps it alive.
        unsafe { worker.color().as_ref() }.count_taken();
        if catch_unwind(AssertUnwindSafe(|| body(worker))).is_err() {
            worker.count_panic();
        }
        After::Continue
    }

    unsafe fn drop(node: NonNull<Node>, _reason: DropReason) -> After {
        let this = node.cast::<Self>();
        let _free = Allocation { ptr: node.cast(), layout: Layout::new::<Self>() };
        // A panic in a user's destructor must not stop the shutdown of the others.
        let _ = catch_unwind(AssertUnwindSafe(|| {
            // SAFETY: as in `run`: the node is consumed here, once.
            unsafe { ManuallyDrop::drop(&mut (*this.as_ptr()).body) }
        }));
        After::Continue
    }
}

/// Makes an event of a closure that is told which worker runs it.
pub(crate) fn closure<F>(
    shared: &Shared,
    location: &'static Location<'static>,
    body: F,
) -> NonNull<Node>
where
    F: FnOnce(&Worker) + Send + 'static,
{
    let ptr = shared.alloc(Kind::Event, Layout::new::<Closure<F>>()).cast::<Closure<F>>();
    // SAFETY: the memory is ours, large and aligned enough, and not yet initialised.
    unsafe {
        ptr.write(Closure {
            node: Node::new(&Closure::<F>::VTABLE),
            location,
            body: ManuallyDrop::new(body),
        });
    }
    ptr.cast()
}
