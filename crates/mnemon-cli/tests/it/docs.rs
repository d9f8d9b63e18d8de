//! Documentation that cannot go stale: it is written from the code, and a test says when it is not.
//! `UPDATE_DOCS=1 cargo test -p mnemon-cli docs` writes it anew.

use std::fmt::Write;
use std::path::Path;

use mnemon_cli::cli;
use mnemon_core::ErrorKind;
use mnemon_operations::{code, env_vars};

use crate::sandbox::Sandbox;

#[track_caller]
pub(crate) fn keep(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs")
        .join(name);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(
        kept, text,
        "docs/{name} is stale: run UPDATE_DOCS=1 cargo test -p mnemon-cli docs"
    );
}

#[test]
fn the_command_line_is_documented() {
    let mut text = String::from(
        "# The command line\n\nWritten from the code; do not edit.\n\
         Every command takes the global options, too.\n",
    );
    let mut command = cli::command().term_width(100);
    command.build();
    section(&mut text, &mut command, "mnemon");
    text.push_str(
        "\n## Exit codes\n\n| code | kind | remedy |\n|---|---|---|\n| 0 | | it worked |\n",
    );
    for kind in ErrorKind::ALL {
        let row = code::of(kind);
        writeln!(
            text,
            "| {} | {} | {} |",
            row.exit,
            serde_json::json!(kind).as_str().unwrap(),
            row.hint
        )
        .unwrap();
    }
    keep("cli.md", &text);
}

fn section(text: &mut String, command: &mut clap::Command, name: &str) {
    let help = command.render_long_help().to_string();
    let lines: Vec<&str> = help.lines().map(str::trim_end).collect();
    writeln!(
        text,
        "\n## {name}\n\n```text\n{}\n```",
        lines.join("\n").trim_end()
    )
    .unwrap();
    let names: Vec<String> = command
        .get_subcommands()
        .map(|inner| inner.get_name().to_owned())
        .filter(|inner| inner != "help")
        .collect();
    for inner in names {
        let command = command.find_subcommand_mut(&inner).unwrap();
        // Once is enough for what every command has.
        *command = command.clone().mut_args(|arg| {
            let of_all = [
                "store", "tenant", "json", "config", "color", "quiet", "verbose",
            ];
            let hidden = arg.is_hide_set() || of_all.contains(&arg.get_id().as_str());
            arg.hide(hidden)
        });
        section(text, command, &format!("{name} {inner}"));
    }
}

#[test]
fn the_environment_is_documented() {
    let mut text = String::from(
        "# Environment variables\n\nWritten from the code; do not edit.\n\
         A flag beats a variable, a variable beats the file, the file beats the default: \
         `mnemon config` shows which it was.\n\n| variable | meaning |\n|---|---|\n",
    );
    for var in env_vars::ALL {
        writeln!(text, "| `{}` | {} |", var.name, var.about).unwrap();
    }
    keep("env.md", &text);
}

#[test]
fn help_is_helpful() {
    let sandbox = Sandbox::new();
    insta::assert_snapshot!(sandbox.run(&["--help"]).ok());
    insta::assert_snapshot!(sandbox.run(&["list", "-h"]).ok());
}
