//! `mnemon completions`

use clap_complete::Shell;

use super::door::Door;
use crate::Error;

/// Print the completions for a shell
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    mnemon completions bash > ~/.local/share/bash-completion/completions/mnemon\n  \
    mnemon completions fish > ~/.config/fish/completions/mnemon.fish\n  \
    mnemon completions zsh > ~/.zfunc/_mnemon")]
pub(super) struct Args {
    /// The shell
    shell: Shell,
}

pub(super) fn run(args: Args, door: &mut Door) -> Result<(), Error> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut super::command(), "mnemon", &mut script);
    door.out.bytes(&script)
}
