//! A small web server: a page cache in shards, and the files of a directory.
//!
//! ```text
//! cargo run -p tussah-services --example small_web -- run \
//!     crates/tussah-services/examples/small_web/small_web.weave --root /srv/www
//! ```

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tussah::flow::{Fields, Out, Size, cli, module};
use tussah_services::Messages;
use tussah_services::modules::{self, Body, Request, Response};
use tussah_services::web::{Method, Status};

/// How long a page is used before its file is read again.
const FRESH: Duration = Duration::from_secs(1);
/// Bound, in bytes: the maximum size of a cached file. A larger one is sent from the disk.
const FILE_MAX: u64 = 1 << 20;

/// A file in memory.
#[derive(Clone)]
struct Page {
    bytes: Arc<[u8]>,
    media_type: &'static str,
    read_at: Instant,
}

impl Page {
    fn answer(&self, request: Request) -> Response {
        let response = request.respond(Arc::clone(&self.bytes));
        response.with_type(self.media_type)
    }
}

/// A page that has been read for a request.
#[derive(Clone, Fields)]
struct Loaded {
    path: String,
    #[fields(skip)]
    page: Page,
    #[fields(skip)]
    request: Request,
}

/// Keeps pages in memory. The graph sends each path to the same shard.
struct Pages {
    pages: HashMap<String, Page>,
    /// Bound, in bytes: the maximum total size of the pages of this shard.
    bytes_max: u64,
    bytes: u64,
}

#[module]
impl Pages {
    fn init(limit: Size) -> Self {
        Self {
            pages: HashMap::new(),
            bytes_max: limit.0,
            bytes: 0,
        }
    }

    fn run(&mut self, request: Request, out: &impl Out<Response>, miss: &impl Out<Request>) {
        let page = self.pages.get(&*request.path());
        match page.filter(|page| page.read_at.elapsed() < FRESH && is_read(&request)) {
            Some(page) => out.send(page.answer(request)),
            None => miss.send(request),
        }
    }

    #[port]
    fn loaded(&mut self, loaded: Loaded, out: &impl Out<Response>) {
        let (page, path) = (loaded.page, loaded.path);
        out.send(page.answer(loaded.request));
        self.bytes += page.bytes.len() as u64;
        if let Some(old) = self.pages.insert(path, page) {
            self.bytes -= old.bytes.len() as u64;
        }
        if self.bytes > self.bytes_max {
            // The pages that are in use come back soon.
            self.pages.clear();
            self.bytes = 0;
        }
    }
}

fn is_read(request: &Request) -> bool {
    matches!(request.method(), Method::Get | Method::Head)
}

/// Reads files.
struct Disk {
    root: PathBuf,
}

#[module(blocking)]
impl Disk {
    fn init(root: PathBuf) -> Result<Self, String> {
        match root.is_dir() {
            true => Ok(Self { root }),
            false => Err(format!("{} is not a directory", root.display())),
        }
    }

    fn run(&self, request: Request, out: &impl Out<Loaded>, other: &impl Out<Response>) {
        if !is_read(&request) {
            let refused = request.status(Status::METHOD_NOT_ALLOWED);
            return other.send(refused.with("Allow", "GET, HEAD"));
        }
        let path = request.path().into_owned();
        match self.read(&path) {
            Ok((Body::Bytes(bytes), media_type)) => {
                let read_at = Instant::now();
                let page = Page {
                    bytes,
                    media_type,
                    read_at,
                };
                out.send(Loaded {
                    path,
                    page,
                    request,
                });
            }
            Ok((file, media_type)) => other.send(request.respond(file).with_type(media_type)),
            Err(error) => other.send(request.status(match error.kind() {
                io::ErrorKind::NotFound
                | io::ErrorKind::NotADirectory
                | io::ErrorKind::InvalidInput => Status::NOT_FOUND,
                io::ErrorKind::PermissionDenied => Status::FORBIDDEN,
                _ => Status::INTERNAL_SERVER_ERROR,
            })),
        }
    }
}

impl Disk {
    /// Reads a file, or opens it if it is large. The path has no dot segments.
    fn read(&self, path: &str) -> io::Result<(Body, &'static str)> {
        let mut whole = self.root.join(path.trim_start_matches('/'));
        if path.ends_with('/') {
            whole.push("index.html");
        }
        let media_type = match whole.extension().and_then(|extension| extension.to_str()) {
            Some("html") => "text/html; charset=utf-8",
            Some("css") => "text/css; charset=utf-8",
            Some("js") => "text/javascript; charset=utf-8",
            Some("png") => "image/png",
            Some("svg") => "image/svg+xml",
            Some("txt") => "text/plain; charset=utf-8",
            _ => "application/octet-stream",
        };
        // Only regular files are opened: another kind could block.
        if !whole.metadata()?.is_file() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut file = File::open(whole)?;
        if file.metadata()?.len() > FILE_MAX {
            return Ok((Body::file(file)?, media_type));
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok((bytes.into(), media_type))
    }
}

/// Prints the address at which the server listens.
#[derive(Default)]
struct Ready;

#[module]
impl Ready {
    fn run(&self, address: SocketAddr) {
        println!("listening at {address}");
    }
}

fn main() -> ExitCode {
    // Otherwise, nobody would learn why a connection was closed.
    let _messages = Messages::to_stderr();
    let modules = modules::standard()
        .with::<Pages>("Pages")
        .with::<Disk>("Disk")
        .with::<Ready>("Ready");
    cli::main("small_web", modules)
}
