//! File operations below their public face, in both forms: what the kernel holds, what is dropped, in which order.

mod buffers;
mod cached;
mod cancel;
mod choice;
mod ended;
mod exits;
mod help;
mod jobs;
mod many;
mod order;
mod refused;
mod workers;
