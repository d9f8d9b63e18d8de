//! The JSON of the command line: every command prints what `docs/json.schema.json` says, and a field
//! has one name and one type everywhere. `docs/json.md` is written from the schema.

mod schema;

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

use mnemon_cli::cli;
use schema::Schema;
use serde_json::Value;

use crate::docs::keep;
use crate::sandbox::Sandbox;

/// Commands whose JSON has no documented shape, and why.
const UNDOCUMENTED: &[(&str, &str)] = &[
    ("agent", "it prints Markdown and names of files"),
    ("team", "it prints Markdown and names of files"),
    ("completions", "it prints a script"),
    ("config path", "it prints a path"),
    ("demo", "it prints text"),
    ("eval", "it writes a report of its own"),
    ("learn improve", "it needs a language model"),
    ("llm", "it reports on a language model"),
    ("man", "it writes manual pages"),
    ("mcp", "it speaks MCP"),
    ("model", "it downloads a model"),
    ("policy show", "it prints settings"),
    ("skill", "it answers like `skill approve`"),
    ("trust", "it prints settings"),
];

/// A command of the schema, and the arguments of a call. `NOTE`, `SKILL` and `UUID` stand for ids.
const CALLS: &str = r#"
add                     add 'Ann prefers green tea' --user ann --tag drinks --id a1
add                     add 'Ann prefers green tea, too' --user ann --importance 0.5
add                     add --id a1-b --derived-from a1 --metadata lang=en Tea
get                     get a1
list                    list --limit 1
search                  search green tea
search                  search tea --recipe formula
search                  search zebra
context                 context --user ann --query 'green tea'
context                 context --user ann --query tea --form messages
update                  update a1 'Ann prefers black tea'
forget --dry-run        forget a1 --dry-run
forget                  forget a1
undo                    undo
history                 history --limit 2
stats                   stats
export                  export --user ann
export FILE             export out.jsonl
import                  import out.jsonl
backup                  backup copy.db
restore                 restore copy.db --check
restore                 restore copy.db --yes
write                   write --user ann --session s1 --scope procedural --data @skill.json
write                   write --user ann --session s1 --scope dialog --data '{"role":"user","content":"hi"}'
read                    read --user ann --session s1 --query tea
note add                note add 'The staging API answers with 429 after noon' --tag api
note add                note add 'The staging API answers with 429 after noon'
note add                note add 'The staging API answers with 429 after lunch'
note search             note search staging --content
note search             note search zebra
note get                note get NOTE
note get                note get NOTE --content --length 5
note list               note list --limit 1
note edit               note edit NOTE --ttl 2y
note delete             note delete NOTE
note stats              note stats
note cleanup            note cleanup
note clear              note clear short-term --dry-run
note clear              note clear short-term
chat append             chat append s1 'Where is the tea house?' --user ann
chat append --jsonl     chat append s1 --user ann --jsonl talk.jsonl
chat snapshot           chat snapshot s1 before --user ann
chat compress --dry-run chat compress s1 --user ann --last-keep 1 --dry-run
chat compress           chat compress s1 --user ann --last-keep 1
chat list               chat list
chat show               chat show s1 --user ann
chat reload             chat reload s1 UUID --user ann
chat tail               chat tail s1 --user ann -n 2
chat events             chat events s1 --user ann
chat query              chat query 'tea house' --user ann
chat prepare            chat prepare s1 --user ann
chat record             chat record s1 --user ann
chat fork               chat fork s1 s2 --user ann
chat restore            chat restore s1 before --user ann
chat clear              chat clear s2 --user ann
chat delete             chat delete s2 --user ann
session save            session save s1 --file state.json
session load            session load s1
session list            session list
session snapshot        session snapshot s1 before
session restore         session restore s1 before
session fork            session fork s1 s2
session delete          session delete s2 --yes
experience log          experience log '{"task_type":"deploy","tool":"run_cmd","input":{"cmd":"npm i"},"error":"no"}'
experience failures     experience failures
experience traces       experience traces
learn dry-run           learn dry-run
learn run               learn run
learn status            learn status
skill list              skill list
skill show              skill show SKILL
skill search            skill search deploy
skill approve           skill approve SKILL
skill export            skill export skills
skill import            skill import skills
ingest                  ingest docs
upkeep                  upkeep
reembed                 reembed
doctor                  doctor
config                  config
key create              key create ci --rights write --user ann --expires 90d
key list                key list
key rotate              key rotate KEY
key revoke              key revoke KEY
audit verify            audit verify
audit list              audit list --limit 2
init                    init
"#;

