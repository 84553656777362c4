//! A web server: a network of stages, with a connection as a color.
