//! Resolving names (DNS: RFC 1034, RFC 1035), with the library hickory on our own sockets, timers and threads.
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

// The library has the wire format, the exchange of messages by UDP and TCP, the cache, and the file of hosts. Ours is what it stands
// on (`provider.rs`), how one server is asked and what of its answer is believed (`exchange.rs`, `believe.rs`), who is
// asked next and who waits for the answer (`client.rs`), and what a name may stand for (`names.rs`). The library's own
// resolver is not used: it knows only the operating system's clock, leaves threads behind, and forgets which server said what.

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

pub use answer::{Addresses, Mx, Records, Srv, Txt};
pub use config::{IpStrategy, ResolverBuilder, ServerOrder};
pub use error::Error;
pub(crate) use plan::{FullName, Plan};
pub use resolver::Resolver;
