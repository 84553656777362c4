//! Shared parts of the callback proxies: one-time waits, forwarding of messages, and timeouts.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tussah::events::{after, on_readable, on_writable};
use tussah::net::{Shutdown, TcpStream};
use tussah::{Callback, Color, TimerHandle};

use super::{Cut, Flow};

/// Calls `then` with `state` once, when the stream is readable: an `fdcb` that unregisters itself.
pub fn when_readable<T: Send + 'static>(
    stream: Arc<TcpStream>,
    color: Color,
    state: T,
    then: fn(T),
) {
    let (this, mut state) = (stream.clone(), Some(state));
    let call = move |()| {
        on_readable(&this, None);
        if let Some(state) = state.take() {
            then(state);
        }
    };
    on_readable(&stream, Callback::new(color, call));
}

/// Does the same when the stream is writable.
pub fn when_writable<T: Send + 'static>(
    stream: Arc<TcpStream>,
    color: Color,
    state: T,
    then: fn(T),
) {
    let (this, mut state) = (stream.clone(), Some(state));
    let call = move |()| {
        on_writable(&this, None);
        if let Some(state) = state.take() {
            then(state);
        }
    };
    on_writable(&stream, Callback::new(color, call));
}

/// Aborts a connection after a timeout, unless this is dropped first.
pub struct Limit(TimerHandle);

impl Limit {
    pub fn new(stream: &Arc<TcpStream>, color: Color, time: Duration) -> Option<Self> {
        let stream = stream.clone();
        let end = move || drop(stream.shutdown(Shutdown::Both));
        Some(Self(after(time, color, end)))
    }

    pub fn is_over(&self) -> bool {
        self.0.is_finished()
    }
}

impl Drop for Limit {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// The event for which the rest of a message waits.
pub enum Step {
    Done,
    Readable,
    Writable,
    Cut(Cut),
}

/// One direction of a tunnel.
pub struct Tunnel {
    pub color: Color,
    pub from: Arc<TcpStream>,
    pub flow: Flow,
    pub to: Arc<TcpStream>,
}

// [forward]
/// Forwards the available part of a message once, so that other connections get their turn.
pub fn forward(from: &TcpStream, flow: &mut Flow, to: &TcpStream) -> Step {
    let would_block = |error: &io::Error| error.kind() == io::ErrorKind::WouldBlock;
    let mut has_read = false;
    loop {
        while !flow.to_write().is_empty() {
            match to.try_write(flow.to_write()) {
                Ok(len) => flow.wrote(len),
                Err(error) if would_block(&error) => return Step::Writable,
                Err(error) => return Step::Cut(Cut::Write(error)),
            }
        }
        if flow.is_done() {
            return Step::Done;
        }
        if has_read {
            return Step::Readable;
        }
        match from.try_read(flow.room()) {
            Ok(len) => match flow.came(len) {
                Ok(()) => has_read = true,
                Err(text) => return Step::Cut(Cut::Message(text)),
            },
            Err(error) if would_block(&error) => return Step::Readable,
            Err(error) => return Step::Cut(Cut::Read(error)),
        }
    }
}
// [forward]

/// Forwards data in one direction until it ends.
pub fn pass(mut this: Box<Tunnel>) {
    let (from, to, color) = (this.from.clone(), this.to.clone(), this.color);
    match forward(&from, &mut this.flow, &to) {
        Step::Readable => when_readable(from, color, this, pass),
        Step::Writable => when_writable(to, color, this, pass),
        Step::Done => drop(to.shutdown(Shutdown::Write)),
        Step::Cut(_) => {
            // Neither direction is useful without the other.
            let _ = from.shutdown(Shutdown::Both);
            let _ = to.shutdown(Shutdown::Both);
        }
    }
}
