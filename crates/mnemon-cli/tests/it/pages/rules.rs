//! What a page needs before its commands run, and commands that a test cannot run as they are.

/// A command that is not simply run; `…` at its end stands for anything.
pub(super) struct Rule {
    pub(super) page: &'static str,
    pub(super) command: &'static str,
    pub(super) how: How,
}

pub(super) enum How {
    /// It is not run, for this reason.
    NotRun(&'static str),
    /// It asks on a terminal, so it is run with `--yes`.
    Confirmed,
    /// It is run as it is, although a rule below would apply.
    Plain,
    /// It serves until it is stopped.
    Server,
    /// It ends with this exit code, for this reason.
    Exit(i32, &'static str),
}

impl Rule {
    pub(super) fn applies(&self, page: &str, command: &str) -> bool {
        let command = command.split(" #").next().unwrap_or_default().trim();
        let is_meant = match self.command.strip_suffix('…') {
            Some(beginning) => command.starts_with(beginning),
            None => command == self.command,
        };
        page == self.page && is_meant
    }

    pub(super) fn exit_code(&self) -> i32 {
        match &self.how {
            How::Exit(code, _) => *code,
            _ => 0,
        }
    }

    pub(super) fn has_reason(&self) -> bool {
        match &self.how {
            How::NotRun(reason) | How::Exit(_, reason) => !reason.is_empty(),
            _ => true,
        }
    }
}

const fn rule(page: &'static str, command: &'static str, how: How) -> Rule {
    Rule { page, command, how }
}

const COMPILES: How = How::NotRun("it compiles the program");
const NO_MODEL: How = How::Exit(2, "no language model is configured");
const ASKS_SERVICE: How = How::NotRun("it asks a service; tests of remotes ask doubles");
const NO_DATA: How = How::NotRun("it needs data that is not in the repository");
const SERVES: How = How::NotRun("it serves until it is stopped; tests of the server start it");
const NEEDS_SERVER: How = How::NotRun("it needs a server; tests of the server ask one");
const NEEDS_DATABASE: How =
    How::NotRun("it needs a PostgreSQL server; tests of the store start one");
const OPERATES: How = How::NotRun("it changes the machine");
const RANDOM: How = How::NotRun("it shows random prefixes");
const NOTHING_FAILED: How = How::Exit(3, "no delivery was given up");
const DOWNLOADS: How = How::NotRun("it downloads a model");

pub(super) const RULES: &[Rule] = &[
    rule("README.md", "cargo run --release -- serve", COMPILES),
    rule("README.md", "./scripts/test", COMPILES),
    rule("README.md", "cargo install…", COMPILES),
    rule("README.md", "cargo run -p mnemon-cli…", COMPILES),
    rule("README.md", "mnemon mcp install claude", How::Confirmed),
    rule(
        "docs/backup.md",
        "mnemon restore memory-2026-01-31.db",
        How::Confirmed,
    ),
    rule("docs/backup.md", "mnemon doctor --repair", How::Confirmed),
    rule("docs/mcp.md", "mnemon mcp install claude", How::Confirmed),
    rule("docs/mcp.md", "mnemon mcp --http…", How::Server),
    rule("docs/mcp.md", "MNEMON_API_KEY=…", How::Server),
    rule("docs/trust.md", "mnemon trust", How::Confirmed),
    rule("docs/embedders.md", "cargo install…", COMPILES),
    rule("docs/postgres.md", "mnemon --store…", NEEDS_DATABASE),
    rule("docs/embedders.md", "mnemon model pull…", DOWNLOADS),
    rule(
        "docs/embedders.md",
        "MNEMON_EMBEDDER=minilm:target/models/minilm cargo…",
        COMPILES,
    ),
    rule("docs/evaluation.md", "mnemon eval…", NO_DATA),
    rule("docs/server.md", "mnemon serve…", SERVES),
    rule("docs/server.md", "curl…", NEEDS_SERVER),
    rule("docs/server.md", "MNEMON_SERVER_CA=…", NEEDS_SERVER),
    rule(
        "docs/server.md",
        "openssl…",
        How::NotRun("it needs a program that may be missing"),
    ),
    rule(
        "docs/server.md",
        "mnemon search what does Ann drink --server…",
        NEEDS_SERVER,
    ),
    rule("help mnemon serve", "mnemon serve…", SERVES),
    rule("help mnemon serve", "MNEMON_API_KEY_FILE=…", SERVES),
    rule("docs/server.md", "mnemon top…", NEEDS_SERVER),
    rule("docs/server.md", "systemctl…", OPERATES),
    rule("docs/server.md", "install -m…", OPERATES),
    rule("docs/server.md", "docker…", OPERATES),
    rule("help mnemon top", "mnemon top…", NEEDS_SERVER),
    rule("docs/server.md", "mnemon key list…", RANDOM),
    rule("docs/server.md", "mnemon audit list…", RANDOM),
    rule("help mnemon audit", "mnemon audit list…", RANDOM),
    rule("help mnemon key", "mnemon key list…", RANDOM),
    rule(
        "docs/changes.md",
        "mnemon webhook redeliver…",
        NOTHING_FAILED,
    ),
    rule(
        "help mnemon webhook",
        "mnemon webhook redeliver…",
        NOTHING_FAILED,
    ),
    rule("help mnemon eval", "…", NO_DATA),
    rule(
        "help mnemon migrate",
        "mnemon migrate --from sqlite:memory.db --to postgres:…",
        How::NotRun("it needs a database; tests of migrations use one"),
    ),
    rule(
        "help mnemon init",
        "mnemon mcp install claude",
        How::Confirmed,
    ),
    rule("help mnemon learn", "mnemon learn improve…", NO_MODEL),
    rule("help mnemon llm", "mnemon llm check", NO_MODEL),
    rule("help mnemon remote", "mnemon remote check…", ASKS_SERVICE),
    rule("help mnemon mcp", "mnemon mcp --http…", How::Server),
    rule(
        "help mnemon mcp",
        "mnemon mcp install claude",
        How::Confirmed,
    ),
    rule(
        "help mnemon mcp install",
        "mnemon mcp install codex --print",
        How::Plain,
    ),
    rule(
        "help mnemon mcp install",
        "mnemon mcp install…",
        How::Confirmed,
    ),
    rule("help mnemon model", "mnemon model pull…", DOWNLOADS),
    rule(
        "help mnemon reembed",
        "MNEMON_EMBEDDER=openai…",
        How::Exit(13, "no server of a model is running"),
    ),
    rule(
        "help mnemon restore",
        "mnemon restore memory-2026-01-31.db",
        How::Confirmed,
    ),
    rule("help mnemon trust", "mnemon trust", How::Confirmed),
];

/// A word of a page that stands for a value, and the command that prints the value.
pub(super) struct Fill {
    pub(super) page: &'static str,
    pub(super) word: &'static str,
    pub(super) command: &'static str,
}

const fn fill(page: &'static str, word: &'static str, command: &'static str) -> Fill {
    Fill {
        page,
        word,
        command,
    }
}

const NEWEST: &str = r#"mnemon list --json --limit 1 | sed 's/.*"id":"\([^"]*\)".*/\1/'"#;
const SKILL: &str = r#"mnemon skill list --json | sed 's/.*"id":"\([^"]*\)".*/\1/'"#;
const KEY: &str = r#"mnemon key list --json | sed 's/.*"prefix":"\([^"]*\)".*/\1/'"#;
const WEBHOOK: &str = r#"mnemon webhook list --json | sed 's/.*"id":"\(webhook[^"]*\)".*/\1/'"#;
const REPLACED: &str =
    r#"mnemon chat show s1 --user ann --json | sed 's/.*"uuid":"\([^"]*\)".*/\1/'"#;

pub(super) const FILLS: &[Fill] = &[
    fill("README.md", "ID", NEWEST),
    fill("docs/changes.md", "ID", WEBHOOK),
    fill("docs/conversations.md", "UUID", REPLACED),
    fill("docs/learning.md", "ID", SKILL),
    fill(
        "docs/mcp.md",
        "MNEMON_API_KEY=…",
        "echo MNEMON_API_KEY=0123456789abcdef",
    ),
    fill("docs/server.md", "PREFIX", KEY),
    fill(
        "docs/server.md",
        "PATH",
        "echo ~/.local/share/mnemon/audit.jsonl",
    ),
    fill("docs/trust.md", "FILE", "echo mnemon.toml"),
    fill("help mnemon add", "git", "echo echo"),
    fill(
        "help mnemon chat",
        "01890a5d-ac96-774b-bcce-b302099a8057",
        REPLACED,
    ),
    fill("help mnemon get", "ID1", NEWEST),
    fill("help mnemon get", "ID2", NEWEST),
    fill("help mnemon key", "PREFIX", KEY),
    fill("help mnemon skill", "ID", SKILL),
    fill("help mnemon undo", "ID", NEWEST),
    fill("help mnemon webhook", "ID", WEBHOOK),
];

const DOCUMENTS: &[&str] = &[
    "mkdir -p docs",
    "printf '# Kettle\\n\\nDescale the kettle with vinegar.\\n' > docs/kettle.md",
    "printf '# Decision\\n\\nWe sell green tea only.\\n' > docs/decision.md",
    "printf '# Tea house\\n\\nHow we work.\\n' > README.md",
];
const RECORD: &[&str] =
    &["mnemon add 'Ann prefers tea' --user ann --id 01920e4a-6f2b-7c3d-8e4f-5a6b7c8d9e0f"];
/// Facts with ids of the same length in every run: they count as tokens.
const KNOWN: &[&str] = &[
    "mnemon add --kind fact 'The tea house is in the old town' --user ann --id tea-house",
    "mnemon add --kind fact 'The tea house opens at noon' --user ann --id tea-hours",
];
/// A conversation with messages that a summary replaced.
const REPLACE: &[&str] = &[
    r#"for n in 1 2 3 4 5 6 7 8; do echo "{\"content\":\"$n: the tea house in the old town opens at noon, and it serves green tea, black tea and cake.\"}"; done > talk.jsonl"#,
    "mnemon chat append s1 --user ann --jsonl talk.jsonl",
    "mnemon chat compress s1 --user ann --last-keep 1",
];
const LEARN: &[&str] = &[
    r#"mnemon write --user ann --session s1 --scope procedural --data '{"use_when":"deploy the app","tool_sops":[{"tool_name":"run_cmd","action":"npm install"}],"task_type":"deploy_app"}'"#,
];
const BACKUP: &[&str] = &[
    "mnemon add 'Ann prefers tea'",
    "mnemon backup memory-2026-01-31.db",
];
/// Fourteen commits.
const NUMBERED: &[&str] =
    &["for n in 1 2 3 4 5 6 7 8 9 10 11 12 13 14; do mnemon add \"Note $n\"; done"];
const SETTINGS: &[&str] = &["printf 'store = \"sqlite:memory.db\"\\n' > mnemon.toml"];

/// Files and records that the commands of a page expect.
const SETUPS: &[(&str, &[&str])] = &[
    ("README.md", DOCUMENTS),
    ("docs/backup.md", &["mnemon add 'Ann prefers tea'"]),
    ("docs/context.md", KNOWN),
    ("docs/conversations.md", REPLACE),
    ("docs/ingest.md", DOCUMENTS),
    ("docs/learning.md", LEARN),
    ("docs/notes.md", DOCUMENTS),
    ("docs/trust.md", SETTINGS),
    ("help mnemon", DOCUMENTS),
    (
        "help mnemon add",
        &["echo 'We sell green tea only.' > decision.md"],
    ),
    (
        "help mnemon audit",
        &[
            "mnemon key create ci --rights read",
            "mkdir archive",
            "cp ~/.local/share/mnemon/audit.jsonl archive/audit.jsonl.00000000000000000001",
        ],
    ),
    ("help mnemon backup", &["mnemon add 'Ann prefers tea'"]),
    ("help mnemon chat", REPLACE),
    ("help mnemon context", KNOWN),
    (
        "help mnemon chat",
        &[r#"echo '{"role":"user","content":"Is it far?"}' > talk.jsonl"#],
    ),
    ("help mnemon export", RECORD),
    (
        "help mnemon export",
        &["mnemon add 'Ann prefers tea' --store sqlite:old.db"],
    ),
    ("help mnemon forget", RECORD),
    ("help mnemon get", RECORD),
    ("help mnemon history", RECORD),
    (
        "help mnemon import",
        &[
            "mnemon add 'Ann prefers tea' --user ann",
            "mnemon export memory.jsonl",
            "mnemon export --user ann | gzip > ann.jsonl.gz",
        ],
    ),
    ("help mnemon ingest", DOCUMENTS),
    (
        "help mnemon ingest",
        &["mkdir ~/notes", "echo 'Buy green tea.' > ~/notes/shop.md"],
    ),
    ("help mnemon list", RECORD),
    (
        "help mnemon migrate",
        &["mnemon add 'Ann prefers tea' --store sqlite:memory.db"],
    ),
    ("help mnemon mcp install", &["mkdir -p ~/code/shop"]),
    ("help mnemon note", DOCUMENTS),
    (
        "help mnemon note",
        &["mnemon add 'Ann prefers green tea' --id 8f14e45fceea167a"],
    ),
    ("help mnemon restore", BACKUP),
    ("help mnemon search", RECORD),
    (
        "help mnemon session",
        &[r#"echo '{"memory": {"messages": []}}' > state.json"#],
    ),
    ("help mnemon skill", LEARN),
    ("help mnemon trust", SETTINGS),
    ("help mnemon undo", NUMBERED),
    (
        "help mnemon update",
        &[
            "mnemon add 'Ann prefers tea' --id 0192e4a6-6f2b-7c3d-8e4f-5a6b7c8d9e0f",
            "mnemon add 'Seed' --id seed",
            "mnemon update seed Seeds",
            "mnemon update seed 'More seeds'",
        ],
    ),
    (
        "help mnemon write",
        &[
            r#"echo '{"use_when":"deploy the app","tool_sops":[{"tool_name":"run_cmd","action":"npm install"}],"task_type":"deploy_app"}' > skill.json"#,
        ],
    ),
];

pub(super) fn setup(page: &str) -> impl Iterator<Item = &'static str> {
    let setups = SETUPS.iter().filter(move |(name, _)| *name == page);
    setups.flat_map(|(_, commands)| commands.iter().copied())
}

pub(super) fn pages_with_setup() -> impl Iterator<Item = &'static str> {
    SETUPS.iter().map(|(name, _)| *name)
}
