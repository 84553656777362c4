//! A request that waits for several colors.
//!
//! The fast path enters all colors by compare-and-swap, or none. The slow path takes one
//! process-wide lock and pushes a *ticket* into the queue of each color. A ticket that reaches the
//! head of its queue keeps the color. The last ticket to do so runs the closure and releases the
//! colors.
//!
//! All such requests are pushed under the same lock, so they have the same order in every queue
//! that they share. Of two requests, the request that is behind in one queue is ahead in none, so
//! the relation "waits for" has no cycle. A ticket never passes an event that was queued before it,
//! so order is exact.
//!
//! Each ticket comes out of its queue once. It either *arrives* at the head and keeps its color, or
//! *leaves* early because the request was cancelled. The last ticket to come out releases the
//! colors that the other tickets have kept. A cancellation releases them earlier, and later tickets
//! keep no color. Read-modify-writes of one word make all of these decisions, so each token is
//! released once.

use std::alloc::Layout;
use std::ptr::NonNull;

use super::in_span::InSpan;
use super::reply::Reply;
use crate::color::cell::ColorCell;
use crate::event::{After, Allocation, Cancel, DropReason, Node, VTable};
use crate::loom::atomic::{AtomicU16, Ordering};
use crate::loom::lock;
use crate::runtime::Shared;
use crate::slab::Kind;
use crate::tiny_waker::TinyWaker;
use crate::worker::Worker;

/// Bound, in colors: the most that one request can name. The interface accepts no more.
pub(super) const COLORS_MAX: usize = 4;

pub(super) type Cells = [Option<NonNull<ColorCell>>; COLORS_MAX];

crate::loom::static_lock! {
    /// Orders all requests of this process for several colors. In the lock order it comes before
    /// the sleepers' locks.
    static ORDER: Mutex<()> = Mutex::new(());
}

/// Returns the runtime of the first color.
pub(super) fn shared_of(cells: &Cells) -> &Shared {
    let first = cells[0]
        .as_ref()
        .expect("a request names at least two colors");
    // SAFETY: the caller has the values, which keep the cells alive.
    unsafe { first.as_ref() }.shared()
}

/// A request, shared by its tickets and its future.
#[repr(C)]
pub(super) struct Request<F, R> {
    pub(super) reply: Reply<F, R>,
    cells: Cells,
    call: unsafe fn(F, &Cells) -> R,
    /// Bits 0 to 3: the ticket is queued. Bits 4 to 7: the ticket's color is kept. Bit 8
    /// (`CANCELLED`): no color is kept.
    places: AtomicU16,
    tickets: [Ticket<F, R>; COLORS_MAX],
}

const QUEUED: u16 = (1 << COLORS_MAX) - 1;
const CANCELLED: u16 = 1 << (2 * COLORS_MAX);

/// A request's place in the queue of one color.
#[repr(C)]
struct Ticket<F, R> {
    node: Node,
    request: *const Request<F, R>,
}

