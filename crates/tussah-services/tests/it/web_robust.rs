//! `tussah web` when its clients, its files and its system fail it, as a process of its own.

mod client;
mod files;
mod listen;
mod process;
mod proxies;
mod secure;
mod slow;
mod vanish;
