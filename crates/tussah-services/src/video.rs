//! A server for video on demand: a flow graph in which each stream is a flow.
//!
//! The server sends the first minute of a video immediately, and then another five seconds every
//! five seconds (section 5.2 of Upadhyaya, Pai and Midkiff, "Expressing and Exploiting Concurrency
//! in Networked Applications with Aspen", PPoPP 2007). The server admits a stream only if the disk
//! that holds the video can read it in time. An admitted stream is never late as long as the disk
//! sustains the rate that is stated or measured for that disk; `docs/video.md` explains why.

mod cli;
mod clock;
mod disk;
mod find;
mod graph;
mod library;
mod options;
mod pace;
mod play;
mod playlist;
mod seats;
mod server;
mod status;

pub use cli::{Arguments, run};
pub use options::{DiskOptions, Options, RateError, read_rate};
pub use server::{Running, Video, VideoError};
