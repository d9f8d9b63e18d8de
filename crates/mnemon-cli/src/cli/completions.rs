//! `mnemon completions`

use clap_complete::Shell;

use super::door::Door;
use mnemon_operations::Error;

/// Print the completions for a shell
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    mkdir -p ~/.local/share/bash-completion/completions\n  \
    mnemon completions bash > ~/.local/share/bash-completion/completions/mnemon\n  \
    mkdir -p ~/.config/fish/completions\n  \
    mnemon completions fish > ~/.config/fish/completions/mnemon.fish\n  \
    mkdir -p ~/.zfunc && mnemon completions zsh > ~/.zfunc/_mnemon")]
pub(super) struct Args {
    /// The shell
    shell: Shell,
}

pub(super) fn run(args: Args, door: &mut Door) -> Result<(), Error> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut super::command(), "mnemon", &mut script);
    door.out.bytes(&script)
}
