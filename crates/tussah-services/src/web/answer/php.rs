//! Pages of FastCGI applications, such as php-fpm, which runs the scripts of a site.

mod known;

use std::borrow::Cow;
use std::fs;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::ffi::OsStrExt as _;
use std::path;
use std::sync::Arc;

use futures_lite::{Stream, StreamExt as _, future, stream};
use tussah::Handle;
use tussah_wire::cgi::{self, Context};
use tussah_wire::http::{Framing, Status};

use known::Known;

use super::reply::{Reply, ReplyBody, ReplyStream};
use super::request_body::RequestBody;
use super::route::{Answer, Ends, Request, Route, Routes};
use super::spool::{self, Arrival, Output};
use crate::fastcgi::{Backend, Failure, Params, Response};
use crate::web::config::{Config, FastCgi, FastCgiPaths};
use crate::web::site::{Codings, Found, Missing, Site, SiteError, is_exhausted};

/// Bound, in bytes: a response whose body has arrived completely is sent whole, with its length, up
/// to this length. A longer response is streamed.
const WHOLE_BYTES: usize = 64 * 1024;

/// The room for the variables that come from the server and from the request line, in bytes.
const VARIABLES_BYTES: usize = 768;

/// The applications of a configuration, with their pools of connections.
pub(crate) type Backends = Vec<(FastCgi, Backend)>;

/// A site, some of whose paths an application answers.
struct Scripts {
    site: Site,
    /// The absolute path of the root.
    root: Vec<u8>,
    software: Vec<u8>,
    application: FastCgi,
    backend: Backend,
    known: Known,
}

/// Returns the applications of a configuration. Those with the same address and limits share a
/// pool, and so does one that had them before. Otherwise the idle connections of one pool could
/// occupy all processes of php-fpm, and another pool would wait for them forever.
pub(crate) fn backends(config: &Config, before: &Backends) -> Backends {
    let mut backends = Backends::new();
    for application in config.applications() {
        let is_same = |other: &&(FastCgi, Backend)| {
            let (other, _) = other;
            (&other.address, &other.options) == (&application.address, &application.options)
        };
        let backend = match before.iter().chain(&backends).find(is_same) {
            Some((_, backend)) => backend.clone(),
            None => Backend::new(application.address.clone(), application.options.clone()),
        };
        backends.push((application, backend));
    }
    backends
}

/// Adds the route of an application.
pub(crate) fn route(
    routes: Routes,
    config: &Config,
    (application, backend): &(FastCgi, Backend),
) -> Result<Routes, SiteError> {
    let site = config.open_site()?;
    // An application needs an absolute path, whose links it can also resolve itself.
    let root = fs::canonicalize(&config.root).or_else(|_| path::absolute(&config.root));
    let root = root.unwrap_or_else(|_| config.root.clone());
    let scripts = Arc::new(Scripts {
        site,
        root: root.as_os_str().as_bytes().to_vec(),
        software: config.server_header.clone().unwrap_or_default().into(),
        application: application.clone(),
        backend: backend.clone(),
        known: Known::new(Handle::current().clock()),
    });
    let handler = move |request| {
        let scripts = Arc::clone(&scripts);
        async move { run(scripts, request).await }
    };
    // A script cannot tell a dropped request from a broken connection, and PHP ends it only when it
    // next writes. Only GET and HEAD are therefore cancelled, as in other routes.
    let route = Route::with_answer(handler).of_application().streams();
    Ok(routes
        .route_with(&application.paths.route(), route)
        .limit(backend.limit()))
}

/// Answers a request with the output of its script, once its body has arrived.
async fn run(scripts: Arc<Scripts>, mut request: Request) -> Answer {
    let script = match script(&scripts, &request.path).await {
        Ok(script) => script,
        Err(status) => return Answer::Reply(Reply::status(status)),
    };
    let body = spool::with_len(request.take_body(), scripts.application.buffering).await;
    let body = match body {
        Arrival::Here(body) => body,
        Arrival::Later(keeping) => {
            let kept = async move {
                let kept = keeping.await;
                kept.map_err(|failure| match failure {
                    Failure::Body(error) if error.kind() == io::ErrorKind::UnexpectedEof => None,
                    failure => Some(report(&scripts, &script.name, &failure)),
                })
            };
            return Answer::Later(Box::pin(kept));
        }
    };
    let reply = ask(&scripts, request, body, &script).await;
    Answer::Reply(reply.unwrap_or_else(|failure| {
        let status = report(&scripts, &script.name, &failure);
        Reply::status(status)
    }))
}

