//! The module that finds what a request asks for.

use std::ops::Range;
use std::sync::Arc;

use tussah::flow::{Out, module};
use tussah_wire::http::condition::{self, Outcome, Validators};
use tussah_wire::http::range::{ByteRange, ContentRange, Ranges};
use tussah_wire::http::{Method, Status, date};

use super::library::{Description, Library, Title};
use super::playlist;
use crate::graph_status::is_allowed;
use crate::modules::{Body, Request, Response};
use crate::web::site::{Codings, Found, LISTING_TYPE, Meta, Missing, Opened, is_exhausted};

/// The end of the address of a playlist, after that of its video.
const PLAYLIST: &str = ".m3u8";

/// A request that needs reads of a video.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) request: Request,
    pub(super) title: Arc<Title>,
    pub(super) part: Part,
}

/// The part of a video that a client asks for.
#[derive(Debug)]
pub(super) enum Part {
    /// A stream of some bytes, with the status and the header fields of the response.
    Bytes(Range<u64>, Head),
    /// The playlist, for which the segments have to be found.
    Playlist(Arc<Description>),
}

/// The status and the header fields of a response.
#[derive(Clone, Debug)]
pub(super) struct Head {
    status: Status,
    media_type: Arc<str>,
    fields: Vec<(&'static str, String)>,
}

impl Head {
    fn new(meta: &Meta) -> Self {
        let modified = date::format(date::unix_seconds(meta.modified));
        let modified = String::from_utf8_lossy(&modified).into_owned();
        let fields = vec![
            ("Accept-Ranges", "bytes".to_owned()),
            ("ETag", meta.etag.as_str().to_owned()),
            ("Last-Modified", modified),
        ];
        Self {
            status: Status::OK,
            media_type: Arc::clone(&meta.media_type),
            fields,
        }
    }

    /// Makes the response.
    pub(super) fn respond(self, request: Request, body: Body) -> Response {
        let response = request.respond(body).with_status(self.status);
        let fields = self.fields.into_iter();
        let response = fields.fold(response, |response, (name, value)| {
            response.with(name, value)
        });
        response.with_type(&*self.media_type)
    }
}

/// Finds what a request asks for, which may need a few reads of a disk.
pub(super) struct Find {
    library: Arc<Library>,
}

#[module(blocking)]
impl Find {
    fn init(library: Arc<Library>) -> Self {
        Self { library }
    }

    fn run(
        &self,
        request: Request,
        out: &impl Out<Wanted>,
        answer: &impl Out<Response>,
        status: &impl Out<Request>,
    ) {
        if request.path() == "/status" && is_allowed(&request) {
            return status.send(request);
        }
        match self.find(request) {
            Ok(wanted) => out.send(wanted),
            Err(response) => answer.send(response),
        }
    }
}

impl Find {
    /// Returns the part of a video, or the response to everything else.
    fn find(&self, request: Request) -> Result<Wanted, Response> {
        match request.method() {
            Method::Get | Method::Head => {}
            Method::Connect | Method::Trace | Method::Other => {
                return Err(request.status(Status::NOT_IMPLEMENTED));
            }
            method => {
                let status = match method {
                    Method::Options => Status::NO_CONTENT,
                    _ => Status::METHOD_NOT_ALLOWED,
                };
                return Err(request.status(status).with("Allow", "GET, HEAD, OPTIONS"));
            }
        }
        let path = request.path().into_owned();
        let site = &self.library.site;
        match site.look_up(path.as_bytes(), Codings::NONE) {
            Ok(Found::File(opened)) if is_video(&opened.meta) => self.video(request, path, opened),
            Ok(Found::File(opened)) => Err(other_file(request, opened)),
            Ok(Found::Redirect { location }) => {
                let moved = request.status(Status::MOVED_PERMANENTLY);
                Err(moved.with("Location", location))
            }
            Ok(Found::Listing(page)) => Err(request.respond(page).with_type(LISTING_TYPE)),
            Ok(Found::Script { .. }) => Err(request.status(Status::FORBIDDEN)),
            Err(Missing::NotFound) if path.ends_with(PLAYLIST) => self.playlist(request, &path),
            Err(missing) => Err(missing_response(request, &path, missing)),
        }
    }

