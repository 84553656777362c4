//! `tussah web` when its clients, its files and its system fail it, as a process of its own.

mod applications;
mod client;
mod descriptors;
mod diagnostics;
mod files;
mod life;
mod listen;
mod overload;
mod places;
mod popular;
mod process;
mod proxies;
mod reload;
mod secure;
mod slow;
mod stop;
mod vanish;
