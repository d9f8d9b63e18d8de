//! The words of planted talks. `TUNED` may be looked at when the cues of summaries are changed;
//! `HELD_OUT` measures how they do on words that nobody tuned them on.
//!
//! Slots: `{s}` the subject with its article, `{b}` the subject without it, `{c}` the choice,
//! `{x}` the choice it replaces, `{o}` the owner, `{p}` the product, `{n}` a number, `{f}` a path.

/// The ways to say each kind of thing.
#[derive(Debug, Clone, Copy)]
pub struct Phrases {
    /// A decision and its owner, in one message.
    pub owned: &'static [&'static str],
    /// A decision nobody is named for.
    pub decided: &'static [&'static str],
    /// The owner, in a message of somebody else, right after a decision.
    pub assigned: &'static [&'static str],
    /// The owner takes it, in a message of their own.
    pub taken: &'static [&'static str],
    /// The question that a decision answers.
    pub asked: &'static [&'static str],
    /// The decision in the words of an answer: its subject is in the question only.
    pub answered: &'static [&'static str],
    /// A decision that replaces an earlier one.
    pub corrected: &'static [&'static str],
    /// Another question and its answer.
    pub settled: &'static [(&'static str, &'static str)],
    /// A question and what is said instead of an answer.
    pub open: &'static [(&'static str, &'static str)],
    /// Talk about a choice before it is made.
    pub weighed: &'static [&'static str],
    /// Sentences of long explanations that nobody needs later.
    pub explained: &'static [&'static str],
    pub small_talk: &'static [&'static str],
    /// Something with a number or a path.
    pub facts: &'static [&'static str],
    /// A failure, and that it was fixed.
    pub fixed: &'static [(&'static str, &'static str)],
}

