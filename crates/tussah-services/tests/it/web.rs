//! `tussah web`, spoken to over sockets.

mod applications;
mod bodies;
mod cache;
mod client;
mod conditions;
mod connections;
mod corpus;
mod cut;
mod files;
mod gone;
mod guestbook;
mod idle;
mod methods;
mod pages;
mod ranges;
mod routes;
mod scripts;
mod server;
mod slow_clients;
mod status;
mod streams;
mod uploads;
