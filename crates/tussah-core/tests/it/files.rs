//! File operations below the public interface, in both forms: buffers that the kernel holds, drops,
//! and order.

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
