//! Operations on the records that a filter chooses.

use mnemon_core::rank::Recipe;
use mnemon_core::{
    Filter, HiddenScan, Id, Invalid, Kind, Namespace, Order, Owner, Record, Scan, Scope, Viewer,
    limits,
};
use mnemon_engine::{Hit, Query};
use serde::{Deserialize, Serialize};

use super::notes::{READER, own, owner, see_shared, tags};
use super::records::{id, ids};
use super::{
    Access, Arguments, Field, Forget, ForgetOne, ForgetPreview, Interface, List, Operation,
    Ownership, Search, Selection, Spelling, when,
};
use crate::{Error, api, wiring};

/// Sources of which `list` takes the derived records: the query of a URL holds not many more.
const LISTED_SOURCES: usize = 16;

/// The heading of the options that choose records.
const WHICH: &str = "Which records";

/// Records that a search found, the best first.
#[derive(Debug, Serialize, Deserialize)]
pub struct Found {
    pub recipe: Recipe,
    pub hits: Vec<Hit>,
}

impl Operation for Search {
    const COMMAND: &'static str = "search";
    const TOOL: &'static str = "memory_search";
    type Answer = Found;

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
            .piped()
            // A command may list the newest records; a tool has memory_list for that.
            .required_on(Interface::Mcp),
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
        fields.extend(visible());
        fields
    }

    async fn run(access: &Access<'_>, mut arguments: Arguments) -> Result<Found, Error> {
        let mut filter = visible_to(access, &mut arguments)?;
        if filter.kinds.contains(&Kind::Document) {
            // Documents are found by their chunks.
            filter.kinds.push(Kind::Chunk);
        }
        let usual = Query::new(arguments.needed("query"), filter);
        let recipe = arguments.text("recipe").map(|word| word.parse());
        let query = Query {
            explain: true,
            may_run_inline: true,
            recipe: recipe.transpose()?.unwrap_or_default(),
            limit: arguments.whole("limit").unwrap_or(usual.limit),
            min_score: arguments.number("min_score"),
            ..usual
        };
        let hits = access.memory.search(access.ctx, &query).await?;
        let recipe = query.recipe;
        Ok(Found { recipe, hits })
    }
}

impl Operation for List {
    const COMMAND: &'static str = "list";
    type Answer = api::list::Response;

    fn fields() -> Vec<Field> {
        let order = "Order: by time of creation, or as the store wrote them";
        let after = "Continue after this cursor, which the previous page printed";
        let derived = "Only records that were derived from this one";
        let mut fields = vec![
            Field::whole("limit", 1, limits::PAGE as u64, "Records on a page").default("50"),
            Field::choice("order", &["newest", "oldest", "written"], order).default("newest"),
            Field::text("after", limits::ID_CHARS * 2, after).value("CURSOR"),
            Field::texts("derived_from", LISTED_SOURCES, limits::ID_CHARS, derived)
                .value("ID")
                .only(Interface::CommandLine),
        ];
        fields.extend(visible());
        fields
    }

    async fn run(access: &Access<'_>, mut arguments: Arguments) -> Result<Self::Answer, Error> {
        let limit = arguments.whole("limit").unwrap_or(api::list::LIMIT);
        let derived_from = words(&arguments.texts("derived_from"))?;
        let filter = Filter {
            derived_from,
            ..visible_to(access, &mut arguments)?
        };
        let scan = Scan {
            order: match arguments.text("order").as_deref() {
                Some("oldest") => Order::Oldest,
                Some("written") => Order::Written,
                _ => Order::Newest,
            },
            after: arguments.cursor("after")?,
            ..Scan::new(filter, limit)
        };
        api::list::run(access.memory, access.ctx, scan).await
    }
}

/// The records that are to go.
fn chosen() -> Vec<Field> {
    let purge = "Erase permanently, with history: this cannot be undone";
    let mut fields = vec![ids(), Field::flag("purge", purge)];
    fields.extend(which(OWNER));
    fields
}

