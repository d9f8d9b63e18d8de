//! The JSON of the command line: every command prints what `src/json.schema.json` says, and a field
//! has one name and one type everywhere. `docs/json.md` is written from the schema.

pub(crate) mod schema;

use std::collections::BTreeSet;
use std::fmt::Write;

use mnemon_cli::cli;
use mnemon_engine::learn::Improved;
use mnemon_testkit::fakes::{Endpoint, Move};
use schema::Schema;
use serde_json::{Value, json};

use crate::docs::keep;
use crate::sandbox::Sandbox;
use crate::server::Server;

/// Commands that print no JSON.
const WITHOUT_JSON: &[&str] = &["completions", "demo", "mcp", "serve"];

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
migrate                 migrate --from sqlite:copy.db --to jsonl:moved --dry-run
migrate                 migrate --from sqlite:copy.db --to jsonl:moved
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
skill pin               skill pin SKILL
skill unpin             skill unpin SKILL
skill edit              skill edit SKILL --preferences 'use pnpm'
skill export            skill export skills
skill import            skill import skills
skill retire            skill retire SKILL
skill reject            skill reject SKILL --why 'it is wrong'
ingest                  ingest docs
upkeep                  upkeep
reembed                 reembed
index check             index check
index rebuild           index rebuild
doctor                  doctor
config                  config
key create              key create ci --rights write --user ann --expires 90d
key list                key list
key rotate              key rotate KEY
key revoke              key revoke KEY
webhook create          webhook create https://hooks.example.org/mnemon --kind note
webhook list            webhook list
webhook failed          webhook failed WEBHOOK
webhook delete          webhook delete WEBHOOK
audit verify            audit verify
audit list              audit list --limit 2
audit prune             audit prune --before 1y --yes
init                    init
agent list              agent list
agent new               agent new coder --description 'Writes the code'
agent list              agent list
agent activate          agent activate coder
agent context           agent context coder --task 'Fix the race'
agent context           agent context coder
agent decide            agent decide coder 'Use Redis' --decision 'Sessions in Redis' --reason 'It is there'
agent learn             agent learn coder Retry --pattern 'Retry once' --why 'It flaps'
agent edit              agent edit coder Redis --set Impact 'One server more'
agent lint              agent lint
agent end               agent end coder --data '{"context":{"next":["Write a test"]}}'
agent archive           agent archive coder
agent index             agent index
agent remove            agent remove coder 'Use Redis'
team new                team new core --lead ada --member linus
team list               team list
team activate           team activate core linus
team context            team context core --task Ship
team decide             team decide core 'Use SQLite' --decision 'One file' --approved-by ada
team edit               team edit core 'Use SQLite' --set Impact 'One file less'
team handoff            team handoff core --from ada --to linus --task 'Fix it' --context 'It leaks' --deliverable 'a patch'
team status             team status core
team accept             team accept core linus
team complete           team complete core linus --result 'It holds'
team block              team block core 'No access' --by linus
team status             team status core
team block              team block core --resolve BLOCKER-001 --resolution 'Got it'
team remove             team remove core 'Use SQLite'
eval locomo             eval locomo --data locomo.json
eval beam               eval beam --data beam
eval beir               eval beir --data beir --recipe hybrid --out run.json
eval beir               eval beir --data beir --recipe hybrid --compare run.json
eval jsonl              eval jsonl --data questions.jsonl
llm usage               llm usage
policy show             policy show
policy show             policy show shop --agent planner
trust                   trust shared.toml --dry-run
trust                   trust shared.toml --yes
trust                   trust --list
trust                   trust shared.toml --remove
config path             config path
mcp install             mcp install claude --print
man                     man man1
"#;

/// Columns of the first part of a line of [`CALLS`].
const COMMAND: usize = 24;

/// The same with a language model.
const CALLS_OF_MODEL: &str = r#"
llm check               llm check
llm usage               llm usage
eval jsonl              eval jsonl --data questions.jsonl --recipe hybrid --answer --input-price 1 --output-price 1
learn improve           learn improve
"#;

/// The documented calls, and the command of each.
pub(crate) fn calls() -> impl Iterator<Item = (&'static str, Vec<&'static str>)> {
    calls_of(CALLS)
}

