//! The command line of Mnemon. It decodes arguments, calls the operations, here or on a server, and
//! prints the answers. This is the only crate that prints.

pub mod cli;