/// Columns of the first part of a line of [`CALLS`].
const COMMAND: usize = 24;

/// The lines of [`CALLS`]. Words with spaces stand between quotes.
pub(crate) fn calls() -> impl Iterator<Item = (&'static str, Vec<&'static str>)> {
    CALLS.trim().lines().map(|line| {
        let (command, args) = line.split_at(COMMAND);
        let parts = args.split('\'').enumerate();
        let words = parts.flat_map(|(at, part)| match at % 2 {
            0 => part.split_whitespace().collect(),
            _ => vec![part],
        });
        (command.trim(), words.collect())
    })
}

fn schema() -> Schema {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/json.schema.json");
    Schema::read(&std::fs::read_to_string(path).unwrap())
}

/// A folder with the files that the calls name.
pub(crate) fn prepared() -> Sandbox {
    let sandbox = Sandbox::new();
    std::fs::create_dir(sandbox.path("docs")).unwrap();
    sandbox.file(
        "docs/kettle.md",
        "# Kettle\n\nDescale the kettle with vinegar.\n",
    );
    let skill = r#"{"use_when":"deploy the app","task_type":"deploy","tool_sops":[{"tool_name":"run_cmd","action":"npm install"}]}"#;
    sandbox.file("skill.json", skill);
    sandbox.file("state.json", r#"{"memory": {"messages": []}}"#);
    let line = "{\"content\":\"The tea house in the old town opens at noon, and it serves green tea and cake.\"}\n";
    sandbox.file("talk.jsonl", line.repeat(8));
    sandbox
}

/// The id that a word of a call stands for.
pub(crate) fn meant(sandbox: &Sandbox, word: &str) -> String {
    let (args, pointer): (&[&str], _) = match word {
        "NOTE" => (&["note", "list", "--json"], "/notes/0/id"),
        "SKILL" => (&["skill", "list", "--json"], "/skills/0/id"),
        "KEY" => (&["key", "list", "--json"], "/keys/0/prefix"),
        "UUID" => (
            &["chat", "show", "s1", "--user", "ann", "--json"],
            "/messages/0/uuid",
        ),
        _ => return word.to_owned(),
    };
    let answer = sandbox.run(args).json();
    answer
        .pointer(pointer)
        .unwrap()
        .as_str()
        .unwrap()
        .to_owned()
}

#[test]
fn every_answer_has_its_documented_shape() {
    let (sandbox, schema) = (prepared(), schema());
    let mut wrong = Vec::new();
    for (command, args) in calls() {
        let args = args.iter().map(|word| meant(&sandbox, word));
        let mut args: Vec<String> = args.collect();
        args.push("--json".to_owned());
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let printed = sandbox.run(&args).ok();
        assert!(!printed.is_empty(), "{args:?}");
        for line in printed.lines() {
            let answer: Value = serde_json::from_str(line).unwrap();
            let found = schema.check(command, &answer);
            let found = found.iter().map(|found| format!("{args:?}: {found}"));
            wrong.extend(found);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let called: BTreeSet<&str> = calls().map(|(command, _)| command).collect();
    let documented: BTreeSet<&str> = schema.commands().collect();
    assert_eq!(called, documented);
}

#[test]
fn an_error_has_its_documented_shape() {
    let (sandbox, schema) = (Sandbox::new(), schema());
    for args in [
        &["get", "nobody", "--json"][..],
        &["list", "--bad", "--json"],
        &["list", "--json", "--store", "sqlite:typo.db"],
        &["demo", "--json"],
    ] {
        let (_, error) = sandbox.run(args).failed();
        let error: Value = serde_json::from_str(error.lines().last().unwrap()).unwrap();
        let wrong = schema.check_shape("error", &error);
        assert!(wrong.is_empty(), "{args:?}: {}", wrong.join("; "));
    }
}

#[test]
fn every_command_has_a_documented_shape() {
    let schema = schema();
    let documented: BTreeSet<&str> = schema.commands().collect();
    let mut waiting = vec![(String::new(), cli::command())];
    let mut used = BTreeSet::new();
    while let Some((name, command)) = waiting.pop() {
        let mut inner = command.get_subcommands().peekable();
        if inner.peek().is_none() && !documented.contains(name.as_str()) {
            let listed = UNDOCUMENTED.iter().map(|(listed, _)| *listed);
            let listed =
                listed.filter(|listed| format!("{name} ").starts_with(&format!("{listed} ")));
            let listed: Vec<&str> = listed.collect();
            assert!(!listed.is_empty(), "mnemon {name} has no documented shape");
            used.extend(listed);
        }
        waiting.extend(inner.map(|inner| {
            let name = format!("{name} {}", inner.get_name());
            (name.trim().to_owned(), inner.clone())
        }));
    }
    let listed: BTreeSet<&str> = UNDOCUMENTED.iter().map(|(listed, _)| *listed).collect();
    assert_eq!(used, listed, "a command is documented now, or gone");
}

/// Shapes of formats that other programs define.
const FOREIGN: &[&str] = &["message", "event", "session_state"];

/// The kind of an error is a word of its own, over MCP, too.
const OTHER_MEANING: &[&str] = &["error.kind"];

#[test]
fn a_field_has_one_name_and_one_meaning() {
    let schema = schema();
    for (shape, name, field) in schema.fields() {
        let place = format!("{shape}.{name}");
        let is_plain = name.chars().all(|c| c.is_ascii_lowercase() || c == '_');
        assert!(
            is_plain || FOREIGN.contains(&shape),
            "{place} is not in snake_case"
        );
        let is_exempt = FOREIGN.contains(&shape) || OTHER_MEANING.contains(&place.as_str());
        if schema.shared_fields().any(|shared| shared == name) && !is_exempt {
            let shared = format!("#/$defs/fields/properties/{name}");
            assert_eq!(
                field["$ref"],
                shared.as_str(),
                "{place} means something else"
            );
        }
    }
}

#[test]
fn the_shapes_are_documented() {
    let schema = schema();
    let mut text = String::from(
        "# JSON\n\nWritten from [json.schema.json](json.schema.json), with which a test compares the \
         output of every command; do not edit.\n\n\
         With `--json` a command prints its answer as one JSON object on a line. `mnemon export`, \
         `mnemon note delete`, `mnemon undo` and `mnemon add --jsonl` may print several lines, one \
         object on each. Errors and notes go to stderr, as JSON, too. Times are RFC 3339 in UTC. \
         Fields may be added later: ignore fields that you do not know. Over MCP, notes have the \
         field names of the notes document (`createdAt`, `contentLength`).\n\n\
         ## Fields\n\nThese fields mean the same everywhere.\n\n",
    );
    schema.table("fields", &mut text);
    text.push_str("\n## Commands\n\n| command | shape |\n|---|---|\n");
    for command in schema.commands() {
        let shape = schema.shape_of(command);
        writeln!(text, "| `mnemon {command}` | [{shape}](#{shape}) |").unwrap();
    }
    text.push_str("\n## Shapes\n");
    for shape in schema.shapes().filter(|shape| *shape != "fields") {
        let about = schema.about(shape);
        write!(text, "\n### {shape}\n\n{about}\n\n").unwrap();
        schema.table(shape, &mut text);
    }
    keep("json.md", &text);
}
