//! A web server, built as a network of stages. By default, each connection has its own color.

pub(crate) mod answer;
pub(crate) mod connection;
pub(crate) mod diagnostics;
pub(crate) mod server;
pub(crate) mod stages;
// The modules that need no runtime: files below a root, the settings, and the access log.
pub mod access_log;
pub mod config;
pub mod site;

pub use answer::reply::{Reply, ReplyBody, ReplyStream};
pub use answer::request_body::RequestBody;
pub use answer::route::{Request, Route, Routes};
pub use server::running::{Running, Stopped};
pub use server::serve::{Web, WebError};
pub use server::{port, tls};
pub use tussah_wire::http::{Method, Status};
