//! Conversations that a seed makes up: questions, calls (some at the same time), results (some very
//! large), answers in several languages, and now and then a call that is never answered.

use std::ops::Range;

use mnemon_core::{Block, Message, Role};
use serde_json::{Map, json};

/// How often a long test runs: as `PROPTEST_CASES` says, else in full with `MNEMON_TEST_FULL=1`.
#[must_use]
pub fn cases(quick: u64, full: u64) -> u64 {
    number("PROPTEST_CASES").unwrap_or(if is_full() { full } else { quick })
}

/// The seeds of a long test, as many as [`cases`] says. They begin with `PROPTEST_RNG_SEED`, as
/// those of properties do: `./scripts/test soak` sets it to fresh ones.
#[must_use]
pub fn seeds(quick: u64, full: u64) -> Range<u64> {
    let first = number("PROPTEST_RNG_SEED").unwrap_or(0);
    first..first + cases(quick, full)
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

/// Whether long tests run in full.
#[must_use]
pub fn is_full() -> bool {
    std::env::var_os("MNEMON_TEST_FULL").is_some()
}

/// A source of numbers that a seed decides.
#[derive(Debug, Clone)]
pub struct Dice(u64);

impl Dice {
    /// The same seed throws the same numbers.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below `sides`.
    pub fn below(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % sides.max(1) as u64) as usize
    }

    /// Once in `sides` times.
    pub fn once_in(&mut self, sides: usize) -> bool {
        self.below(sides) == 0
    }
}

const SENTENCES: [&str; 10] = [
    "We decided to meet Ann at 9:30 on 2026-03-01 because the train is late.",
    "The file src/main.rs has 42 lines.",
    "Chúng ta chốt giá 500 nghìn đồng cho gói của Nguyễn Văn An.",
    "東京のサーバーを使うことに決めました。予算は三万円です。",
    "What about the certificate?",
    "Thanks!",
    "error: connection refused by 10.0.0.7",
    "👩‍💻 naïve façade — ok 👍🏽",
    "<!-- not a tag --> & \"quotes\" \\ back\tslash",
    "It works, and the tests pass.",
];

/// A conversation that goes on for ever.
#[derive(Debug, Clone)]
pub struct Talk {
    dice: Dice,
    count: usize,
    /// Characters that a large text has, about.
    large: usize,
}

impl Talk {
    /// The same seed gives the same conversation.
    #[must_use]
    pub fn new(seed: u64, large: usize) -> Self {
        Self {
            dice: Dice::new(seed),
            count: 0,
            large,
        }
    }

    /// The messages of the next round. It may end without an answer, or with an unanswered call.
    pub fn round(&mut self) -> Vec<Message> {
        let mut said = Vec::new();
        if self.dice.once_in(40) {
            said.push(self.say(Role::System));
        }
        said.push(self.say(Role::User));
        if self.dice.once_in(12) {
            said.push(self.say(Role::User));
        }
        let calls = match self.dice.below(4) {
            0 => 0,
            1 => 1,
            2 => self.dice.below(5),
            _ => self.dice.below(12),
        };
        for _ in 0..calls {
            said.extend(self.call());
        }
        if !self.dice.once_in(8) {
            said.push(self.say(Role::Assistant));
        }
        said
    }

    /// A call, or several at once, with most of their results.
    fn call(&mut self) -> Vec<Message> {
        let many = if self.dice.once_in(4) {
            1 + self.dice.below(3)
        } else {
            1
        };
        let mut names: Vec<String> = (0..many)
            .map(|n| match self.dice.once_in(5) {
                // Some models count from nought in every message.
                true => format!("call_{n}"),
                false => format!("call_{}_{n}", self.count),
            })
            .collect();
        let mut message = self.message(Role::Assistant, Vec::new());
        if self.dice.once_in(3) {
            message.content.push(self.text());
        }
        for name in &names {
            message.content.push(self.tool_use(name));
        }
        let mut said = vec![message];
        if self.dice.once_in(2) {
            names.reverse();
        }
        if self.dice.once_in(25) {
            names.pop();
        }
        if self.dice.once_in(6) {
            let results = names.iter().map(|name| self.result(name)).collect();
            said.push(self.message(Role::Tool, results));
        } else {
            for name in &names {
                let result = self.result(name);
                said.push(self.message(Role::Tool, vec![result]));
            }
        }
        said.retain(|message| !message.content.is_empty());
        said
    }

    fn tool_use(&mut self, id: &str) -> Block {
        let tools = ["read_file", "search", "create_plan", "run"];
        let name = tools[self.dice.below(tools.len())];
        let mut input = Map::new();
        input.insert("path".to_owned(), json!(SENTENCES[self.dice.below(3)]));
        if self.dice.once_in(9) {
            input.insert("more".to_owned(), json!({"deep": [1, {"er": null}]}));
        }
        Block::ToolUse {
            id: id.to_owned(),
            name: name.to_owned(),
            input,
            content: self.dice.once_in(5).then(|| "{\"raw\":1}".to_owned()),
            metadata: Map::new(),
        }
    }

    fn result(&mut self, id: &str) -> Block {
        let mut output = vec![self.text()];
        if self.dice.once_in(15) {
            output.clear();
        }
        let mut metadata = Map::new();
        if self.dice.once_in(4) {
            metadata.insert("ok".to_owned(), json!(true));
        }
        Block::ToolResult {
            id: id.to_owned(),
            name: "read_file".to_owned(),
            output,
            metadata,
        }
    }

    fn say(&mut self, role: Role) -> Message {
        let mut blocks = vec![self.text()];
        if role == Role::Assistant && self.dice.once_in(6) {
            let thinking = SENTENCES[self.dice.below(SENTENCES.len())].to_owned();
            let metadata = Map::new();
            blocks.insert(0, Block::Thinking { thinking, metadata });
        }
        if self.dice.once_in(10) {
            blocks.push(self.text());
        }
        self.message(role, blocks)
    }

    fn text(&mut self) -> Block {
        let mut text = String::new();
        let sentences = match self.dice.below(10) {
            0 => return Block::Text { text },
            1 => self.large / 40 + self.dice.below(self.large / 20 + 1),
            _ => 1 + self.dice.below(4),
        };
        for _ in 0..sentences {
            text.push_str(SENTENCES[self.dice.below(SENTENCES.len())]);
            text.push(if self.dice.once_in(4) { '\n' } else { ' ' });
        }
        Block::Text { text }
    }

    fn message(&mut self, role: Role, content: Vec<Block>) -> Message {
        self.count += 1;
        let mut metadata = Map::new();
        if self.dice.once_in(7) {
            metadata.insert("mine".to_owned(), json!({"n": self.count}));
        }
        Message {
            id: format!("said-{}", self.count),
            name: self.dice.once_in(6).then(|| "Nguyễn An".to_owned()),
            role,
            content,
            metadata,
            timestamp: Some("2026-01-31 12:00:00.000".to_owned()),
        }
    }
}
