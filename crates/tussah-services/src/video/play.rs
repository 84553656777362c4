//! The modules that admit streams, and pace them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tussah::flow::{Out, Wake, module};
use tussah::time::now;
use tussah_wire::http::Status;

use super::disk::{Loaded, Read};
use super::find::Wanted;
use super::library::{Library, Title};
use super::options::show_rate;
use super::pace::{Pace, Step};
use super::seats::{Refused, Seat};
use crate::modules::{BodySender, Response};

/// A stream that has been admitted.
#[derive(Debug)]
pub(super) struct Admitted {
    wanted: Wanted,
    seat: Seat,
}

/// Admits the streams that the disks can read in time.
pub(super) struct Admit {
    library: Arc<Library>,
}

#[module]
impl Admit {
    fn init(library: Arc<Library>) -> Self {
        Self { library }
    }

    fn run(&self, wanted: Wanted, out: &impl Out<Admitted>, full: &impl Out<Response>) {
        let (title, bytes) = (&wanted.title, &wanted.bytes);
        let has_more = bytes.end < title.len;
        let (client, len) = (wanted.request.client(), bytes.end - bytes.start);
        let refused = match self.library.seats.take(client, title, len, has_more) {
            Ok(seat) => return out.send(Admitted { wanted, seat }),
            Err(refused) => refused,
        };
        // Relaxed: this is only a count.
        self.library.rejected.fetch_add(1, Ordering::Relaxed);
        full.send(match refused {
            Refused::Full(retry) => {
                let response = wanted.request.status(Status::SERVICE_UNAVAILABLE);
                response.with("Retry-After", retry.as_secs_f64().ceil().to_string())
            }
            Refused::Greedy => wanted.request.status(Status::TOO_MANY_REQUESTS),
        });
    }
}

/// A stream, which is the state of a connection's flow.
pub(super) struct Stream {
    title: Arc<Title>,
    pace: Pace,
    body: Arc<BodySender>,
    /// To set when the whole stream has been read.
    is_read: Arc<AtomicBool>,
}

/// Paces streams. While a stream waits for the time of its next chunk, only the alarm of its flow
/// waits.
pub(super) struct Play {
    library: Arc<Library>,
}

#[module]
impl Play {
    fn init(library: Arc<Library>) -> Self {
        Self { library }
    }

    fn run(
        &self,
        admitted: Admitted,
        stream: &mut Option<Stream>,
        wake: &Wake,
        out: &impl Out<Read>,
        begin: &impl Out<Response>,
    ) {
        let Admitted { wanted, seat } = admitted;
        let (title, bytes) = (wanted.title, wanted.bytes);
        let is_read = seat.is_read();
        let (body, parts) = BodySender::new(bytes.end - bytes.start, seat);
        let options = &self.library.options;
        let times = (options.ahead, options.chunk);
        let pace = Pace::new(bytes, title.rate, times, now());
        *stream = Some(Stream {
            title,
            pace,
            body: Arc::new(body),
            is_read,
        });
        begin.send(wanted.head.respond(wanted.request, parts));
        go_on(stream, wake, out);
    }

    #[port]
    fn loaded(
        &self,
        loaded: Loaded,
        stream: &mut Option<Stream>,
        wake: &Wake,
        out: &impl Out<Read>,
    ) {
        let Some(playing) = stream else { return };
        let (title, bytes) = (&playing.title, loaded.bytes);
        if let Err(error) = loaded.read {
            tracing::warn!(path = %title.path, %error, "cannot read a video; its stream ends");
            *stream = None;
            return;
        }
        let is_late = playing.pace.has_read(bytes.start, now());
        let is_first = self
            .library
            .count(title.disk, bytes.end - bytes.start, is_late);
        if is_first {
            let disk = &self.library.disks[title.disk];
            let (disk, rate) = (disk.path.display(), show_rate(disk.rate));
            tracing::warn!("a chunk was read too late: the disk {disk} is slower than {rate}");
        }
        playing.body.send(&title.file, bytes);
        go_on(stream, wake, out);
    }

    fn wake(&self, stream: &mut Option<Stream>, wake: &Wake, out: &impl Out<Read>) {
        go_on(stream, wake, out);
    }
}

/// Reads the next chunk of a stream, or waits until it is due. Ends a stream that has been read, or
/// whose client has disconnected.
fn go_on(stream: &mut Option<Stream>, wake: &Wake, out: &impl Out<Read>) {
    let Some(playing) = stream else { return };
    if playing.body.is_over() {
        *stream = None;
        return;
    }
    match playing.pace.step(now(), playing.body.waiting()) {
        Step::Read(bytes) => out.send(Read {
            title: Arc::clone(&playing.title),
            bytes,
            body: Arc::clone(&playing.body),
        }),
        Step::Wait(time) => wake.after(time),
        Step::End => {
            // Relaxed: the connection gets the end of the body through a lock.
            playing.is_read.store(true, Ordering::Relaxed);
            *stream = None;
        }
    }
}
