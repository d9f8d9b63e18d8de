//! Search: hits with the parts of their scores, and the context that a prompt would get.

use futures::join;
use maud::{Markup, html};
use serde_json::{Value, json};

use crate::shell::{KINDS, NAMESPACES, choice, field, label, link, record_path};
use crate::text::{self, Fields};
use crate::{Answer, Failure, Visit, chart, shell};

/// Hits at first: as many as one sees, so that they follow the keys. A link shows more.
const LIMIT: u64 = 10;
const MOST: u64 = 50;
/// Characters of a hit.
const SNIPPET: usize = 280;
/// Hits below this score are folded.
const UNLIKELY: f64 = 0.03;
const BUDGET: u64 = 1000;
const MOST_BUDGET: u64 = 8000;

/// What is searched for. An empty query lists the newest records.
struct Asked<'a> {
    query: &'a str,
    kind: &'a str,
    namespace: &'a str,
    user: &'a str,
    tag: &'a str,
    since: &'a str,
    until: &'a str,
    budget: u64,
    limit: u64,
}

impl<'a> Asked<'a> {
    fn of(visit: &'a Visit<'_>) -> Self {
        let asked = |name| visit.asked(name).unwrap_or_default();
        let budget = asked("budget").parse().unwrap_or(BUDGET);
        Self {
            query: asked("q"),
            kind: asked("kind"),
            namespace: asked("namespace"),
            user: asked("user"),
            tag: asked("tag"),
            since: asked("since"),
            until: asked("until"),
            budget: budget.clamp(1, MOST_BUDGET),
            limit: asked("limit").parse().unwrap_or(LIMIT).clamp(1, MOST),
        }
    }

    /// Where the same search shows more hits.
    fn more(&self) -> String {
        let budget = self.budget.to_string();
        let most = MOST.to_string();
        let fields = [
            ("q", self.query),
            ("kind", self.kind),
            ("namespace", self.namespace),
            ("user", self.user),
            ("tag", self.tag),
            ("since", self.since),
            ("until", self.until),
            ("budget", budget.as_str()),
            ("limit", most.as_str()),
        ];
        link("/search", &fields)
    }

    fn has_filter(&self) -> bool {
        let filters = [
            self.kind,
            self.namespace,
            self.user,
            self.tag,
            self.since,
            self.until,
        ];
        filters.iter().any(|filter| !filter.is_empty())
    }

    /// The hits; without a query the newest records that the filters mean.
    async fn find(&self, visit: &Visit<'_>) -> Value {
        let mut fields = self.fields();
        if !self.query.is_empty() {
            return visit.aside("POST /v1/search", fields).await;
        }
        if let Some(fields) = fields.as_object_mut() {
            fields.remove("query");
        }
        let mut found = visit.aside("GET /v1/records", fields).await;
        let records = found.items("records").iter();
        let hits: Vec<Value> = records
            .map(|record| json!({ "record": record, "score": 1 }))
            .collect();
        if let Some(found) = found.as_object_mut() {
            found.insert("hits".to_owned(), json!(hits));
        }
        found
    }

    fn fields(&self) -> Value {
        let one = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let some = |text: &str| (!text.is_empty()).then(|| vec![text.to_owned()]);
        json!({
            "query": self.query,
            // One more shows whether there are more.
            "limit": self.limit + 1,
            "kind": some(self.kind),
            "namespace": some(self.namespace),
            "user": one(self.user),
            "tags": some(self.tag),
            "since": one(self.since),
            "until": one(self.until),
        })
    }
}

pub(crate) async fn show(visit: &Visit<'_>) -> Result<Answer, Failure> {
    let asked = Asked::of(visit);
    let found = async {
        match asked.query.is_empty() && !asked.has_filter() {
            true => Value::Null,
            false => asked.find(visit).await,
        }
    };
    let user = (!asked.user.is_empty()).then_some(asked.user);
    let about = json!({ "query": asked.query, "user": user, "budget": asked.budget });
    let context = async {
        match asked.query.is_empty() {
            true => Value::Null,
            false => visit.aside("POST /v1/context", about).await,
        }
    };
    match visit.asked("part") {
        Some("hits") => return Ok(hits(&asked, &found.await).into()),
        Some("context") => return Ok(compiled(&context.await).into()),
        _ => {}
    }
    let (found, context) = join!(found, context);
    let content = html! {
        h1 { "Search" }
        (form(visit, &asked))
        div.beside {
            section aria-label="Results" {
                div #hits data-part="hits" aria-live="polite" { (hits(&asked, &found)) }
            }
            aside.card aria-label="Context for a prompt" {
                h2 { "In the prompt" }
                div #context data-part="context" { (compiled(&context)) }
            }
        }
    };
    Ok(shell::page(visit.visitor, "/search", "Search", &content).into())
}

