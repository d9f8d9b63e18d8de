//! The program: everything is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    mnemon_cli::cli::main().into()
}
