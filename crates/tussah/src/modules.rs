//! Standard modules for graphs: network and file modules, and generic modules for items of any
//! type.
//!
//! These modules use only the public interface, so a program can define its own modules in the same
//! way. `standard` provides the modules to graphs written in Weave. A program adds the generic
//! modules for its own item types with [`generic`] and [`by_field`], once for each type.
//!
//! ```
//! # #[cfg(feature = "standard-modules")]
//! # fn main() -> Result<(), tussah::flow::WeaveError> {
//! use tussah::flow::{Out, Params, module};
//! use tussah::modules::{self, Message};
//!
//! /// Turns lines round.
//! #[derive(Default)]
//! struct Reverse;
//!
//! #[module]
//! impl Reverse {
//!     fn run(&self, Message { bytes, peer }: Message, out: &impl Out<Message>) {
//!         out.send(Message::new(peer, bytes.into_iter().rev().collect::<Vec<_>>()));
//!     }
//! }
//!
//! let text = r#"
//!     use TcpListen, Reverse, Reply
//!     graph Service(listen: address = "127.0.0.1:0") {
//!       clients = TcpListen(listen)
//!       reverse = Reverse()
//!       reply   = Reply()
//!       clients -> reverse -> reply
//!     }
//! "#;
//! let modules = modules::standard().with::<Reverse>("Reverse");
//! let graph = modules.graph("service.weave", text, &Params::new())?;
//! # Ok(())
//! # }
//! # #[cfg(not(feature = "standard-modules"))]
//! # fn main() {}
//! ```

mod files;
mod framing;
mod generic;
mod items;
mod net;

use std::fmt::Debug;

pub use self::files::{Contents, DirectoryList, FileAppend, FileLines, LinesOut, ReadFile};
pub use self::framing::Framing;
pub use self::generic::{
    Counter, DeadLetter, Delay, FaultInjector, Filter, Join, Logger, Retry, Split, Throttle, Timer,
    Waiting,
};
pub use self::items::{Attempt, Message};
pub use self::net::{
    FilePart, Peer, Reply, SendFile, TcpDemand, TcpListen, TcpSend, UdpListen, UdpSend,
};

use crate::flow::{Fields, Modules};

/// Returns the standard modules: all non-generic modules, and the generic modules for the item
/// types that those modules use.
///
/// This needs the feature `standard-modules`. A graph that is compiled into a program (`weave!`) or
/// built by hand does not need it.
#[cfg(feature = "standard-modules")]
#[must_use]
pub fn standard() -> Modules {
    Modules::new()
        .with::<TcpDemand>("TcpDemand")
        .with::<TcpListen>("TcpListen")
        .with::<Reply>("Reply")
        .with::<SendFile>("SendFile")
        .with::<TcpSend>("TcpSend")
        .with::<UdpListen>("UdpListen")
        .with::<UdpSend>("UdpSend")
        .with::<FileLines>("FileLines")
        .with::<FileAppend>("FileAppend")
        .with::<DirectoryList>("DirectoryList")
        .with::<ReadFile>("ReadFile")
        .with::<LinesOut>("LinesOut")
        .with::<Timer>("Timer")
        .and(generic::<Message>())
        .and(by_field::<Message>())
        .and(generic::<std::path::PathBuf>())
        .and(generic::<FilePart>())
        .and(generic::<u64>())
        .and(each::<Contents>())
        .and(each::<std::net::SocketAddr>())
        .and(each::<String>())
}

/// Returns the generic modules for items of the types `T` and [`Attempt<T>`].
///
/// [`Join`] is not included, because it has two type parameters.
#[must_use]
pub fn generic<T: Clone + Debug + Send + 'static>() -> Modules {
    Modules::new()
        .with::<Retry<T>>("Retry")
        .and(each::<T>())
        .and(each::<Attempt<T>>())
}

fn each<T: Clone + Debug + Send + 'static>() -> Modules {
    Modules::new()
        .with::<Counter<T>>("Counter")
        .with::<DeadLetter<T>>("DeadLetter")
        .with::<Delay<T>>("Delay")
        .with::<FaultInjector<T>>("FaultInjector")
        .with::<Logger<T>>("Logger")
        .with::<Throttle<T>>("Throttle")
}

/// Returns the generic modules that read fields of their items, for items of type `T`.
#[must_use]
pub fn by_field<T: Fields + Clone + Send + 'static>() -> Modules {
    Modules::new()
        .with::<Filter<T>>("Filter")
        .with::<Split<T>>("Split")
}
