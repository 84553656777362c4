//! What the runtime promises, tried from outside.

mod basic;
