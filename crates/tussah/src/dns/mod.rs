//! Name resolution (DNS: RFC 1034, RFC 1035), built on the hickory library with tussah's sockets,
//! timers and threads.
//!
//! ```
//! use tussah::dns::Resolver;
//! # let runtime = tussah::Runtime::builder().workers(1).build()?;
//! # runtime.block_on(runtime.spawn(async move {
//! for address in Resolver::current().lookup_ip("localhost").await? {
//!     println!("{address}");
//! }
//! # Ok::<_, tussah::dns::Error>(())
//! # })).expect("no panic")?;
//! # std::io::Result::Ok(())
//! ```

// The library provides the wire format, the exchange of messages over UDP and TCP, the cache, and
// the hosts file. This module provides its environment (`provider.rs`), the exchange with one
// server and the filter for its answers (`exchange.rs`, `believe.rs`), the order of servers and the
// sharing of answers (`client.rs`), and the candidates for a name (`names.rs`). The library's own
// resolver is not used: it only knows the operating system's clock, leaves threads behind, and
// forgets which server sent which answer.

mod answer;
mod believe;
mod client;
mod config;
mod core;
mod error;
mod exchange;
mod names;
mod plan;
mod provider;
mod resolver;

pub use answer::{IpAddresses, Mx, Records, Srv, Txt};
pub use config::{IpStrategy, ResolverBuilder, ServerOrder};
pub use error::Error;
pub(crate) use plan::{FullName, Plan};
pub use resolver::Resolver;
