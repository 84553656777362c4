//! The modules that admit streams, and pace them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tussah::flow::{Out, Wake, module};
use tussah::time::now;
use tussah_wire::http::Status;

use super::disk::{Loaded, Read, Reader};
use super::find::{Part, Wanted};
use super::library::{Library, Title};
use super::options::show_rate;
use super::pace::{Pace, Step};
use super::playlist::Search;
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
        let title = &wanted.title;
        let (len, has_more) = match &wanted.part {
            Part::Bytes(bytes, _) => (bytes.end - bytes.start, bytes.end < title.len),
            // A client that asks for the playlist is going to play the segments.
            Part::Playlist(_) => (title.len, true),
        };
        let client = wanted.request.client();
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
            Refused::Slow => {
                let (path, rate) = (&title.path, show_rate(title.rate));
                tracing::warn!("cannot play {path}: it needs {rate}, more than its disk reads");
                wanted.request.status(Status::SERVICE_UNAVAILABLE)
            }
            Refused::Greedy => wanted.request.status(Status::TOO_MANY_REQUESTS),
        });
    }
}

/// A stream, which is the state of a connection's flow.
pub(super) enum Stream {
    Playing(Playing),
    Searching(Box<Search>),
}

/// A stream of a part of a video.
pub(super) struct Playing {
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
        let Wanted {
            request,
            title,
            part,
        } = wanted;
        match part {
            Part::Bytes(bytes, head) => {
                let is_read = seat.is_read();
                let (body, parts) = BodySender::new(bytes.end - bytes.start, seat);
                let options = &self.library.options;
                let times = (options.ahead, options.chunk);
                *stream = Some(Stream::Playing(Playing {
                    pace: Pace::new(bytes, title.rate, times, now()),
                    title,
                    body: Arc::new(body),
                    is_read,
                }));
                begin.send(head.respond(request, parts));
            }
            Part::Playlist(description) => {
                let search = Search::new(request, title, description, seat);
                *stream = Some(Stream::Searching(Box::new(search)));
            }
        }
        self.go_on(stream, wake, out, begin);
    }

    #[port]
    fn loaded(
        &self,
        loaded: Loaded,
        stream: &mut Option<Stream>,
        wake: &Wake,
        out: &impl Out<Read>,
        begin: &impl Out<Response>,
    ) {
        let title = match stream {
            Some(Stream::Playing(playing)) => &playing.title,
            Some(Stream::Searching(search)) => search.title(),
            None => return,
        };
        let bytes = loaded.bytes;
        let len = match loaded.read {
            Ok(len) => len,
            Err(error) => {
                tracing::warn!(path = %title.path, %error, "cannot read a video; its stream ends");
                if let Some(Stream::Searching(search)) = stream.take() {
                    begin.send(search.fail());
                }
                return;
            }
        };
        let disk = title.disk;
        let mut is_late = false;
        if let Some(Stream::Playing(playing)) = stream {
            is_late = playing.pace.has_read(bytes.start, now());
            playing.body.send(&playing.title.file, bytes);
        }
        if self.library.count(disk, len, is_late) {
            let disk = &self.library.disks[disk];
            let (disk, rate) = (disk.path.display(), show_rate(disk.rate));
            tracing::warn!("a chunk was read too late: the disk {disk} is slower than {rate}");
        }
        self.go_on(stream, wake, out, begin);
    }

    fn wake(
        &self,
        stream: &mut Option<Stream>,
        wake: &Wake,
        out: &impl Out<Read>,
        begin: &impl Out<Response>,
    ) {
        self.go_on(stream, wake, out, begin);
    }
}

impl Play {
    /// Reads the next chunk of a stream, or waits until it is due. Ends a stream that has been
    /// read, or whose client has disconnected.
    fn go_on(
        &self,
        stream: &mut Option<Stream>,
        wake: &Wake,
        out: &impl Out<Read>,
        begin: &impl Out<Response>,
    ) {
        let next = match stream {
            Some(Stream::Playing(playing)) => playing.next(wake),
            Some(Stream::Searching(search)) => match search.next(self.library.options.chunk) {
                Some(read) => Next::Read(read),
                None => Next::End,
            },
            None => return,
        };
        match next {
            Next::Read(read) => out.send(read),
            Next::Wait => {}
            Next::End => {
                if let Some(Stream::Searching(search)) = stream.take() {
                    begin.send(search.respond());
                }
            }
        }
    }
}

/// The next step of a stream.
enum Next {
    Read(Read),
    Wait,
    End,
}

impl Playing {
    fn next(&mut self, wake: &Wake) -> Next {
        if self.body.is_over() {
            return Next::End;
        }
        match self.pace.step(now(), self.body.waiting()) {
            Step::Read(bytes) => Next::Read(Read {
                title: Arc::clone(&self.title),
                bytes,
                reader: Reader::Stream(Arc::clone(&self.body)),
            }),
            Step::Wait(time) => {
                wake.after(time);
                Next::Wait
            }
            Step::End => {
                // Relaxed: the connection gets the end of the body through a lock.
                self.is_read.store(true, Ordering::Relaxed);
                Next::End
            }
        }
    }
}
