//! Conversations with planted facts: decisions with their owners, corrections, open and answered
//! questions, numbers, failures that were fixed, among small talk and tool calls. What a summary
//! should still say of them is returned with the messages.

mod blind;
mod fresh;
mod phrases;
mod score;

use std::collections::BTreeMap;

use mnemon_core::{Block, Message, Role};
use serde_json::{Map, json};

pub use blind::BLIND;
pub use fresh::{FRESH, UNSEEN};
pub use phrases::{HELD_OUT, Phrases, TUNED};
pub use score::{Score, score};

use crate::talks::Dice;

/// A thing that was decided, as it stands at the end of the talk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// What it is about: words that a reader must find.
    pub subject: [String; 2],
    pub choice: String,
    pub owner: Option<String>,
    /// The choice that was taken back.
    pub replaced: Option<String>,
}

/// A question, and the answers that were given; without one it is open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    pub text: String,
    pub answers: Vec<String>,
}

/// A talk and what was planted in it.
#[derive(Debug, Clone, Default)]
pub struct Meeting {
    pub messages: Vec<Message>,
    pub decisions: Vec<Decision>,
    pub questions: Vec<Question>,
    pub facts: Vec<String>,
    /// Failures that were fixed later: each failure with its fix.
    pub fixed: Vec<(String, String)>,
    pub small_talk: Vec<String>,
}

const NOUNS: [(&str, [&str; 4]); 14] = [
    (
        "message queue",
        ["RabbitMQ", "Kafka", "NATS", "Redis Streams"],
    ),
    (
        "database",
        ["PostgreSQL 16", "MariaDB", "CockroachDB", "SQLite"],
    ),
    (
        "session cache",
        ["Memcached", "Valkey", "Hazelcast", "plain files"],
    ),
    (
        "login method",
        ["OAuth2", "passkeys", "magic links", "SAML"],
    ),
    (
        "hosting",
        ["Hetzner", "Fly.io", "our own rack", "AWS Frankfurt"],
    ),
    (
        "launch date",
        [
            "14 March",
            "the end of May",
            "2027-01-15",
            "the first Monday in June",
        ],
    ),
    (
        "retention period",
        ["30 days", "90 days", "two years", "six weeks"],
    ),
    (
        "main colour",
        ["dark green", "navy", "orange", "plain grey"],
    ),
    (
        "log format",
        ["JSON lines", "syslog", "OpenTelemetry", "logfmt"],
    ),
    (
        "licence",
        ["MIT", "Apache 2.0", "AGPL", "a proprietary one"],
    ),
    ("pilot city", ["Hanoi", "Osaka", "Lisbon", "Da Nang"]),
    ("payment provider", ["Stripe", "Adyen", "Mollie", "PayPal"]),
    (
        "meeting day",
        [
            "Thursday",
            "Monday morning",
            "every second Friday",
            "Wednesday",
        ],
    ),
    (
        "budget",
        [
            "12,000 euros",
            "40,000 dollars",
            "nothing for now",
            "500 a month",
        ],
    ),
];

const PRODUCTS: [&str; 12] = [
    "shop",
    "bank portal",
    "ticket app",
    "warehouse",
    "newsletter",
    "clinic system",
    "school site",
    "delivery app",
    "museum guide",
    "radio archive",
    "booking desk",
    "chat bot",
];

const PEOPLE: [&str; 10] = [
    "Marcus",
    "Lena",
    "Nguyễn An",
    "Sakura",
    "Tom",
    "Priya",
    "Olga",
    "Bình",
    "Diego",
    "Fatima",
];

/// A talk of so many topics. The same seed gives the same talk.
#[must_use]
pub fn meeting(seed: u64, topics: usize, phrases: &Phrases) -> Meeting {
    let mut maker = Maker {
        dice: Dice::new(seed),
        phrases: *phrases,
        made: Meeting::default(),
        later: BTreeMap::new(),
        used: Vec::new(),
        calls: 0,
    };
    for topic in 0..topics {
        maker.topic(topic);
        for event in maker.later.remove(&topic).unwrap_or_default() {
            maker.event(event);
        }
    }
    for events in std::mem::take(&mut maker.later).into_values() {
        for event in events {
            maker.event(event);
        }
    }
    maker.made
}

/// Something that is said some topics later.
enum Event {
    Correct(usize),
    Fix(String),
}

struct Maker {
    dice: Dice,
    phrases: Phrases,
    made: Meeting,
    later: BTreeMap<usize, Vec<Event>>,
    /// Pairs of noun and product that were talked about.
    used: Vec<(usize, usize)>,
    calls: usize,
}

