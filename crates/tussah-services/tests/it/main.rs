//! The servers and the command, from outside.

mod config;
mod fastcgi;
mod gnutella;
mod load;
mod modules;
mod site;
mod video;
mod weave;
mod web;
mod web_robust;
