//! The servers and the command, from outside.

mod config;
mod load;
mod site;
mod web;
mod web_robust;