impl<F, R> Request<F, R>
where
    F: Send + 'static,
    R: Send + 'static,
{
    const VTABLE: VTable = VTable {
        run: Self::run,
        drop: Self::drop,
        name: std::any::type_name::<F>,
        location_at: None,
        cancel: Some(Cancel {
            is_cancelled: Self::is_cancelled,
            leave: Self::leave,
        }),
    };

    /// Queues a ticket in each color. From now on the colors share the request.
    pub(super) fn queue(
        cells: Cells,
        call: unsafe fn(F, &Cells) -> R,
        closure: InSpan<F>,
        waker: TinyWaker,
    ) -> NonNull<Self> {
        let this = shared_of(&cells)
            .alloc(Kind::Event, Layout::new::<Self>())
            .cast::<Self>();
        let request = this.as_ptr().cast_const();
        let ticket = || Ticket {
            node: Node::new(&Self::VTABLE),
            request,
        };
        // SAFETY: the memory was allocated for this request.
        unsafe {
            this.write(Self {
                reply: Reply::new(closure, waker),
                cells,
                call,
                places: AtomicU16::new((1 << cells.iter().flatten().count()) - 1),
                tickets: [ticket(), ticket(), ticket(), ticket()],
            });
        }
        shared_of(&cells).drop_later(|| {
            let _order = lock(&ORDER);
            for (index, cell) in cells.iter().enumerate() {
                if let Some(cell) = cell {
                    // SAFETY: the ticket lies in the request, which lives until the last ticket has
                    // come out; the future's values keep the cells alive.
                    unsafe {
                        let ticket = &raw mut (*this.as_ptr()).tickets[index];
                        ColorCell::post_request(*cell, NonNull::new_unchecked(ticket.cast()));
                    }
                }
            }
        });
        this
    }

    /// Records that a ticket has come out of its queue, with its color's token if it `arrives`.
    unsafe fn come_out(node: NonNull<Node>, arrives: bool) -> Out<F, R> {
        let ticket = node.cast::<Ticket<F, R>>().as_ptr().cast_const();
        // SAFETY: the ticket had not come out yet, so its request is alive and contains it.
        unsafe {
            let request = (*ticket).request;
            let first = (&raw const (*request).tickets).cast::<Ticket<F, R>>();
            let queued = 1 << ticket.offset_from(first);
            let keeps = |places: u16| arrives && places & CANCELLED == 0;
            let come_out = |places: u16| {
                let kept = u16::from(keeps(places)) * (queued << COLORS_MAX);
                places ^ (queued | kept)
            };
            let change = |places| Some(come_out(places));
            // AcqRel: the last ticket sees what was done under the colors that the other tickets
            // kept, and so does a cancellation, which releases them.
            let before = (*request)
                .places
                .fetch_update(Ordering::AcqRel, Ordering::Relaxed, change)
                .unwrap_or_else(|places| places);
            let places = come_out(before);
            let is_last = places & QUEUED == 0;
            Out {
                keeps: keeps(before),
                last: is_last.then(|| (NonNull::new_unchecked(request.cast_mut()), places)),
            }
        }
    }

    unsafe fn run(node: NonNull<Node>, worker: &Worker) -> After {
        // Until the last ticket comes out, the request holds the token and the turn does not.
        let here = worker.end_turn().expect("a ticket runs in its color");
        // SAFETY: the ticket reached the head of its queue, with the token of its color.
        let out = unsafe { Self::come_out(node, true) };
        if out.keeps && out.last.is_none() {
            return After::Parked;
        }
        worker.begin_turn(here);
        let Some((this, places)) = out.last else {
            return After::Continue;
        };
        // SAFETY: only the last ticket gets here. Unless the request was cancelled, it holds all
        // the tokens.
        unsafe {
            let cells = this.as_ref().cells;
            if let Some(closure) = this.as_ref().reply.claim() {
                let call = this.as_ref().call;
                let reply = &this.as_ref().reply;
                reply.finish(closure, |closure| call(closure, &cells));
            }
            Self::let_go(this, places, Some(here));
        }
        After::Continue
    }

    unsafe fn drop(node: NonNull<Node>, _reason: DropReason) -> After {
        // SAFETY: as in `run`. This call cannot tell which of the colors is being emptied, so it
        // queues that color again like the others.
        let out = unsafe { Self::come_out(node, true) };
        if let Some((this, places)) = out.last {
            // SAFETY: only the last ticket gets here.
            unsafe {
                this.as_ref().reply.shut_down();
                Self::let_go(this, places, None);
            }
        }
        if out.keeps {
            After::Parked
        } else {
            After::Continue
        }
    }

    unsafe fn is_cancelled(node: NonNull<Node>) -> bool {
        // SAFETY: the ticket has not come out, so its request is alive.
        unsafe { &(*(*node.cast::<Ticket<F, R>>().as_ptr()).request).reply }.is_claimed()
    }

    unsafe fn leave(node: NonNull<Node>) {
        // SAFETY: the request was cancelled, so it needs no color.
        unsafe {
            if let Some((this, places)) = Self::come_out(node, false).last {
                Self::let_go(this, places, None);
            }
        }
    }

    /// Ends the colors' use of the request and releases the kept colors except `here`.
    unsafe fn let_go(this: NonNull<Self>, places: u16, here: Option<NonNull<ColorCell>>) {
        // SAFETY: the request is alive until `color_gone`, which is called once, here; `_leave`
        // gives each kept token up once.
        unsafe {
            let mut cells = kept(this.as_ref().cells, places);
            for cell in &mut cells {
                cell.take_if(|cell| Some(*cell) == here);
            }
            let _leave = Leave(cells);
            if this.as_ref().reply.color_gone() {
                Self::free(this);
            }
        }
    }
}