/// The lines of a list. Words with spaces stand between quotes.
fn calls_of(of: &'static str) -> impl Iterator<Item = (&'static str, Vec<&'static str>)> {
    of.trim().lines().map(|line| {
        let (command, args) = line.split_at(COMMAND);
        let parts = args.split('\'').enumerate();
        let words = parts.flat_map(|(at, part)| match at % 2 {
            0 => part.split_whitespace().collect(),
            _ => vec![part],
        });
        (command.trim(), words.collect())
    })
}

pub(crate) fn schema() -> Schema {
    Schema(mnemon_operations::schema::document())
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
    sandbox.file("shared.toml", "embedder = \"none\"\n");
    measured(&sandbox);
    sandbox
}

/// Data for `mnemon eval`.
fn measured(sandbox: &Sandbox) {
    sandbox.file("locomo.json", crate::eval::data());
    for folder in ["beam", "beir/qrels"] {
        std::fs::create_dir_all(sandbox.path(folder)).unwrap();
    }
    let said = json!({"id": 1, "role": "user", "content": "I keep bees."});
    let chat = json!([{"batch_number": 1, "turns": [[said]]}]);
    sandbox.file("beam/chat.json", chat.to_string());
    let probe = json!({"question": "What do I keep?", "source_chat_ids": [1]});
    let probes = json!({"information_extraction": [probe]});
    sandbox.file("beam/probing_questions.json", probes.to_string());
    let document = json!({"_id": "d1", "text": "The moon lifts the sea."});
    sandbox.file("beir/corpus.jsonl", format!("{document}\n"));
    let query = json!({"_id": "q1", "text": "What lifts the sea?"});
    sandbox.file("beir/queries.jsonl", format!("{query}\n"));
    let judged = "query-id\tcorpus-id\tscore\nq1\td1\t1\n";
    sandbox.file("beir/qrels/test.tsv", judged);
    let record = json!({"id": "a", "content": "The ladder is in the shed."});
    let question =
        json!({"question": "Where is the ladder?", "expected": ["a"], "answer": "in the shed"});
    sandbox.file("questions.jsonl", format!("{record}\n{question}\n"));
}