    fn video(&self, request: Request, path: String, opened: Opened) -> Result<Wanted, Response> {
        let validators = Validators {
            etag: Some(opened.meta.etag.as_str()),
            modified: Some(date::unix_seconds(opened.meta.modified)),
        };
        let mut head = Head::new(&opened.meta);
        let (asked, bytes) = (&request.head, &*request.bytes);
        match condition::evaluate(asked, bytes, Some(&validators)) {
            Outcome::Proceed => {}
            Outcome::NotModified => {
                head.status = Status::NOT_MODIFIED;
                return Err(head.respond(request, Body::from("")));
            }
            Outcome::Failed => return Err(request.status(Status::PRECONDITION_FAILED)),
        }
        let len = opened.meta.len;
        let part = match Ranges::of(asked, bytes, &validators, len) {
            // A player asks for one range. RFC 9110 permits a server to ignore several.
            Ranges::Whole | Ranges::Several(_) => 0..len,
            Ranges::Single(range @ ByteRange { first, last }) => {
                head.status = Status::PARTIAL_CONTENT;
                let range = ContentRange::of(range, len).to_string();
                head.fields.push(("Content-Range", range));
                first..last + 1
            }
            Ranges::Unsatisfiable => {
                let none = ContentRange::none(len).to_string();
                let status = request.status(Status::RANGE_NOT_SATISFIABLE);
                return Err(status.with("Content-Range", none));
            }
        };
        if request.method() == Method::Head || part.is_empty() {
            let body = Body::file(opened.file).unwrap_or_else(|_| Body::from(""));
            return Err(head.respond(request, body));
        }
        let (title, _) = self.library.title(&path, opened);
        Ok(Wanted {
            request,
            title: Arc::new(title),
            part: Part::Bytes(part, head),
        })
    }

    /// Returns the playlist of a video, or the request for one whose segments are unknown.
    fn playlist(&self, request: Request, path: &str) -> Result<Wanted, Response> {
        let video = path.strip_suffix(PLAYLIST).unwrap_or(path);
        let opened = match self.library.site.look_up(video.as_bytes(), Codings::NONE) {
            Ok(Found::File(opened)) if is_video(&opened.meta) => opened,
            Ok(_) => return Err(request.status(Status::NOT_FOUND)),
            Err(missing) => return Err(missing_response(request, path, missing)),
        };
        let (title, description) = self.library.title(video, opened);
        if description.search().is_none() {
            return Err(playlist::respond(request, &title, &description));
        }
        Ok(Wanted {
            request,
            title: Arc::new(title),
            part: Part::Playlist(description),
        })
    }
}

/// Returns whether a file is paced: videos and sounds are.
fn is_video(meta: &Meta) -> bool {
    ["video/", "audio/"]
        .iter()
        .any(|kind| meta.media_type.starts_with(kind))
}

/// Answers with a file that is not paced, such as a page, a poster or subtitles.
fn other_file(request: Request, opened: Opened) -> Response {
    let mut head = Head::new(&opened.meta);
    let validators = Validators {
        etag: Some(opened.meta.etag.as_str()),
        modified: Some(date::unix_seconds(opened.meta.modified)),
    };
    if condition::evaluate(&request.head, &request.bytes, Some(&validators)) == Outcome::NotModified
    {
        head.status = Status::NOT_MODIFIED;
        return head.respond(request, Body::from(""));
    }
    head.fields.retain(|(name, _)| *name != "Accept-Ranges");
    match Body::file(opened.file) {
        Ok(body) => head.respond(request, body),
        Err(_) => request.status(Status::INTERNAL_SERVER_ERROR),
    }
}

fn missing_response(request: Request, path: &str, missing: Missing) -> Response {
    let status = match missing {
        Missing::NotFound => Status::NOT_FOUND,
        Missing::Forbidden | Missing::NotAFile => Status::FORBIDDEN,
        Missing::WouldBlock => Status::SERVICE_UNAVAILABLE,
        Missing::Io(error) => {
            tracing::warn!(%path, %error, "cannot open a file");
            match is_exhausted(&error) {
                true => Status::SERVICE_UNAVAILABLE,
                false => Status::INTERNAL_SERVER_ERROR,
            }
        }
    };
    let response = request.status(status);
    match status {
        Status::SERVICE_UNAVAILABLE => response.with("Retry-After", "1"),
        _ => response,
    }
}