/// Reports a failure to the log, and returns the status of the response.
fn report(scripts: &Scripts, name: &[u8], failure: &Failure) -> Status {
    let script = String::from_utf8_lossy(name);
    let backend = scripts.backend.address();
    let status = failure.status();
    let code = status.code();
    if let Failure::Body(_) = failure {
        // The client's fault, or it has left.
        tracing::info!(%backend, ?script, "answered {code}: {failure}");
    } else {
        tracing::warn!(%backend, ?script, "answered {code}: {failure}");
    }
    status
}

/// A script, as the variables name it.
struct Script {
    name: Vec<u8>,
    path_info: Vec<u8>,
}

/// Returns the script for a path, or the status of the response without one.
async fn script(scripts: &Arc<Scripts>, path: &[u8]) -> Result<Script, Status> {
    let application = &scripts.application;
    let (name, path_info) = match &application.paths {
        FastCgiPaths::Prefix(prefix) => path.split_at(prefix.len() - 1),
        FastCgiPaths::Suffix(suffix) if application.path_info => {
            cgi::split_path_info(path, suffix.as_bytes())
        }
        FastCgiPaths::Suffix(_) => (path, &b""[..]),
    };
    let found = match application.paths {
        FastCgiPaths::Prefix(_) => name.to_vec(),
        FastCgiPaths::Suffix(_) => find(scripts, name).await?,
    };
    // The fallback knows the path only by `REQUEST_URI`, as behind nginx.
    let path_info = if found == name { path_info } else { b"" };
    Ok(Script {
        name: found,
        path_info: path_info.to_vec(),
    })
}

/// Returns the path of a script, which is a file of the site by the rules for all files. The
/// application is not asked about others. It knows best whether a script is gone for less than a
/// second.
async fn find(scripts: &Arc<Scripts>, name: &[u8]) -> Result<Vec<u8>, Status> {
    if let Some(path) = scripts.known.get(name) {
        return Ok(path);
    }
    let found = match scripts.site.try_look_up(name, Codings::NONE) {
        Err(Missing::WouldBlock) => {
            let (scripts, name) = (Arc::clone(scripts), name.to_vec());
            let look = move || scripts.site.look_up(&name, Codings::NONE);
            let looked = tussah::spawn_blocking(look).await;
            looked.map_err(|_| Status::INTERNAL_SERVER_ERROR)?
        }
        found => found,
    };
    match found {
        Ok(Found::Script { path }) => {
            scripts.known.add(name, &path);
            Ok(path)
        }
        Ok(_) | Err(Missing::NotFound) => Err(Status::NOT_FOUND),
        Err(Missing::Forbidden | Missing::NotAFile) => Err(Status::FORBIDDEN),
        Err(Missing::WouldBlock) => Err(Status::INTERNAL_SERVER_ERROR),
        Err(Missing::Io(error)) => {
            let script = String::from_utf8_lossy(name);
            tracing::warn!(?script, "cannot look for the script: {error}");
            Err(match is_exhausted(&error) {
                true => Status::SERVICE_UNAVAILABLE,
                false => Status::INTERNAL_SERVER_ERROR,
            })
        }
    }
}

/// Sends a request to the application. The variables take the place of the request before the
/// application is asked, because the future would be much longer with it.
async fn ask(
    scripts: &Scripts,
    request: Request,
    body: RequestBody,
    script: &Script,
) -> Result<Reply, Failure> {
    let params = params(scripts, &request, &body, script);
    drop(request);
    let response = scripts.backend.request(params, body).await?;
    reply(scripts, &script.name, response).await
}

