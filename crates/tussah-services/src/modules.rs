//! HTTP modules for flow graphs.
//!
//! [`HttpListen`] is a source of [`Request`]s, and [`HttpReply`] sends the [`Response`]s that a
//! graph creates for them. Both modules handle connections with the code of the [web
//! server](crate::web).
//!
//! ```
//! use tussah::flow::{Out, Params, module};
//! use tussah_services::modules::{self, Request, Response};
//!
//! /// Greets.
//! #[derive(Default)]
//! struct Hello;
//!
//! #[module]
//! impl Hello {
//!     fn run(&self, request: Request, out: &impl Out<Response>) {
//!         let text = format!("Hello from {}\n", request.path());
//!         out.send(request.respond(text));
//!     }
//! }
//!
//! let text = r#"
//!     use HttpListen, Hello, HttpReply
//!     graph Greeter(listen: address = "127.0.0.1:8080") {
//!       requests = HttpListen(listen)
//!       hello    = Hello()
//!       reply    = HttpReply()
//!       requests -> hello -> reply
//!     }
//! "#;
//! let modules = modules::standard().with::<Hello>("Hello");
//! let graph = modules.graph("greeter.weave", text, &Params::new())?;
//! # Ok::<(), tussah::flow::WeaveError>(())
//! ```

mod answer;
mod http_listen;
mod http_reply;
mod parts;
mod request;
mod response;
mod wire;

use tussah::flow::Modules;
use tussah::modules;

pub use self::http_listen::HttpListen;
pub use self::http_reply::HttpReply;
pub use self::parts::{BodySender, Parts};
pub use self::request::Request;
pub use self::response::{Body, Response};

/// Returns the standard modules of tussah and the HTTP modules. The generic modules among them can
/// also handle requests and responses as items.
#[must_use]
pub fn standard() -> Modules {
    modules::standard()
        .with::<HttpListen>("HttpListen")
        .with::<HttpReply>("HttpReply")
        .and(modules::generic::<Request>())
        .and(modules::by_field::<Request>())
        .and(modules::generic::<Response>())
}
