//! Standard modules for graphs: networks, files, and modules for items of any type.
//!
//! They use the public interface only, so a program can have modules like these of its own.
//! [`standard`] lists them for graphs from text. The generic ones are listed once for each type of
//! items: [`generic`] and [`by_field`] do that for the types of a program.
//!
//! ```
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
//! # Ok::<(), tussah::flow::WeaveError>(())
//! ```

mod files;
mod framing;
mod generic;
mod items;
mod net;

use std::fmt::Debug;
use std::path::PathBuf;

pub use self::files::{Contents, DirectoryList, FileAppend, FileLines, LinesOut, ReadFile};
pub use self::generic::{
    Counter, DeadLetter, Delay, FaultInjector, Filter, Join, Logger, Retry, Split, Throttle, Timer,
    Waiting,
};
pub use self::items::{Attempt, Message};
pub use self::net::{Peer, Reply, TcpListen, TcpSend, UdpListen, UdpSend};

use crate::flow::{Fields, Modules};

/// Returns the standard modules: those that are not generic, and the generic ones for the items of
/// these.
#[must_use]
pub fn standard() -> Modules {
    Modules::new()
        .with::<TcpListen>("TcpListen")
        .with::<Reply>("Reply")
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
        .and(generic::<PathBuf>())
        .and(generic::<u64>())
}

/// Returns the modules for items of any type, for items of type `T` and failed attempts at them.
///
/// [`Join`] has two types, and is not among them.
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

/// Returns the modules that look at the fields of items, for items of type `T`.
#[must_use]
pub fn by_field<T: Fields + Clone + Send + 'static>() -> Modules {
    Modules::new()
        .with::<Filter<T>>("Filter")
        .with::<Split<T>>("Split")
}