impl Maker {
    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.dice.below(from.len())]
    }

    fn say(&mut self, role: Role, text: impl Into<String>) {
        let id = format!("m{}", self.made.messages.len());
        let mut message = Message::text(id, role, text);
        message.timestamp = Some("2026-01-31T12:00:00.000Z".to_owned());
        self.made.messages.push(message);
    }

    fn say_as(&mut self, name: &str, text: &str) {
        self.say(Role::User, text);
        if let Some(last) = self.made.messages.last_mut() {
            last.name = Some(name.to_owned());
        }
    }

    fn someone(&mut self) -> Role {
        self.pick(&[Role::User, Role::Assistant])
    }

    fn topic(&mut self, number: usize) {
        let (noun, product) = self.fresh_subject();
        let (name, choices) = NOUNS[noun];
        let product = PRODUCTS[product];
        let first = self.dice.below(4);
        let choice = choices[first].to_owned();
        let owner = (!self.dice.once_in(3)).then(|| self.pick(&PEOPLE).to_owned());
        let slots = Slots {
            noun: name.to_owned(),
            product: product.to_owned(),
            choice: choice.clone(),
            replaced: String::new(),
            owner: owner
                .clone()
                .unwrap_or_else(|| self.pick(&PEOPLE).to_owned()),
            number: 100 + self.dice.below(9900),
        };
        self.chatter();
        let corrected = self.dice.once_in(3);
        let next = choices[(first + 1 + self.dice.below(3)) % 4].to_owned();
        let answers = match corrected {
            true => vec![choice.clone(), next.clone()],
            false => vec![choice.clone()],
        };
        self.decide(&slots, owner.is_some(), &choices, answers);
        self.chatter();
        self.made.decisions.push(Decision {
            subject: [name.to_owned(), product.to_owned()],
            choice: if corrected { next } else { choice.clone() },
            owner,
            replaced: corrected.then_some(choice),
        });
        if corrected {
            let at = number + self.dice.below(12);
            let event = Event::Correct(self.made.decisions.len() - 1);
            self.later.entry(at).or_default().push(event);
        }
        self.aside(&slots, number);
    }

    fn fresh_subject(&mut self) -> (usize, usize) {
        loop {
            let pair = (
                self.dice.below(NOUNS.len()),
                self.dice.below(PRODUCTS.len()),
            );
            // With every pair used up, a subject comes back under another number.
            if self.used.len() >= NOUNS.len() * PRODUCTS.len() {
                self.used.clear();
            }
            if !self.used.contains(&pair) {
                self.used.push(pair);
                return pair;
            }
        }
    }

    /// The decision, in one message or in several.
    fn decide(&mut self, slots: &Slots, owned: bool, choices: &[&str], answers: Vec<String>) {
        let phrases = self.phrases;
        let asked = self.dice.once_in(2);
        if asked {
            let question = slots.fill(self.pick(phrases.asked));
            self.say(Role::User, question.clone());
            let text = question;
            self.made.questions.push(Question { text, answers });
        }
        let terse = asked && self.dice.once_in(3);
        if !terse {
            for _ in 0..self.dice.below(3) {
                let other = self.pick(choices).to_owned();
                let weighed = self.pick(phrases.weighed);
                let role = self.someone();
                self.say(role, weighed.replace("{c}", &other));
            }
            self.explain();
        }
        let role = if terse {
            Role::Assistant
        } else {
            self.someone()
        };
        let text = match (terse, owned && self.dice.below(3) > 0) {
            (true, _) => self.pick(phrases.answered),
            (false, true) => {
                let owned = self.pick(phrases.owned);
                self.say(role, slots.fill(owned));
                return;
            }
            (false, false) => self.pick(phrases.decided),
        };
        self.say(role, slots.fill(text));
        if !owned {
            return;
        }
        if self.dice.once_in(2) {
            let taken = self.pick(phrases.taken);
            self.say_as(&slots.owner.clone(), taken);
        } else {
            let assigned = slots.fill(self.pick(phrases.assigned));
            self.say(Role::User, assigned);
        }
    }

    /// A long answer that says little.
    fn explain(&mut self) {
        for _ in 0..self.dice.below(3) {
            let count = 2 + self.dice.below(4);
            let sentences: Vec<&str> = (0..count)
                .map(|_| self.pick(self.phrases.explained))
                .collect();
            self.say(Role::Assistant, sentences.join(" "));
        }
    }

    fn chatter(&mut self) {
        for _ in 0..self.dice.below(3) {
            let text = self.pick(self.phrases.small_talk);
            let role = self.someone();
            self.say(role, text);
            self.made.small_talk.push(text.to_owned());
        }
    }

    /// What else is said: facts, other questions, tools, failures.
    fn aside(&mut self, slots: &Slots, number: usize) {
        let phrases = self.phrases;
        let mut slots = slots.clone();
        slots.number = 100 + self.dice.below(9900);
        slots.owner = self.pick(&PEOPLE).to_owned();
        if self.dice.once_in(3) {
            let fact = slots.fill(self.pick(phrases.facts));
            let role = self.someone();
            self.say(role, fact.clone());
            self.made.facts.push(fact);
        }
        if self.dice.once_in(3) {
            let (question, answer) = self.pick(phrases.settled);
            self.question(&slots, question, answer, true);
        }
        if self.dice.once_in(4) {
            let (question, answer) = self.pick(phrases.open);
            self.question(&slots, question, answer, false);
        }
        if self.dice.once_in(4) {
            self.tools(&slots);
        }
        if self.dice.once_in(5) {
            let (failure, fix) = self.pick(phrases.fixed);
            let (failure, fix) = (slots.fill(failure), slots.fill(fix));
            let role = self.someone();
            self.say(role, failure.clone());
            let at = number + 1 + self.dice.below(4);
            self.later
                .entry(at)
                .or_default()
                .push(Event::Fix(fix.clone()));
            self.made.fixed.push((failure, fix));
        }
    }

    fn question(&mut self, slots: &Slots, question: &str, answer: &str, is_answer: bool) {
        let (question, answer) = (slots.fill(question), slots.fill(answer));
        // Two topics may ask the same about one product: the second time nobody asks.
        if self.made.questions.iter().any(|q| q.text == question) {
            return;
        }
        self.say(Role::User, question.clone());
        self.say(Role::Assistant, answer.clone());
        let answers = if is_answer { vec![answer] } else { Vec::new() };
        self.made.questions.push(Question {
            text: question,
            answers,
        });
    }

    fn event(&mut self, event: Event) {
        match event {
            Event::Correct(at) => {
                let decision = self.made.decisions[at].clone();
                let [noun, product] = decision.subject;
                let slots = Slots {
                    noun,
                    product,
                    choice: decision.choice,
                    replaced: decision.replaced.unwrap_or_default(),
                    owner: String::new(),
                    number: 0,
                };
                let text = slots.fill(self.pick(self.phrases.corrected));
                let role = self.someone();
                self.say(role, text);
            }
            Event::Fix(text) => {
                let role = self.someone();
                self.say(role, text);
            }
        }
    }

    fn tools(&mut self, slots: &Slots) {
        let file = slots.path();
        let outputs = [
            format!(
                "fn main() {{\n    let x = {};\n}} // 240 lines",
                slots.number
            ),
            format!("{{\"status\": \"ok\", \"items\": [{}, 2]}}", slots.number),
            format!("{} passed, 0 failed", slots.number),
            "error: test_reset failed at line 42\nnote: run with a backtrace".to_owned(),
        ];
        let output = outputs[self.dice.below(outputs.len())].clone();
        let failed = output.starts_with("error");
        self.call("run", &file, &output);
        if failed {
            self.call("run", &file, "14 passed");
        }
        self.say(Role::Assistant, "Done.");
    }

    fn call(&mut self, tool: &str, path: &str, output: &str) {
        self.calls += 1;
        let id = format!("call_{}", self.calls);
        let mut input = Map::new();
        input.insert("path".to_owned(), json!(path));
        self.say(Role::Assistant, "");
        self.content(Block::ToolUse {
            id: id.clone(),
            name: tool.to_owned(),
            input,
            content: None,
            metadata: Map::new(),
        });
        self.say(Role::Tool, "");
        self.content(Block::ToolResult {
            id,
            name: tool.to_owned(),
            output: vec![Block::Text {
                text: output.to_owned(),
            }],
            metadata: Map::new(),
        });
    }

    fn content(&mut self, block: Block) {
        if let Some(last) = self.made.messages.last_mut() {
            last.content = vec![block];
        }
    }
}

#[derive(Clone)]
struct Slots {
    noun: String,
    product: String,
    choice: String,
    replaced: String,
    owner: String,
    number: usize,
}

impl Slots {
    fn fill(&self, template: &str) -> String {
        let bare = format!("{} of the {}", self.noun, self.product);
        let filled = template
            .replace("{s}", &format!("the {bare}"))
            .replace("{b}", &bare)
            .replace("{c}", &self.choice)
            .replace("{x}", &self.replaced)
            .replace("{o}", &self.owner)
            .replace("{p}", &self.product)
            .replace("{n}", &self.number.to_string())
            .replace("{f}", &self.path());
        let mut chars = filled.chars();
        let first = chars.next().map(|c| c.to_uppercase().to_string());
        match template.starts_with('{') {
            true => first.unwrap_or_default() + chars.as_str(),
            false => filled,
        }
    }

    fn path(&self) -> String {
        let product = self.product.replace(' ', "-");
        format!("/etc/{product}/app-{}.toml", self.number)
    }
}