impl<F, R> Request<F, R> {
    /// Cancels the request if it has not run, and ends the future's use of it.
    ///
    /// # Safety
    /// The caller must be the future, must have handles to the cells, and must not use the request
    /// afterwards.
    #[cold]
    pub(super) unsafe fn cancel(this: NonNull<Self>) {
        // SAFETY: upheld by the caller; the request is alive until `future_gone`.
        unsafe {
            let cells = this.as_ref().cells;
            let cancelled = this.as_ref().reply.cancel();
            if cancelled {
                Self::release(this);
            }
            Self::future_gone(this);
            for cell in cells.into_iter().flatten().filter(|_| cancelled) {
                ColorCell::count_cancelled(cell);
            }
        }
    }

    /// Releases the colors that a cancelled request has kept, unless its last ticket releases them.
    ///
    /// # Safety
    /// Same as for [`cancel`](Self::cancel).
    unsafe fn release(this: NonNull<Self>) {
        // SAFETY: upheld by the caller; the future has not gone yet.
        let request = unsafe { this.as_ref() };
        let released = |places| {
            let is_queued = places & QUEUED != 0;
            is_queued.then_some(places & QUEUED | CANCELLED)
        };
        // Acquire: partner of `come_out`. Release is not needed: leaving a color publishes what was
        // done in it.
        let updated = request
            .places
            .fetch_update(Ordering::Acquire, Ordering::Relaxed, released);
        if let Ok(places) = updated {
            drop(Leave(kept(request.cells, places)));
        }
    }

    /// Ends the future's use of the request.
    ///
    /// # Safety
    /// The caller must be the future, and must not use the request afterwards.
    pub(super) unsafe fn future_gone(this: NonNull<Self>) {
        // SAFETY: upheld by the caller; nothing refers to a request that is freed.
        unsafe {
            if this.as_ref().reply.future_gone() {
                Self::free(this);
            }
        }
    }

    /// Frees the request. No user code that may panic runs here: closure and outcome are gone, and
    /// dropping the waker catches panics.
    unsafe fn free(this: NonNull<Self>) {
        let _free = Allocation(this);
        // SAFETY: the caller holds the last reference to the request.
        unsafe { std::ptr::drop_in_place(this.as_ptr()) }
    }
}

/// The outcome of a ticket that has come out of its queue.
struct Out<F, R> {
    /// True if the request now has the token of the ticket's color.
    keeps: bool,
    /// For the last ticket: the request and its places.
    last: Option<(NonNull<Request<F, R>>, u16)>,
}

/// Returns the cells whose tokens the request has.
fn kept(mut cells: Cells, places: u16) -> Cells {
    for (index, cell) in cells.iter_mut().enumerate() {
        cell.take_if(|_| places >> (COLORS_MAX + index) & 1 == 0);
    }
    cells
}

/// The tokens of a finished or cancelled request; dropping it, also by unwinding, releases the
/// colors.
struct Leave(Cells);

impl Drop for Leave {
    fn drop(&mut self) {
        for cell in self.0.into_iter().flatten() {
            // Events behind the ticket are already in the FIFO, so the color must go through a
            // turn.
            // SAFETY: this value owns the token.
            unsafe { ColorCell::exit(cell, true) }
        }
    }
}

/// Creates the lock before a model starts. Otherwise the first caller to take the lock would create
/// it, which would order that caller before the others.
#[cfg(all(test, loom))]
pub(super) fn prepare() {
    drop(lock(&ORDER));
}