/// Returns the variables for a request. Those of the configuration override others.
fn params(scripts: &Scripts, request: &Request, body: &RequestBody, script: &Script) -> Params {
    let len = body.announced_len().unwrap_or(0);
    let Ends {
        remote,
        local,
        is_https,
    } = request.ends.unwrap_or_default();
    // A trusted proxy specifies the client, but not its port.
    let remote = match request.client {
        Some(client) if client != remote.ip().to_canonical() => SocketAddr::new(client, 0),
        _ => remote,
    };
    let host = request.head.host(&request.bytes).map(without_port);
    let host = host.filter(|host| !host.is_empty());
    let server_name = match host {
        Some(host) => host.into(),
        None => Cow::Owned(local.ip().to_string().into_bytes()),
    };
    let context = Context {
        script_name: &script.name,
        path_info: &script.path_info,
        document_root: &scripts.root,
        content_length: match request.head.framing {
            Framing::None => None,
            _ => Some(len),
        },
        remote,
        local,
        server_name: &server_name,
        server_software: &scripts.software,
        is_https,
    };
    let others = &scripts.application.params;
    let is_other = |name: &[u8]| others.iter().any(|(other, _)| other.as_bytes() == name);
    let mut params = Params::with_capacity(request.bytes.len() + VARIABLES_BYTES);
    cgi::variables(&request.head, &request.bytes, &context, |name, value| {
        if !is_other(name) {
            params.push(name, value);
        }
    });
    params.extend(others.iter().map(|(name, value)| (name, value)));
    params
}

/// Returns a response. Its body is whole if it has arrived already, and is streamed otherwise.
async fn reply(
    scripts: &Scripts,
    name: &[u8],
    mut response: Response<RequestBody>,
) -> Result<Reply, Failure> {
    let text = |bytes: &[u8]| match str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => String::from_utf8_lossy(bytes).into_owned(),
    };
    let media_type = response.content_type().map(text);
    let fields = response.fields();
    let fields = fields.map(|(name, value)| (text(name), text(value)));
    let mut reply = Reply {
        status: response.head().status,
        media_type: media_type.unwrap_or_else(|| "application/octet-stream".to_owned()),
        fields: fields.collect(),
        body: ReplyBody::Bytes(Vec::new()),
    };
    let len = response.head().content_length;
    let mut first = Vec::new();
    while first.len() < WHOLE_BYTES {
        match future::poll_once(response.chunk()).await.transpose()? {
            Some(Some(chunk)) if first.is_empty() => first = chunk,
            Some(Some(chunk)) => first.extend(chunk),
            Some(None) => {
                reply.body = match len {
                    // Only a response to HEAD may omit the body that it announces.
                    Some(len @ 1..) if first.is_empty() => {
                        ReplyBody::Stream(ReplyStream::new(stream::empty()).with_len(len))
                    }
                    _ => ReplyBody::Bytes(first),
                };
                return Ok(reply);
            }
            None => break,
        }
    }
    let rest = match scripts.application.buffering {
        true => Output::new(response).chunks().boxed(),
        false => unbuffered(response).boxed(),
    };
    let (script, backend) = (text(name), scripts.backend.address().clone());
    let rest = rest.map(move |chunk| {
        chunk.map_err(|failure| {
            tracing::warn!(%backend, ?script, "ended the response early: {failure}");
            io::Error::other(failure)
        })
    });
    let chunks = stream::once(Ok(first)).chain(rest);
    reply.body = ReplyBody::Stream(match len {
        Some(len) => ReplyStream::new(chunks).with_len(len),
        None => ReplyStream::new(chunks),
    });
    Ok(reply)
}

/// Returns the chunks of a body, for which the application waits until the client takes them.
fn unbuffered(response: Response<RequestBody>) -> impl Stream<Item = Result<Vec<u8>, Failure>> {
    stream::try_unfold(response, async |mut response| {
        let chunk = response.chunk().await?;
        Ok(chunk.map(|chunk| (chunk, response)))
    })
}

/// Returns a host without its port.
fn without_port(host: &[u8]) -> &[u8] {
    let colon = host.iter().rposition(|&byte| byte == b':');
    match colon {
        // The colons of an IPv6 address are in brackets.
        Some(at) if !host[at..].contains(&b']') => &host[..at],
        _ => host,
    }
}

impl Default for Ends {
    /// The addresses of a connection over a Unix socket, which has none. They are not those of the
    /// local machine, which a script may trust.
    fn default() -> Self {
        let nowhere = SocketAddr::new(IpAddr::from([0, 0, 0, 0]), 0);
        Self {
            remote: nowhere,
            local: nowhere,
            is_https: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_lose_their_ports() {
        let check = |host: &str, expected: &str| {
            assert_eq!(without_port(host.as_bytes()), expected.as_bytes());
        };
        check("example.org", "example.org");
        check("example.org:8080", "example.org");
        check("[::1]:80", "[::1]");
        check("[::1]", "[::1]");
    }
}