pub const TUNED: Phrases = Phrases {
    owned: &[
        "We decided: {s} is {c}. {o} will take care of it.",
        "Let's go with {c} for {s}. {o} owns that.",
        "OK, so {s} will be {c}, and {o} is going to set it up.",
        "After some back and forth we settled on {c} as {s}. {o} volunteered to do it.",
        "Agreed: {c} for {s}. Owner: {o}.",
        "Final call on {s}: {c}. I've assigned it to {o}.",
        "The team chose {c} for {s}; {o} takes it from here.",
        "{o} will change {s} to {c}, that's decided.",
        "Chúng ta chốt {c} cho {b}. {o} sẽ lo việc này.",
        "{b}は{c}に決めました。担当は{o}さんです。",
    ],
    decided: &[
        "We decided that {s} is {c}.",
        "Let's use {c} for {s}.",
        "Decision: {b} is {c}.",
        "We'll take {c} as {s} because it is the least work.",
        "So {c} it is for {s}.",
        "I'm going with {c} for {s}.",
        "Quyết định rồi: {b} là {c}.",
    ],
    assigned: &[
        "{o} will take care of it.",
        "Good. {o}, please do it this week.",
        "{o} is responsible for that.",
        "That one goes to {o}.",
        "I asked {o} to do it and got a yes.",
        "{o} can own this.",
    ],
    taken: &[
        "I'll take that one.",
        "I can do it.",
        "That's mine.",
        "Leave it to me.",
        "I'll set it up.",
        "On it.",
    ],
    asked: &[
        "What should we use as {s}?",
        "Which way do we go for {s}?",
        "What about {s}?",
        "Any preference for {s}?",
        "Do we have a decision on {s}?",
        "What do you suggest for {s}?",
    ],
    answered: &[
        "{c}.",
        "I'd say {c}.",
        "{c}, definitely.",
        "Let's take {c}.",
        "We go with {c}.",
        "It's going to be {c}.",
    ],
    corrected: &[
        "Actually, not {x} but {c} for {s}.",
        "Correction: {s} is {c}, not {x}.",
        "Scratch that, {s} should be {c} instead of {x}.",
        "We changed our minds about {s}: {c} it is.",
        "Update on {s}: we switched from {x} to {c}.",
        "I was wrong about {s}. It has to be {c}.",
        "We decided that {s} is {c}.",
        "Sorry, I meant {c} for {s}.",
    ],
    settled: &[
        (
            "How many seats does the {p} plan have?",
            "It has {n} seats.",
        ),
        (
            "Is the staging server of the {p} up?",
            "Yes, since this morning.",
        ),
        ("Who wrote the importer of the {p}?", "{o} did."),
        ("When is the review of the {p}?", "On Tuesday at {n}."),
        ("Where is the config of the {p}?", "It lies in {f}."),
        (
            "Did the backup of the {p} run?",
            "It did, no problems at all.",
        ),
        ("Is the {p} slow for you, too?", "No, it is quick here."),
    ],
    open: &[
        (
            "Who pays for the {p} certificate?",
            "No idea, we have to ask finance.",
        ),
        (
            "When does the contract of the {p} landlord end?",
            "I don't know, let me check later.",
        ),
        ("Do we need a permit for the {p}?", "Not sure yet."),
        (
            "How long may the {p} keep addresses?",
            "We still need to find out.",
        ),
        (
            "Which invoices are missing for the {p}?",
            "That is still open.",
        ),
        ("Who writes the manual of the {p}?", "Not decided yet."),
    ],
    weighed: &[
        "{c} is faster, but harder to run.",
        "I used {c} at my last job and it was fine.",
        "We could also think about {c}.",
        "The docs of {c} are good.",
        "Hmm, {c} costs more.",
        "Somebody mentioned {c} as an option.",
    ],
    explained: &[
        "Each of them has its own way to deal with load, and most of the time you will not notice.",
        "In general it is good to keep the number of moving parts low.",
        "Many teams start with what they know and look for something else when it hurts.",
        "The difference shows only when several people work on it at the same time.",
        "You should think about how it is monitored, too.",
        "There are good tutorials for all of these, and the community answers quickly.",
        "If it turns out to be too slow one can still put something in front of it.",
        "A small test with real data says more than any comparison on the web.",
        "It depends on how often it changes and who has to read it.",
        "Nobody was ever fired for the simple solution, because it is the one that gets finished.",
    ],
    small_talk: &[
        "I see.",
        "Thanks!",
        "ok",
        "Good morning everyone",
        "Sounds good.",
        "haha nice",
        "Great, thank you so much for the quick answer.",
        "Got it",
        "👍",
        "Cảm ơn nhiều nhé!",
        "ありがとうございます。",
        "How are you today?",
    ],
    facts: &[
        "The import of the {p} has {n} rows.",
        "The settings of the {p} lie in {f}.",
        "The {p} answers in {n} milliseconds on average.",
        "We have {n} customers on the {p} now.",
        "The dump of the {p} is {n} MB.",
        "The {p} listens on port {n}.",
    ],
    fixed: &[
        (
            "The login test of the {p} fails because the clock is mocked.",
            "I fixed the login test of the {p}, {n} passed.",
        ),
        (
            "The {p} build is broken since the upgrade.",
            "The {p} build works again.",
        ),
        (
            "The export of the {p} crashes with an empty cart.",
            "The crash in the export of the {p} is solved.",
        ),
        (
            "error: {f} was not found by the {p}",
            "The {p} finds {f} now, fixed.",
        ),
        (
            "The {p} cannot reach the mail server.",
            "Resolved, the {p} reaches the mail server again.",
        ),
        (
            "Uploads to the {p} time out.",
            "Uploads to the {p} work now.",
        ),
    ],
};

