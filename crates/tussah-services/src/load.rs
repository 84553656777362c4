//! A load generator for web servers.