/// Records by id or by filter, of which the caller may forget each: a key of one user means that
/// user's own records.
async fn request(
    access: &Access<'_>,
    arguments: &mut Arguments,
) -> Result<api::forget::Request, Error> {
    let (key, given) = (arguments.take_text("key"), arguments.texts("ids"));
    let ids = match (&key, access.user) {
        // A retry under the same key must mean the same ids, also when they are gone.
        (Some(_), None) => given
            .iter()
            .map(|id| id.parse())
            .collect::<Result<_, _>>()?,
        _ => access.ids(&given).await?,
    };
    let mut filter = Filter {
        // Forgetting a user reaches all that belongs to them, also what only an agent may see.
        viewer: Viewer::Tenant,
        ..filter(access, arguments)?
    };
    let has_filter = !filter.is_empty();
    if let Some(user) = access.user {
        filter.owner.user = Some(user.to_owned());
    }
    access.check_own(&ids).await?;
    let request = api::forget::Request {
        ids,
        filter: has_filter.then_some(filter),
        purge: arguments.flag("purge").unwrap_or(false),
        key,
        version: None,
    };
    let what = match (request.ids.is_empty(), &request.filter) {
        (true, None) => {
            "are missing; name the records, or select them with options such as --session"
        }
        (false, Some(_)) => {
            "are given together with options that choose records; use one or the other"
        }
        _ => return Ok(request),
    };
    Err(Invalid::new("ids", what).into())
}

/// The idempotency key of a deletion.
fn key() -> Field {
    let about = "Idempotency key: a repeated call with the same key changes nothing";
    Field::text("key", limits::KEY_CHARS, about)
}

impl Operation for ForgetOne {
    type Answer = api::forget::Response;

    fn fields() -> Vec<Field> {
        let version = "Forget it only if it still has this version";
        vec![
            id(),
            key(),
            Field::whole("if_version", 1, u64::from(u32::MAX), version),
        ]
    }

    async fn run(access: &Access<'_>, mut arguments: Arguments) -> Result<Self::Answer, Error> {
        let version = arguments.whole("if_version").map(|version| version as u64);
        let id = arguments.take_text("id").into_iter();
        arguments.set("ids", id.collect::<Vec<_>>());
        let request = api::forget::Request {
            version,
            ..request(access, &mut arguments).await?
        };
        api::forget::run(access.memory, access.ctx, request).await
    }
}

impl Operation for Forget {
    const COMMAND: &'static str = "forget";
    /// One round; there are more if the filter means more records than one commit may take.
    type Answer = api::forget::Response;

    fn fields() -> Vec<Field> {
        let mut fields = chosen();
        fields.insert(2, key());
        fields
    }

    async fn run(access: &Access<'_>, mut arguments: Arguments) -> Result<Self::Answer, Error> {
        let request = request(access, &mut arguments).await?;
        let purge = request.purge;
        let mut done = api::forget::run(access.memory, access.ctx, request).await?;
        if purge && !done.more {
            done.left.extend(wiring::kept_copies(access.config));
        }
        Ok(done)
    }
}

/// Records that would be forgotten: the first page of them.
#[derive(Debug, Serialize, Deserialize)]
pub struct WouldForget {
    pub dry_run: bool,
    pub records: Vec<Record>,
    /// How many of those that were forgotten earlier or have expired a purge would erase.
    pub forgotten_earlier: usize,
    pub missing: Vec<Id>,
    pub more: bool,
    /// Entries of agents' files, which only a purge removes.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub file_entries: usize,
    /// Derived records that would go with the named ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cascaded: Vec<Id>,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

impl Operation for ForgetPreview {
    type Answer = WouldForget;

    fn fields() -> Vec<Field> {
        chosen()
    }

    async fn run(access: &Access<'_>, mut arguments: Arguments) -> Result<WouldForget, Error> {
        let (memory, ctx) = (access.memory, access.ctx);
        let request = request(access, &mut arguments).await?;
        let Some(filter) = request.filter else {
            let viewer = access.viewer(&Owner::default());
            let found = api::get::run(memory, ctx, &viewer, request.ids).await?;
            let ids: Vec<Id> = found.records.iter().map(|one| one.id.clone()).collect();
            return Ok(WouldForget {
                cascaded: cascaded(access, &ids).await?,
                dry_run: true,
                records: found.records,
                forgotten_earlier: 0,
                missing: found.missing,
                more: false,
                file_entries: 0,
            });
        };
        let earlier = match request.purge {
            true => {
                let scan = HiddenScan::new(filter.clone());
                memory.records().hidden(ctx, &scan).await?
            }
            false => Vec::new(),
        };
        let page = api::list::run(memory, ctx, Scan::new(filter, limits::PAGE)).await?;
        let is_in_file = |record: &Record| !request.purge && record.is_of_agent_file();
        let records = page.records.into_iter();
        let (in_files, records): (Vec<_>, Vec<_>) = records.partition(is_in_file);
        Ok(WouldForget {
            dry_run: true,
            more: page.next.is_some() || earlier.len() == limits::PAGE,
            records,
            file_entries: in_files.len(),
            forgotten_earlier: earlier.iter().filter(|hidden| !hidden.is_live).count(),
            missing: Vec::new(),
            cascaded: Vec::new(),
        })
    }
}

/// Derived records that go with these, as far as the caller may see them. A notice says that there
/// are others.
async fn cascaded(access: &Access<'_>, ids: &[Id]) -> Result<Vec<Id>, Error> {
    let (memory, ctx) = (access.memory, access.ctx);
    let all = memory.records().would_cascade(ctx, ids).await?;
    if access.user.is_none() {
        return Ok(all);
    }
    let viewer = access.viewer(&Owner::default());
    let mut seen = Vec::new();
    for some in all.chunks(limits::PAGE) {
        let found = api::get::run(memory, ctx, &viewer, some.to_vec()).await?;
        seen.extend(found.records.into_iter().map(|record| record.id));
    }
    if seen.len() < all.len() {
        let what = "Records of others that were derived from these go with them.";
        ctx.notices.add(what.to_owned());
    }
    Ok(seen)
}

impl Operation for Selection {
    type Answer = Filter;