fn form(visit: &Visit<'_>, asked: &Asked<'_>) -> Markup {
    html! {
        form.search action="/search" method="get" role="search" data-search {
            div.line {
                label.hidden for="q" { "Search for" }
                input #q type="search" name="q" value=(text::clean(asked.query)) autocomplete="off"
                    placeholder="Words or a question" autofocus[asked.query.is_empty()];
                button.primary type="submit" { "Search" }
            }
            details.filters open[asked.has_filter()] {
                summary { "Filters and token budget" }
                div.fields {
                    (choice("kind", "Kind", "any", KINDS, asked.kind))
                    (choice("namespace", "Kept", "any", NAMESPACES, asked.namespace))
                    @if visit.visitor.user.is_none() {
                        (field("user", "User", asked.user, "any"))
                    }
                    (field("tag", "Tag", asked.tag, "any"))
                    (field("since", "Created since", asked.since, "7d or 2026-01-31"))
                    (field("until", "Created before", asked.until, "2026-01-31"))
                    label.field.wide {
                        span { "Tokens for the prompt: " output { (asked.budget) } }
                        input type="range" name="budget" min="100" max=(MOST_BUDGET) step="100" value=(asked.budget);
                    }
                }
            }
        }
    }
}

fn hits(asked: &Asked<'_>, found: &Value) -> Markup {
    let found_all = found.items("hits");
    let limit = usize::try_from(asked.limit).unwrap_or(usize::MAX);
    let all = found_all.get(..limit).unwrap_or(found_all);
    let is_likely = |hit: &&Value| hit.number("score") >= UNLIKELY;
    let (likely, others): (Vec<&Value>, Vec<&Value>) = all.iter().partition(is_likely);
    html! {
        (shell::notices(found))
        @if found.is_null() {
            (shell::empty("Type words or a question. The same search from a terminal:", "mnemon search \"what does Ann drink?\""))
        } @else if all.is_empty() && found.get("failure").is_none() {
            p.quiet { "No record matches. Try other words, or remove a filter." }
        } @else {
            ol.hits { @for found in &likely { li { (hit(found, asked)) } } }
            @if !others.is_empty() {
                details open[likely.is_empty()] {
                    summary { (others.len()) " less likely" }
                    ol.hits { @for found in &others { li { (hit(found, asked)) } } }
                }
            }
            @if found_all.len() > limit && asked.limit < MOST {
                p { a href=(asked.more()) { "Show more results" } }
            }
        }
    }
}

fn hit(hit: &Value, asked: &Asked<'_>) -> Markup {
    let record = hit.get("record").unwrap_or(&Value::Null);
    let (id, score) = (record.text("id"), hit.number("score"));
    let matched = hit.texts("matched");
    html! {
        article.hit {
            @if !asked.query.is_empty() {
                div.score title="Estimated probability that it answers the query" {
                    (chart::bar(score))
                    span.count { (percent(score)) }
                }
            }
            p.content { a data-row href=(record_path(id)) { (text::snippet(record.text("content"), &matched, SNIPPET)) } }
            (facts(record))
            @if !asked.query.is_empty() {
                details.why {
                    summary { "Why this score" }
                    (parts(hit, &matched))
                }
            }
        }
    }
}

/// The kind, owner, tags and time of a record in a line.
pub(crate) fn facts(record: &Value) -> Markup {
    let owner = record.get("owner").unwrap_or(&Value::Null);
    html! {
        p.facts {
            (label(record.text("kind")))
            @if record.text("namespace") == "short-term" { (label("short-term")) }
            @for name in ["user", "agent", "session"] {
                @if !owner.text(name).is_empty() { span { (name) " " (text::name(owner.text(name))) } }
            }
            @for tag in record.texts("tags").iter().take(6) {
                (shell::tag(tag, "/search"))
            }
            (text::time(record.text("created")))
        }
    }
}

