//! `mnemon man`

use std::path::PathBuf;

use super::door::Door;
use mnemon_operations::Error;

/// Write the manual pages, one per command, into a folder
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    mnemon man man1\n  \
    mkdir -p ~/.local/share/man/man1 && mnemon man ~/.local/share/man/man1")]
pub(super) struct Args {
    /// Folder for the pages; it is created if it does not exist
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

pub(super) fn run(args: Args, door: &mut Door) -> Result<(), Error> {
    let mut pages = Vec::new();
    let mut command = super::command();
    command.build();
    collect(&command, "mnemon", &mut pages);
    std::fs::create_dir_all(&args.folder).map_err(Error::file("written", &args.folder))?;
    for (name, page) in &pages {
        let path = args.folder.join(format!("{name}.1"));
        std::fs::write(&path, page).map_err(Error::file("written", &path))?;
    }
    let folder = args.folder.display();
    return_json!(
        door,
        &serde_json::json!({ "folder": folder.to_string(), "pages": pages.len() })
    );
    say!(door, "wrote {} pages to {folder}", pages.len())
}

/// The page of a command, then those of its subcommands.
fn collect(command: &clap::Command, name: &str, pages: &mut Vec<(String, String)>) {
    pages.push((name.to_owned(), page(command, name)));
    let below = command.get_subcommands();
    for command in below.filter(|command| command.get_name() != "help") {
        collect(command, &format!("{name}-{}", command.get_name()), pages);
    }
}

/// A page for `man`: the help of the command as it is, with its lines kept.
fn page(command: &clap::Command, name: &str) -> String {
    let about = command.get_about().map(ToString::to_string);
    let help = command.clone().render_long_help().to_string();
    let lines: Vec<String> = help.lines().map(escaped).collect();
    format!(
        ".TH {} 1 \"\" \"mnemon {}\"\n.SH NAME\n{} \\- {}\n.SH DESCRIPTION\n.nf\n{}\n.fi\n",
        name.to_uppercase(),
        env!("CARGO_PKG_VERSION"),
        escaped(name),
        escaped(&about.unwrap_or_default()),
        lines.join("\n")
    )
}

/// A line that means nothing else to `man`.
fn escaped(line: &str) -> String {
    let line = line.replace('\\', "\\e").replace('-', "\\-");
    match line.starts_with(['.', '\'']) {
        true => format!("\\&{line}"),
        false => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_a_page() {
        let mut pages = Vec::new();
        let mut command = super::super::command();
        command.build();
        collect(&command, "mnemon", &mut pages);
        let names: Vec<&str> = pages.iter().map(|(name, _)| name.as_str()).collect();
        assert!(names.contains(&"mnemon") && names.contains(&"mnemon-agent-lint"));
        assert_eq!(escaped(".a\\b-c"), "\\&.a\\eb\\-c");
        for (name, page) in &pages {
            assert!(page.starts_with(".TH MNEMON"), "{name}");
            assert!(
                page.contains(" \\- ") && page.contains("Usage: mnemon"),
                "{name}: {page}"
            );
        }
    }
}