    fn fields() -> Vec<Field> {
        which(OWNER)
    }

    async fn run(access: &Access<'_>, mut arguments: Arguments) -> Result<Filter, Error> {
        filter(access, &mut arguments)
    }
}

/// The user of an operation on the records of one user.
const OWNER: &str = "User whose records are meant";

/// Which records of those that a user may see.
fn visible() -> Vec<Field> {
    let mut fields = which(READER);
    fields.push(own().under(WHICH));
    fields
}

fn visible_to(access: &Access<'_>, arguments: &mut Arguments) -> Result<Filter, Error> {
    let mut filter = filter(access, arguments)?;
    see_shared(arguments, &mut filter.owner)?;
    Ok(filter)
}

/// Which records of those that the caller may see.
fn which(user: &'static str) -> Vec<Field> {
    let terminal = |field: Field| field.only(Interface::CommandLine);
    let scopes = Scope::ALL.iter().map(|scope| scope.as_str());
    let namespaces = Namespace::ALL.iter().map(|namespace| namespace.as_str());
    let kinds = "Kind of the records: note, fact, decision, document, message, skill, …";
    let since = "Created at or after: 2026-01-31, 2026-01-31 12:00, RFC 3339, or 7d (ago)";
    let metadata =
        "Condition on the metadata: {\"lang\":\"vi\",\"n\":{\"$gte\":3}}, with AND, OR and NOT";
    let mut fields = vec![
        Field::texts("kind", Kind::ALL.len(), limits::NAME_CHARS, kinds)
            .or(&["kinds"])
            .value("KIND"),
        terminal(Field::some_of("scope", scopes, "Scope of the records")),
        Field::some_of("namespace", namespaces, "Namespace of the records")
            .or(&["type", "ns", "memory_type"])
            .rare(),
        tags("Records with at least one of these tags").rare(),
        terminal(Field::text(
            "source",
            limits::SOURCE_CHARS,
            "Source of the records",
        )),
        Field::text("since", 64, since).value("WHEN").prose().rare(),
        terminal(
            Field::text("until", 64, "Created before")
                .value("WHEN")
                .prose(),
        ),
        terminal(Field::text("filter", limits::CONTENT_BYTES, metadata).value("JSON")),
    ];
    let session = Field::text("session", limits::NAME_CHARS, "Only this conversation")
        .value("NAME")
        .or(&["session_id", "conversation"])
        .rare();
    let owner = owner(user).into_iter();
    fields.extend(owner.filter(|field| field.name != session.name));
    fields.push(session);
    fields.into_iter().map(|field| field.under(WHICH)).collect()
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

impl Operation for Ownership {
    type Answer = Owner;

    fn fields() -> Vec<Field> {
        owner("User it is about or from")
    }

    async fn run(_: &Access<'_>, mut arguments: Arguments) -> Result<Owner, Error> {
        Ok(arguments.take_owner())
    }
}

pub(super) fn words<T: std::str::FromStr<Err = Invalid>>(
    words: &[String],
) -> Result<Vec<T>, Invalid> {
    words.iter().map(|word| word.trim().parse()).collect()
}

/// A plural is understood.
fn kinds(words: &[String]) -> Result<Vec<Kind>, Invalid> {
    let kinds = words.iter().map(|word| {
        let word = word.trim().to_lowercase();
        let singular = word.strip_suffix('s').and_then(|word| word.parse().ok());
        singular.map_or_else(|| word.parse(), Ok)
    });
    kinds.collect()
}
