//! The servers and the command, from outside.

mod load;
