//! The operation that searches everything the caller may see.

use mnemon_core::rank::Recipe;
use mnemon_core::{Filter, Invalid, Kind, Namespace, Scope, limits};

use super::notes::{owner, tags};
use super::{Access, Arguments, Field, Interface, Operation, Spelling, when};
use crate::{Error, api};

/// The heading of the options that choose records.
const WHICH: &str = "Which records";

#[derive(Debug)]
pub(crate) struct Search;

impl Operation for Search {
    const COMMAND: &'static str = "search";
    const TOOL: &'static str = "memory_search";
    type Answer = api::search::Response;

    fn fields() -> Vec<Field> {
        let min_score =
            "Leave out hits that score less; 0 shows the nearest records even if nothing is known";
        let most = limits::HITS as u64;
        let recipes = Recipe::ALL.iter().map(|recipe| recipe.as_str());
        let mut fields = vec![
            Field::text(
                "query",
                limits::QUERY_BYTES,
                "Words or a question to search for",
            )
            .or(&["q", "text", "search", "question", "keywords"])
            .positional(Spelling::Words, "QUERY")
            .piped(),
            Field::whole("limit", 1, most, "Maximum number of hits")
                .clamped()
                .default("10")
                .or(&["max_results", "top_k", "k", "n", "count"]),
            Field::number("min_score", 0.0, 1.0, min_score)
                .or(&["threshold"])
                .rare(),
            Field::one_of("recipe", recipes, "Ranking method")
                .default("hybrid")
                .only(Interface::CommandLine),
            Field::flag("include_content", "Show the beginning of each content, too")
                .only(Interface::Mcp)
                .rare(),
        ];
        fields.extend(which().into_iter().map(|field| field.under(WHICH)));
        fields
    }

    async fn run(access: &Access<'_>, mut arguments: Arguments) -> Result<Self::Answer, Error> {
        let recipe = arguments.text("recipe").map(|word| word.parse());
        let request = api::search::Request {
            query: arguments.text("query").unwrap_or_default(),
            recipe: recipe.transpose()?.unwrap_or_default(),
            limit: arguments.whole("limit").unwrap_or(api::search::LIMIT),
            min_score: arguments.number("min_score"),
            filter: filter(access, &mut arguments)?,
        };
        api::search::run(access.memory, access.ctx, request).await
    }
}

/// Which records of those that the caller may see.
fn which() -> Vec<Field> {
    let terminal = |field: Field| field.only(Interface::CommandLine);
    let kinds = "Kind of the records: note, fact, decision, document, message, skill, …";
    let since = "Created at or after: 2026-01-31, RFC 3339, or 7d (ago)";
    let metadata =
        "Condition on the metadata: {\"lang\":\"vi\",\"n\":{\"$gte\":3}}, with AND, OR and NOT";
    let mut fields = vec![
        Field::texts("kind", Kind::ALL.len(), limits::NAME_CHARS, kinds)
            .or(&["kinds"])
            .value("KIND"),
        Field::texts(
            "scope",
            Scope::ALL.len(),
            limits::NAME_CHARS,
            "Only this scope",
        )
        .value("SCOPE")
        .only(Interface::CommandLine),
        Field::texts(
            "namespace",
            Namespace::ALL.len(),
            limits::NAME_CHARS,
            "Only short-term or long-term records",
        )
        .or(&["type", "ns", "memory_type"])
        .value("NAMESPACE")
        .rare(),
        tags("Records with at least one of these tags").rare(),
        terminal(Field::text(
            "source",
            limits::SOURCE_CHARS,
            "Source of the records",
        )),
        Field::text("since", 64, since).value("WHEN").rare(),
        terminal(Field::text("until", 64, "Created before").value("WHEN")),
        terminal(Field::text("filter", limits::CONTENT_BYTES, metadata).value("JSON")),
    ];
    let session = Field::text("session", limits::NAME_CHARS, "Only this conversation")
        .value("NAME")
        .or(&["session_id", "conversation"])
        .rare();
    let owner = owner("User whose records are searched").into_iter();
    fields.extend(owner.filter(|field| field.name != session.name));
    fields.push(session);
    fields
}

fn filter(access: &Access<'_>, arguments: &mut Arguments) -> Result<Filter, Error> {
    let now = access.ctx.now;
    let mut moment = |name: &str| {
        let text = arguments.take_text(name);
        text.map(|text| when::past(name, &text, now)).transpose()
    };
    let (since, until) = (moment("since")?, moment("until")?);
    let metadata = arguments.take_text("filter");
    let owner = arguments.take_owner();
    let viewer = access.viewer(&owner);
    Ok(Filter {
        owner,
        kinds: kinds(&arguments.texts("kind"))?,
        scopes: words(&arguments.texts("scope"))?,
        namespaces: words(&arguments.texts("namespace"))?,
        tags: arguments.texts("tags"),
        source: arguments.text("source"),
        since,
        until,
        metadata: metadata.map(|text| text.parse()).transpose()?,
        ..Filter::seen_by(viewer)
    })
}

fn words<T: std::str::FromStr<Err = Invalid>>(words: &[String]) -> Result<Vec<T>, Invalid> {
    words.iter().map(|word| word.trim().parse()).collect()
}

/// Documents are found by their chunks. A plural is understood.
fn kinds(words: &[String]) -> Result<Vec<Kind>, Invalid> {
    let mut kinds = Vec::new();
    for word in words {
        let word = word.trim().to_lowercase();
        let singular = word.strip_suffix('s').and_then(|word| word.parse().ok());
        let kind = singular.map_or_else(|| word.parse(), Ok)?;
        kinds.push(kind);
        kinds.extend((kind == Kind::Document).then_some(Kind::Chunk));
    }
    Ok(kinds)
}