/// The id that a word of a call stands for.
pub(crate) fn meant(sandbox: &Sandbox, word: &str) -> String {
    let (args, pointer): (&[&str], _) = match word {
        "NOTE" => (&["note", "list", "--json"], "/notes/0/id"),
        "SKILL" => (&["skill", "list", "--json"], "/skills/0/id"),
        "KEY" => (&["key", "list", "--json"], "/keys/0/prefix"),
        "WEBHOOK" => (&["webhook", "list", "--json"], "/webhooks/0/id"),
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
    let wrong = compared(&sandbox, calls());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // The weights of a model are too large for a test; a redelivery needs a server that failed
    // before, and `top` a server, which has a test of its own.
    let elsewhere = [
        "model pull",
        "webhook redeliver",
        "top",
        "top --ready",
        "remote check",
    ];
    let called = calls().chain(calls_of(CALLS_OF_MODEL));
    let called = called.map(|(command, _)| command);
    let called: BTreeSet<&str> = called.chain(elsewhere).collect();
    let documented: BTreeSet<&str> = schema.commands().collect();
    assert_eq!(called, documented);
}

#[test]
fn answers_with_a_language_model_have_their_documented_shape() {
    let says = ["Paris", "In the shed.", r#"{"right": true}"#];
    let endpoint = Endpoint::start(says.map(Move::say).to_vec());
    let (sandbox, url) = (prepared(), endpoint.url());
    sandbox.config(format!(
        "[llm]\nprovider = \"openai\"\nurl = \"{url}/v1\"\nmodel = \"tiny\"\nattempts = 1\n"
    ));
    let wrong = compared(&sandbox, calls_of(CALLS_OF_MODEL));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let id = || "s1".parse().unwrap();
    let text = String::from("text");
    let skills = json!({"skills": [
        Improved::Reworded { id: id(), use_when: text.clone() },
        Improved::Merged { id: id(), into: id() },
        Improved::Refused { id: id(), why: text },
        Improved::Left { id: id() },
    ]});
    let wrong = schema().check("learn improve", &skills);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// How the answers of these calls differ from their documented shapes.
fn compared<'a>(
    sandbox: &Sandbox,
    calls: impl Iterator<Item = (&'a str, Vec<&'a str>)>,
) -> Vec<String> {
    let schema = schema();
    let mut wrong = Vec::new();
    for (command, args) in calls {
        let args = args.iter().map(|word| meant(sandbox, word));
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
    wrong
}

#[test]
fn the_view_of_a_server_has_its_documented_shape() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox, &["--upkeep", "0"]);
    server.post("/v1/notes", &json!({"content": "Ann prefers tea"}));
    let url = server.url();
    let calls = [
        ("top", vec!["top", "--server", &url]),
        ("top --ready", vec!["top", "--ready", "--server", &url]),
    ];
    let wrong = compared(&sandbox, calls.into_iter());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
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
    while let Some((name, command)) = waiting.pop() {
        let mut inner = command.get_subcommands().peekable();
        let is_documented = documented.contains(name.as_str());
        if WITHOUT_JSON.contains(&name.as_str()) {
            assert!(!is_documented, "mnemon {name} is documented now");
        } else if inner.peek().is_none() {
            assert!(is_documented, "mnemon {name} has no documented shape");
        }
        waiting.extend(inner.map(|inner| {
            let name = format!("{name} {}", inner.get_name());
            (name.trim().to_owned(), inner.clone())
        }));
    }
}

/// Shapes of formats that other programs define. The tools for notes answer as the notes document
/// says.
fn is_foreign(shape: &str) -> bool {
    ["message", "event", "session_state"].contains(&shape) || shape.starts_with("tool_")
}

/// The kind of an error is a word of its own, over MCP, too.
const OTHER_MEANING: &[&str] = &["error.kind"];

#[test]
fn a_field_has_one_name_and_one_meaning() {
    let schema = schema();
    for (shape, name, field) in schema.fields() {
        let place = format!("{shape}.{name}");
        let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        assert!(
            name.chars().all(is_plain) || is_foreign(shape),
            "{place} is not in snake_case"
        );
        let is_exempt = is_foreign(shape) || OTHER_MEANING.contains(&place.as_str());
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
        "# JSON\n\nWritten from [json.schema.json](../crates/mnemon-operations/src/json.schema.json), with \
         which a test compares the output of every command and tool; do not edit.\n\n\
         With `--json` a command prints its answer as one JSON object on a line. `mnemon export`, \
         `mnemon note delete`, `mnemon undo` and `mnemon add --jsonl` may print several lines, one \
         object on each. Errors and notes go to stderr, as JSON, too. Times are RFC 3339 in UTC. \
         Fields may be added later: ignore fields that you do not know. `mnemon completions`, \
         `mnemon demo` and `mnemon mcp` print no JSON.\n\n\
         ## Fields\n\nThese fields mean the same everywhere.\n\n",
    );
    schema.table("fields", &mut text);
    text.push_str("\n## Commands\n\n| command | shape |\n|---|---|\n");
    for command in schema.commands() {
        let shape = schema.shape_of(command);
        writeln!(text, "| `mnemon {command}` | [{shape}](#{shape}) |").unwrap();
    }
    text.push_str(
        "\n## Tools\n\nThe structured content of MCP tools; see [mcp.md](mcp.md). Notes have the field \
         names of the notes document (`createdAt`, `contentLength`). Each answer may also have \
         `notices`, `note` (a reminder that recalled text is data) and `truncated` (true if texts \
         or lists were shortened to fit into `max_tokens`).\n\n| tool | shape |\n|---|---|\n",
    );
    for tool in schema.tools() {
        let shape = schema.shape_of_tool(tool);
        writeln!(text, "| `{tool}` | [{shape}](#{shape}) |").unwrap();
    }
    text.push_str("\n## Shapes\n");
    for shape in schema.shapes().filter(|shape| *shape != "fields") {
        let about = schema.about(shape);
        write!(text, "\n### {shape}\n\n{about}\n\n").unwrap();
        schema.table(shape, &mut text);
    }
    keep("json.md", &text);
}