pub const HELD_OUT: Phrases = Phrases {
    owned: &[
        "It's official: {c} is what we run as {s}, with {o} at the wheel.",
        "Everyone was in favour of {c} for {s}, so that's what happens. {o} said yes to doing it.",
        "No more debate, {b} = {c}. The ticket goes to {o}.",
        "The board signed off on {c} as {s}. {o} leads the work.",
        "I've made up my mind about {s}: we take {c}. {o} handles this.",
        "For {s} we're picking {c}; {o} drives it.",
        "{c} won the vote for {s}. Responsible: {o}.",
        "Cả nhóm đồng ý dùng {c} làm {b}. Giao cho {o}.",
        "{b}には{c}を採用します。{o}さんが対応します。",
    ],
    decided: &[
        "The verdict on {s} is {c}.",
        "{c} gets the nod for {s}.",
        "For {s}, {c} was approved.",
        "As for {s}, I opted for {c}.",
        "We're sticking with {c} for {s}.",
        "Make {s} {c}, please.",
    ],
    assigned: &[
        "{o} has this one.",
        "Perfect, I'll tell {o} to get started on it.",
        "{o} is on the hook for it.",
        "Put {o} down for that.",
        "Then it's {o}'s job.",
        "{o} agreed to handle it.",
    ],
    taken: &[
        "Count on me for this.",
        "I've got this.",
        "Happy to pick it up.",
        "Mine, I start tomorrow.",
        "I'll handle it.",
        "Will do.",
    ],
    asked: &[
        "Where did we land on {s}?",
        "Can we agree on {s}?",
        "So, {s}?",
        "Has anybody thought about {s}?",
        "What's the plan for {s}?",
        "Which one for {s}?",
    ],
    answered: &[
        "My vote: {c}.",
        "{c}, no question.",
        "Let us do {c}.",
        "{c} please.",
        "I think {c} fits best.",
        "We want {c}.",
    ],
    corrected: &[
        "Hold on, legal vetoed {x}; {s} moves to {c}.",
        "Forget {x}, we're doing {c} for {s} now.",
        "Turns out {x} won't work as {s}, so we go with {c}.",
        "Small change of plan: {c} replaces {x} as {s}.",
        "{s} is no longer {x}; it is {c} now.",
        "On second thought, use {c} for {s}.",
    ],
    settled: &[
        (
            "Can somebody tell me which branch of the {p} is deployed?",
            "main, as always.",
        ),
        ("Do we have a test account for the {p}?", "Yep, qa-{n}."),
        (
            "Why was the {p} pipeline red?",
            "A flaky test, it's green again.",
        ),
        ("Any idea how big the {p} logs are?", "About {n} GB."),
        ("Whose laptop shows the {p} demo?", "Mine."),
        ("Shall I restart the {p}?", "Please do."),
    ],
    open: &[
        (
            "What happens to old accounts of the {p}?",
            "Let's park that one.",
        ),
        (
            "How should the {p} behave offline?",
            "Good point, nobody has looked into it.",
        ),
        ("Are refunds in the {p} taxed?", "That needs a lawyer."),
        ("Should the {p} support Thai?", "We'll come back to this."),
        (
            "Where do the {p} logs go after a year?",
            "Hmm, still unclear.",
        ),
        ("Who reviews the {p} translations?", "To be decided."),
    ],
    weighed: &[
        "A friend swears by {c}.",
        "{c} has a nice community.",
        "I'm a bit afraid of {c}.",
        "There is a talk about {c} on video.",
        "{c} would be the boring option.",
        "Didn't we try {c} once",
    ],
    explained: &[
        "People tend to forget how much time the little things take.",
        "One can argue about it for hours, and both sides have a point.",
        "What matters in the end is whether the support team can live with it.",
        "Documentation is often the weakest part, so plan a day for reading.",
        "Some vendors promise more than they keep, always look at the contract.",
        "It helps to write down the reasons, as somebody will ask in a year.",
        "Most of the cost comes later, when it has to be maintained.",
        "A prototype would tell us whether the idea holds water.",
        "That said, taste plays a role as well.",
        "The numbers you find on the web were measured on other machines.",
    ],
    small_talk: &[
        "cheers",
        "brb, coffee",
        "Lovely weather today, isn't it?",
        "lol",
        "You are a star!",
        "no worries",
        "See you tomorrow",
        "Dạ vâng ạ",
        "お疲れ様です。",
    ],
    facts: &[
        "Last month the {p} sent {n} mails.",
        "You'll find the keys of the {p} under {f}.",
        "{n} people signed up for the {p} yesterday.",
        "A run of the {p} suite takes {n} seconds.",
        "The {p} costs us {n} euros a month.",
        "The {p} template is {f}.",
    ],
    fixed: &[
        (
            "Search in the {p} returns nothing at all, it is a bug.",
            "Search in the {p} is back to normal.",
        ),
        ("We get a 502 from the {p}.", "The 502 of the {p} is gone."),
        (
            "The {p} worker dies every night.",
            "The {p} worker runs through the night now, the leak is plugged.",
        ),
        (
            "panic: index out of range in the {p} parser",
            "No more panic in the {p} parser.",
        ),
        (
            "The {p} installer refuses to start.",
            "The {p} installer starts fine now.",
        ),
        (
            "Mails of the {p} land in spam.",
            "Mails of the {p} arrive in the inbox again.",
        ),
    ],
};
