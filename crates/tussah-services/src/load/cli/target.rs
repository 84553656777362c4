//! The server and the requests that the arguments describe.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;

use tussah::dns::Resolver;
use tussah::net::TcpStream;

use super::Options;
use crate::load::run::connect::{Dial, Peer};
use crate::load::run::files::FileSet;
use crate::load::run::paths::Paths;
use crate::load::run::requests::{Message, Requests, Targets};
use crate::load::run::settings::CloseBy;
use crate::load::run::tls::{self, Trust};
use crate::load::run::url::Url;

/// The parts of a run that need no network.
pub(super) struct Prepared {
    url: Url,
    pub(super) set: Option<FileSet>,
    pub(super) requests: Requests,
}

/// Reads everything that the arguments name.
///
/// # Errors
/// Returns a sentence that states what was expected.
pub(super) fn prepare(options: &Options) -> Result<Prepared, String> {
    if let Some(pid) = options.pid
        && crate::load::run::cpu::Usage::of(pid).is_empty()
    {
        return Err(format!("--pid: there is no process {pid}"));
    }
    let url = Url::parse(&options.url)?;
    if url.tls && options.unix.is_some() {
        return Err("--unix: TLS works over TCP only; expected an http:// URL".to_owned());
    }
    let targets = match (&options.files, &options.paths) {
        (Some(files), _) => Targets::Files(file_set(files)?),
        (None, Some(file)) => Targets::Paths(paths(file)?),
        (None, None) => Targets::One,
    };
    let (body, method) = match (&options.body, &options.body_file) {
        (Some(text), _) => (text.clone().into_bytes(), "POST"),
        (None, Some(path)) => {
            let body = fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
            (body, "POST")
        }
        (None, None) => (Vec::new(), "GET"),
    };
    let message = Message {
        method: options.method.clone().unwrap_or_else(|| method.to_owned()),
        fields: options.header.clone(),
        body,
        announces_end: options.requests_per_connection.is_some()
            && options.close_by == CloseBy::Header,
    };
    Ok(Prepared {
        requests: Requests::new(&url, &targets, message),
        url,
        set: match targets {
            Targets::Files(set) => Some(set),
            Targets::One | Targets::Paths(_) => None,
        },
    })
}

/// Returns the set in a directory, or of a size.
fn file_set(text: &str) -> Result<FileSet, String> {
    let path = Path::new(text);
    match path.is_dir() {
        true => FileSet::in_directory(path),
        false => FileSet::of_size(text)
            .map_err(|error| format!("--files: {error}, and there is no such directory")),
    }
}

/// Returns the list of paths in a file.
fn paths(file: &Path) -> Result<Paths, String> {
    let failed = |error: String| format!("--paths: {}: {error}", file.display());
    let bytes = fs::read(file).map_err(|error| failed(error.to_string()))?;
    Paths::parse(&bytes).map_err(failed)
}

impl Prepared {
    /// Determines how to reach the server.
    ///
    /// # Errors
    /// Returns a sentence that states what failed.
    pub(super) async fn dial(&self, options: &Options) -> Result<Dial, String> {
        let trust = match &options.cacert {
            _ if options.insecure => Trust::All,
            Some(path) => Trust::File(path),
            None => Trust::System,
        };
        let tls = self.url.tls.then(|| tls::connector(&self.url.host, trust));
        let peer = match &options.unix {
            Some(path) => Peer::Unix(path.clone()),
            None => Peer::Tcp(self.address().await?),
        };
        if let Peer::Tcp(address) = &peer
            && let Some(other) = options
                .source
                .iter()
                .find(|source| source.is_ipv4() != address.is_ipv4())
        {
            return Err(format!(
                "--source {other}: the server's address {address} belongs to the other address family"
            ));
        }
        Ok(Dial {
            peer,
            tls: tls.transpose()?,
            sources: options.source.clone(),
            limit: options.connect_timeout,
        })
    }

    /// Returns the address of the host: if there are several, the first that accepts a connection.
    async fn address(&self) -> Result<SocketAddr, String> {
        let Url { host, port, .. } = &self.url;
        if let Ok(address) = host.parse() {
            return Ok(SocketAddr::new(address, *port));
        }
        let found = Resolver::current().lookup_ip(host).await;
        let found = found.map_err(|error| error.to_string())?;
        let addresses = found.iter().map(|address| SocketAddr::new(*address, *port));
        let addresses: Vec<SocketAddr> = addresses.collect();
        if let [only] = &*addresses {
            return Ok(*only);
        }
        let stream = TcpStream::connect(&*addresses).await;
        let stream = stream.map_err(|error| format!("{host}: {error}"))?;
        stream.peer_addr().map_err(|error| error.to_string())
    }
}

/// Parses a method (RFC 9110, section 9.1).
pub(super) fn method(text: &str) -> Result<String, String> {
    match is_token(text) {
        true => Ok(text.to_owned()),
        false => Err("expected a method such as GET".to_owned()),
    }
}

/// Parses a field (RFC 9110, section 5).
pub(super) fn field(text: &str) -> Result<(String, String), String> {
    let expected = || "expected a name and a value, as in `Accept: text/html`".to_owned();
    let (name, value) = text.split_once(':').ok_or_else(expected)?;
    let value = value.trim();
    let is_good = is_token(name) && !value.contains(|c: char| c.is_control() && c != '\t');
    is_good
        .then(|| (name.to_owned(), value.to_owned()))
        .ok_or_else(expected)
}

fn is_token(text: &str) -> bool {
    let is_good = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(is_good)
}
