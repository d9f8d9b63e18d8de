//! Every operation has the same fields at every interface.

use std::collections::BTreeSet;

use crate::cli;
use mnemon_operations::operation::{Definition, Field, Interface, Spelling, all};
use mnemon_server::mcp;

/// Arguments that steer the command itself: whether it asks, and how it prints.
const OF_COMMANDS: &[&str] = &[
    "yes", "dry_run", "explain", "full", "step", "format", "strict",
];
/// The same, where the name is that of a field of another operation.
const OF_ONE_COMMAND: &[(&str, &str)] = &[
    ("add", "jsonl"),
    ("agent end", "data"),
    ("chat delete", "snapshot"),
    ("chat prepare", "model"),
    ("doctor", "repair"),
    ("history", "follow"),
    ("session save", "file"),
    ("skill export", "folder"),
    ("skill import", "from"),
];
/// Fields that steer the length of an answer.
const OF_TOOLS: &[&str] = &["max_tokens"];

fn names(fields: &[Field], interface: Interface) -> BTreeSet<String> {
    let here = fields.iter().filter(|field| field.is_on(interface));
    let names = here.flat_map(|field| match (interface, field.spelling) {
        (Interface::CommandLine, Spelling::Parts) => {
            let parts = field.inner().iter();
            parts
                .map(|part| format!("{}.{}", field.name, part.name))
                .collect()
        }
        _ => vec![field.name.to_owned()],
    });
    names.collect()
}

fn arguments(command: &str) -> BTreeSet<String> {
    let mut found = cli::command();
    for word in command.split(' ') {
        let inner = found.find_subcommand(word);
        found = inner
            .unwrap_or_else(|| panic!("no command {command}"))
            .clone();
    }
    let shown = found.get_arguments().filter(|arg| !arg.is_hide_set());
    let ids = shown.map(|arg| arg.get_id().to_string());
    let is_own = |id: &str| OF_COMMANDS.contains(&id) || OF_ONE_COMMAND.contains(&(command, id));
    ids.filter(|id| !is_own(id)).collect()
}

#[test]
fn every_operation_has_the_same_fields_at_every_interface() {
    for definition in all() {
        let Definition {
            command,
            tool,
            fields,
        } = definition;
        if !command.is_empty() {
            let fields = names(&fields, Interface::CommandLine);
            assert_eq!(arguments(command), fields, "{command}");
        }
        if tool.is_empty() {
            continue;
        }
        let schema = mcp::schema_of(tool).unwrap_or_else(|| panic!("no tool {tool}"));
        let properties = schema["properties"].as_object().unwrap().keys().cloned();
        let properties = properties.filter(|name| !OF_TOOLS.contains(&name.as_str()));
        assert_eq!(
            properties.collect::<BTreeSet<_>>(),
            names(&fields, Interface::Mcp),
            "{tool}"
        );
    }
}

#[test]
fn what_only_one_interface_has_is_little() {
    let owner = ["agent", "session", "flow", "node"];
    for Definition {
        command,
        tool,
        fields,
    } in all()
    {
        // What has only a command or only a tool has one interface.
        for field in fields
            .into_iter()
            .filter(|_| !command.is_empty() && !tool.is_empty())
        {
            let is_shared = field.is_on(Interface::CommandLine) && field.is_on(Interface::Mcp);
            let is_known =
                owner.contains(&field.name) || ONE_INTERFACE.contains(&(command, field.name));
            assert!(is_shared || is_known, "{command}: {}", field.name);
        }
    }
}

/// Fields of one interface: the command, and why the tool does without it.
const ONE_INTERFACE: &[(&str, &str)] = &[
    // A server belongs to one project, and its window has one size.
    ("chat append", "files"),
    ("chat prepare", "files"),
    ("chat reload", "files"),
    ("chat query", "files"),
    ("chat append", "max_token"),
    ("chat append", "msg_threshold"),
    ("chat append", "last_keep"),
    ("chat append", "model"),
    ("chat append", "leave_window"),
    // A server uses long-term memory as it was started.
    ("chat prepare", "mode"),
    // A model appends what it says, not files.
    ("chat append", "jsonl"),
    ("chat append", "line"),
    // A tool answers a page at a time.
    ("chat prepare", "from"),
    ("chat reload", "from"),
    // A model has no use for another ranking, nor for finer filters.
    ("search", "recipe"),
    ("search", "scope"),
    ("search", "source"),
    ("search", "until"),
    ("search", "filter"),
    ("search", "own"),
    ("note list", "own"),
    // The command shows it, or the whole content with --full.
    ("search", "include_content"),
    // The tool always shows the content, as much as fits.
    ("note get", "content"),
    ("note get", "length"),
    // There is a tool for each.
    ("note clear", "namespace"),
    // A tool's answer is text for the model that reads it.
    ("context", "model"),
    ("context", "form"),
    ("context", "floors"),
    ("context", "ceilings"),
    // There is a tool that creates an agent, and a command that removes an entry.
    ("agent context", "create"),
    ("agent decide", "create"),
    ("agent learn", "create"),
    ("agent end", "create"),
    ("agent edit", "remove"),
    ("team edit", "remove"),
];