/// Parts of a score: the arms of the search as shares, then factors.
const ARMS: &[(&str, &str)] = &[
    ("words", "words"),
    ("meaning", "meaning"),
    ("told", "days in its text"),
];
const FACTORS: &[(&str, &str)] = &[
    ("speaker", "speaker"),
    ("date", "date"),
    ("answer", "form of an answer"),
    ("asking", "is itself a question"),
    ("recency", "recency"),
    ("importance", "importance"),
];

/// Factors that are shown only where they change the score.
const SELDOM: &[&str] = &["answer", "asking"];

fn parts(hit: &Value, matched: &[&str]) -> Markup {
    let parts = hit.get("parts").unwrap_or(&Value::Null);
    let is_shown =
        |name: &str| !SELDOM.contains(&name) || (parts.number(name) - 1.0).abs() >= 0.005;
    let factors = FACTORS.iter().filter(|(name, _)| is_shown(name));
    html! {
        table.parts {
            thead.hidden { tr { th { "Part" } th { "Size" } th { "Value" } } }
            tbody {
                @for (name, words) in ARMS {
                    @let value = parts.number(name);
                    tr { th scope="row" { (words) } td { (chart::bar(value)) } td.count { (format!("{value:.2}")) } }
                }
                @for (name, words) in factors {
                    @let value = parts.number(name);
                    // A factor of 1 changes nothing, and is half of the bar.
                    tr.factor { th scope="row" { (words) } td { (chart::bar(value / 2.0)) } td.count { "×" (format!("{value:.2}")) } }
                }
            }
        }
        @if !matched.is_empty() {
            p.quiet { "Matched: " @for word in matched { (text::name(word)) " " } }
        }
    }
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// The text that a prompt would get, what is in it and what is left out.
fn compiled(context: &Value) -> Markup {
    html! {
        (shell::notices(context))
        @if context.is_null() {
            p.quiet { "With a query, this shows the text that an agent gets for its prompt, within a budget of tokens." }
        } @else if context.get("failure").is_none() {
            @let (tokens, budget) = (context.whole("tokens"), context.whole("budget").max(1));
            p.tokens {
                (chart::bar(tokens as f64 / budget as f64))
                span.count { (text::grouped(tokens)) " of " (text::grouped(budget)) " tokens" }
            }
            pre.text.prompt dir="auto" tabindex="0" { (text::clean(text::cut(context.text("text"), text::WHOLE).0)) }
            (sections(context))
            (left_out(context))
        }
    }
}

fn sections(context: &Value) -> Markup {
    let used = || {
        context
            .items("sections")
            .iter()
            .filter(|one| one.whole("taken") + one.whole("left_out") > 0)
    };
    html! {
        @if used().next().is_some() {
            table {
                thead { tr { th { "Section" } th.count { "In" } th.count { "Left out" } th.count { "Tokens" } } }
                tbody {
                    @for one in used() {
                        tr {
                            th scope="row" { (one.text("section")) }
                            td.count { (one.whole("taken")) } td.count { (one.whole("left_out")) }
                            td.count { (text::grouped(one.whole("tokens"))) }
                        }
                    }
                }
            }
        }
    }
}

fn left_out(context: &Value) -> Markup {
    let left = context.items("left_out");
    html! {
        @if !left.is_empty() {
            details {
                summary { "Left out (" (left.len()) ")" }
                ul.plain {
                    @for one in left.iter().take(50) {
                        li { a href=(record_path(one.text("id"))) { (text::line(one.text("summary"))) }
                            span.quiet { " " (why(one)) ", " (one.whole("tokens")) " tokens" } }
                    }
                }
            }
        }
        @for one in context.items("silent") {
            p.quiet { (one.text("scope")) ": " (text::clean(one.text("why"))) }
        }
    }
}

fn why(left: &Value) -> &'static str {
    match left.text("why") {
        "no-room" => "the budget is used up",
        "ceiling" => "its section is full",
        "older-turn" => "a newer message did not fit",
        "duplicate" => "another one says the same",
        "empty" => "it has no text",
        _ => "left out",
    }
}
