//! Operations on records of any kind.

use mnemon_core::{
    Change, Changes, Fate, Id, Invalid, Kind, Namespace, Origin, Outcome, Owner, Receipt, Scope,
    Viewer, limits,
};
use mnemon_engine::notes::NearDuplicate;
use mnemon_engine::{Draft, Edit, Edited, INDEX_ACTOR, MemoryItem, MemoryQuery, MemoryWriteEvent};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::notes::{metadata, namespace, owner, tags, ttl};
use super::search::words;
use super::{
    Access, Add, Arguments, Field, Get, History, Interface, Operation, Read, Spelling, Stats, Undo,
    Update, Write, when,
};
use crate::{Error, api};

/// The record that is meant.
pub(super) fn id() -> Field {
    let about = "The id, from an earlier answer, or its first characters (4 or more)";
    let field = Field::text("id", limits::ID_CHARS, about).required();
    field.or(&["reference_id", "ref_id", "note_id", "memory_id"])
}

/// The records that are meant.
pub(super) fn ids() -> Field {
    let about = "Ids, or the first characters of each (4 or more)";
    let field = Field::texts("ids", limits::BATCH_OPS, limits::ID_CHARS, about);
    field.positional(Spelling::Each, "ID")
}

impl Operation for Get {
    const COMMAND: &'static str = "get";
    type Answer = api::get::Response;

    fn fields() -> Vec<Field> {
        vec![ids().required()]
    }

    async fn run(access: &Access<'_>, arguments: Arguments) -> Result<Self::Answer, Error> {
        let ids = access.ids(&arguments.texts("ids")).await?;
        let viewer = access.viewer(&Owner::default());
        let found = api::get::run(access.memory, access.ctx, &viewer, ids).await?;
        // The command prints those that are there, and then names the others.
        match access.interface == Interface::Http && found.records.is_empty() {
            true => Err(Error::Missing(found.missing)),
            false => Ok(found),
        }
    }
}

impl Operation for Stats {
    const COMMAND: &'static str = "stats";
    type Answer = api::stats::Response;

    async fn run(access: &Access<'_>, _: Arguments) -> Result<Self::Answer, Error> {
        api::stats::run(access.memory, access.ctx).await
    }
}

/// Whose call it is.
pub(super) fn caller() -> Vec<Field> {
    let name = |name, about| Field::text(name, limits::NAME_CHARS, about).value("NAME");
    vec![
        name("user", "User who makes the call").required(),
        name("session", "Session of the user").required(),
        name("agent", "Agent that makes the call").default("cli"),
        name("flow", "Flow; its policy applies"),
        name("node", "Node of the flow"),
    ]
}

impl Operation for Write {
    const COMMAND: &'static str = "write";
    type Answer = Receipt;

    fn fields() -> Vec<Field> {
        let scopes = Scope::ALL.iter().map(|scope| scope.as_str());
        let meta = "Options of the write: idempotency_key, expected_version, trace_id, or custom \
            metadata";
        let mut fields = caller();
        fields.extend([
            Field::one_of("scope", scopes, "Scope to write to").required(),
            Field::json("data", "Data to save, as a JSON object").required(),
            Field::json("meta", meta).value("JSON"),
        ]);
        fields
    }

    async fn run(access: &Access<'_>, mut arguments: Arguments) -> Result<Receipt, Error> {
        let mut object = |name: &str| match arguments.take(name) {
            None => Ok(Map::new()),
            Some(Value::Object(fields)) => Ok(fields),
            Some(_) => Err(Invalid::new(name, "is not a JSON object")),
        };
        let (data, meta) = (object("data")?, object("meta")?);
        if access.own_only && data.get("shared").is_some_and(|shared| shared != false) {
            let what = "this key is for one user only: leave `shared` out of the data";
            return Err(Error::Forbidden(what.to_owned()));
        }
        let event = MemoryWriteEvent {
            user_id: arguments.needed("user"),
            session_id: arguments.needed("session"),
            agent_id: arguments.text("agent").unwrap_or_else(|| "cli".to_owned()),
            flow_id: arguments.text("flow"),
            node_id: arguments.text("node"),
            scope: arguments.needed("scope").parse()?,
            data,
            meta,
        };
        Ok(access.memory.write(access.ctx, &event).await?)
    }
}

/// What each scope answered.
#[derive(Debug, Serialize, Deserialize)]
pub struct ReadItems {
    pub items: Vec<MemoryItem>,
}

impl Operation for Read {
    const COMMAND: &'static str = "read";
    type Answer = ReadItems;

    fn fields() -> Vec<Field> {
        let scopes = Scope::ALL.iter().map(|scope| scope.as_str());
        let text = |name, max, about| Field::text(name, max, about).value("TEXT");
        let query = "Query for facts, documents and skills";
        let task_type = "Type of task, for skills and experience";
        let filter = "Condition on the metadata of documents: {\"lang\":\"vi\"}";
        let mut fields = caller();
        fields.extend([
            Field::some_of("scope", scopes, "Scope to read").default("all"),
            text("query", limits::QUERY_BYTES, query),
            text("task_type", limits::TASK_TYPE_CHARS, task_type).value("NAME"),
            text("filter", limits::CONTENT_BYTES, filter).value("JSON"),
        ]);
        fields
    }

    async fn run(access: &Access<'_>, arguments: Arguments) -> Result<ReadItems, Error> {
        let agent = arguments.text("agent");
        let agent = agent.unwrap_or_else(|| access.agent.unwrap_or("cli").to_owned());
        let scopes = words(&arguments.texts("scope"))?;
        let scopes = match scopes.as_slice() {
            [] => Scope::ALL,
            some => some,
        };
        let [user, session] = ["user", "session"].map(|name| arguments.needed(name));
        let mut query = MemoryQuery {
            flow_id: arguments.text("flow"),
            node_id: arguments.text("node"),
            query: arguments.text("query"),
            task_type: arguments.text("task_type"),
            ..MemoryQuery::new(user, session, agent, scopes)
        };
        if let Some(filter) = arguments.text("filter") {
            let filter = serde_json::from_str(&filter)
                .map_err(|error| Invalid::new("filter", format!("is not JSON: {error}")))?;
            query.extra.insert("filters".to_owned(), filter);
        }
        let items = access.memory.read(access.ctx, &query).await?;
        Ok(ReadItems { items })
    }
}

impl Operation for History {
    const COMMAND: &'static str = "history";
    type Answer = api::history::Response;

    fn fields() -> Vec<Field> {
        let id = "Show only changes of this record: its id, or the first characters (4 or more)";
        let before = "Continue from this number, which the previous page printed";
        let number = |name, about| Field::whole(name, 1, u64::from(u32::MAX), about);
        vec![
            Field::text("id", limits::ID_CHARS, id).positional(Spelling::Positional, "ID"),
            number("commit", "Show only changes of this commit"),
            number("before", before),
            Field::whole("limit", 1, limits::PAGE as u64, "Maximum number of changes")
                .default("20"),
        ]
    }

    async fn run(access: &Access<'_>, mut arguments: Arguments) -> Result<Self::Answer, Error> {
        let id = match arguments.has("id") {
            true => Some(access.id(&mut arguments, "id").await?),
            false => None,
        };
        let [commit, before] = ["commit", "before"].map(|name| arguments.whole(name));
        let limit = arguments.whole("limit").unwrap_or(api::history::LIMIT);
        let asked = Changes {
            id: id.clone(),
            commit: commit.map(|commit| commit as u64),
            before: before.map(|before| before as u64),
            ..Changes::seen_by(access.viewer(&Owner::default()), limit)
        };
        let page = api::history::run(access.memory, access.ctx, asked).await?;
        match (page.changes.is_empty() && before.is_none(), id) {
            (true, Some(id)) => Err(Error::Missing(vec![id])),
            _ => Ok(page),
        }
    }
}

/// What was stored, and what says nearly the same.
#[derive(Debug, Serialize, Deserialize)]
pub struct Stored {
    #[serde(flatten)]
    pub receipt: Receipt,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub near_duplicate: Option<NearDuplicate>,
}

impl Operation for Add {
    const COMMAND: &'static str = "add";
    type Answer = Stored;

    fn fields() -> Vec<Field> {
        let audience = "Readers: user:NAME, agent:NAME, team:NAME or everyone";
        let source = "Source: a URL, a path, a name";
        let derived = "A record it was derived from; deleting that one deletes this one";
        let text = |name, max, about| Field::text(name, max, about);
        let mut fields = vec![
            text("content", limits::CONTENT_BYTES, "Text to remember")
                .or_else(&["file"])
                .positional(Spelling::Words, "CONTENT")
                .piped(),
            text(
                "file",
                limits::PATH_BYTES,
                "Read the content from this file, byte for byte",
            )
            .value("PATH")
            .local(),
            Field::one_of(
                "kind",
                Kind::ALL.iter().map(|kind| kind.as_str()),
                "Kind of record",
            )
            .default("note"),
            Field::one_of(
                "namespace",
                Namespace::ALL.iter().map(|word| word.as_str()),
                "Namespace, which decides how long it is kept",
            )
            .default("long-term"),
            Field::words("tags", limits::TAGS, limits::TAG_CHARS, "A tag").option("tag"),
            text("source", limits::SOURCE_CHARS, source),
            Field::one_of(
                "origin",
                Origin::ALL.iter().map(|word| word.as_str()),
                "Origin of the information",
            )
            .default("user; file with --file"),
            Field::one_of(
                "scope",
                Scope::ALL.iter().map(|word| word.as_str()),
                "Scope of memory",
            )
            .default("the usual one for its kind"),
            text("audience", limits::NAME_CHARS + 10, audience)
                .value("WHO")
                .default("its user, or everyone without one"),
            Field::number("importance", 0.0, 1.0, "How important it is"),
            text(
                "summary",
                limits::SUMMARY_BYTES,
                "A short form of the content",
            ),
            ttl().excludes("expires"),
            text("expires", 64, "Time at which it expires")
                .value("WHEN")
                .prose(),
            text("created", 64, "Time of creation, if not now")
                .value("WHEN")
                .prose(),
            metadata("Metadata"),
            Field::texts("derived_from", limits::SOURCES, limits::ID_CHARS, derived).value("ID"),
            text("id", limits::ID_CHARS, "Id of your choice").default("a new one"),
            text(
                "key",
                limits::KEY_CHARS,
                "Idempotency key: the same key stores it once",
            ),
        ];
        fields.extend(owner("The user it is about or from"));
        fields
    }

    async fn run(access: &Access<'_>, mut arguments: Arguments) -> Result<Stored, Error> {
        let now = access.ctx.now;
        let key = arguments.take_text("key");
        let id = arguments.has("id").then(|| arguments.take_id("id"));
        let (ttl, at) = (
            access.expires(&mut arguments)?,
            arguments.take_text("expires"),
        );
        let expires = at.map(|at| when::absolute("expires", &at)).transpose()?;
        let created = arguments.take_text("created");
        let created = created
            .map(|at| when::past("created", &at, now))
            .transpose()?;
        let audience = arguments.take_text("audience");
        if access.own_only {
            check_bound(&arguments, id.is_some())?;
        }
        if key.is_none() || access.own_only {
            let own = id.as_ref().and_then(|id| id.as_ref().ok());
            check_sources(access, &arguments.texts("derived_from"), own).await?;
        }
        let draft = Draft {
            id: id.transpose()?,
            owner: access.owned(arguments.take_owner()),
            audience: audience.map(|who| who.parse()).transpose()?,
            expires: ttl.or(expires),
            created,
            ..arguments.read()?
        };
        let near = match draft.kind {
            None | Some(Kind::Note | Kind::Fact | Kind::Decision) => {
                access
                    .memory
                    .notes()
                    .near_duplicate(access.ctx, &draft)
                    .await?
            }
            Some(_) => None,
        };
        let records = access.memory.records();
        let receipt = records.add(access.ctx, vec![draft], key.as_deref()).await?;
        let is_new = |item: &Outcome| matches!(item.fate, Fate::Stored { .. });
        Ok(Stored {
            near_duplicate: near.filter(|_| receipt.items.iter().any(is_new)),
            receipt,
        })
    }
}

/// Kinds of records that a caller who is bound to a user may add: others hold a state of ours, or are
/// shown to agents as instructions.
const ADDED_BY_USERS: &[Kind] = &[Kind::Note, Kind::Fact, Kind::Decision, Kind::Event];

/// That a caller who is bound to a user adds nothing in place of a record of the engine, and chooses no
/// id: that one is in use would say that somebody has such a record.
fn check_bound(arguments: &Arguments, has_id: bool) -> Result<(), Error> {
    let kind: Option<Kind> = arguments.text("kind").and_then(|kind| kind.parse().ok());
    if kind.is_some_and(|kind| !ADDED_BY_USERS.contains(&kind)) {
        let what = "this key is for one user only, and adds notes, facts, decisions and events";
        return Err(Error::Forbidden(what.to_owned()));
    }
    if has_id {
        let what = "is made by the server, as this key is for one user only; leave it out, and use \
                    `key` to repeat a request safely";
        return Err(Invalid::new("id", what).into());
    }
    Ok(())
}

/// A source that is not there is a typing error: nothing would ever be deleted with it. A retry
/// under a key is not checked, as its source may be gone.
async fn check_sources(
    access: &Access<'_>,
    sources: &[String],
    own: Option<&Id>,
) -> Result<(), Error> {
    let ids: Vec<Id> =
        (sources.iter().map(|id| id.trim().parse())).collect::<Result<_, Invalid>>()?;
    let viewer = access.viewer(&Owner::default());
    let found = api::get::run(access.memory, access.ctx, &viewer, ids).await?;
    match found.missing.iter().find(|id| Some(*id) != own) {
        None => Ok(()),
        Some(id) => {
            let what = format!("there is no record {id}; `mnemon list` shows the ids");
            Err(Invalid::new("derived_from", what).into())
        }
    }
}

impl Operation for Update {
    const COMMAND: &'static str = "update";
    const TOOL: &'static str = "memory_update";
    type Answer = Edited;

    fn fields() -> Vec<Field> {
        let version = "Change it only if it still has this version";
        vec![
            id().positional(Spelling::Positional, "ID"),
            Field::text("content", limits::CONTENT_BYTES, "The new content")
                .or(&["text", "note", "memory", "data", "body"])
                .positional(Spelling::Words, "CONTENT")
                .piped(),
            tags("New tags instead of the old"),
            Field::number("importance", 0.0, 1.0, "From 0 (least) to 1 (most)").rare(),
            namespace("How long it is kept from now on").rare(),
            ttl(),
            metadata("Added to its metadata; {\"KEY\": null} removes a key").rare(),
            Field::whole("if_version", 1, u64::from(u32::MAX), version)
                .or(&["version"])
                .rare(),
        ]
    }

    async fn run(access: &Access<'_>, mut arguments: Arguments) -> Result<Edited, Error> {
        let viewer = access.viewer(&Owner::default());
        let id = access.id(&mut arguments, "id").await?;
        access.check_own(std::slice::from_ref(&id)).await?;
        if arguments.is_empty() {
            let what = "is missing: give new content, or another field to change";
            return Err(Invalid::new("content", what).into());
        }
        let edit = Edit {
            expires: access.expires(&mut arguments)?,
            ..arguments.read()?
        };
        let notes = access.memory.notes();
        Ok(notes.edit(access.ctx, &viewer, &id, edit).await?)
    }
}

impl Operation for Undo {
    const COMMAND: &'static str = "undo";
    const TOOL: &'static str = "memory_undo";
    type Answer = api::undo::Response;

    fn fields() -> Vec<Field> {
        let record = "The newest commit that touched this record";
        vec![
            Field::whole("commit", 1, u64::from(u32::MAX), "The commit")
                .default("the newest")
                .rare()
                .excludes("record")
                .positional(Spelling::Each, "COMMIT"),
            Field::text("record", limits::ID_CHARS, record)
                .or(&["id", "note_id"])
                .value("ID"),
        ]
    }

    async fn run(access: &Access<'_>, mut arguments: Arguments) -> Result<Self::Answer, Error> {
        let record = match arguments.has("record") {
            true => Some(access.id(&mut arguments, "record").await?),
            false => None,
        };
        let commit = arguments.whole("commit").map(|commit| commit as u64);
        let is_owner_of_all = access.interface != Interface::Mcp && access.user.is_none();
        let commit = match is_owner_of_all {
            true => commit,
            false => Some(own_commit(access, commit, record.as_ref()).await?),
        };
        api::undo::run(access.memory, access.ctx, commit, record).await
    }
}

/// The newest commit of the caller's own, or the one that is named. A server for one user undoes
/// what servers for that user did, and commits whose records are all that user's; any other server
/// what servers of the same account without a user did. Nobody undoes another's work, and nobody the index of files.
async fn own_commit(
    access: &Access<'_>,
    commit: Option<u64>,
    record: Option<&Id>,
) -> Result<u64, Error> {
    let (records, ctx, most) = (access.memory.records(), access.ctx, limits::CHANGES);
    let is_own = |change: &Change| {
        let versions = [&change.before, &change.after];
        let owners = versions.into_iter().flatten();
        match access.user {
            Some(user) => {
                let is_index = change.actor == INDEX_ACTOR;
                let mut users = owners.map(|record| record.owner.user.as_deref());
                !is_index && (change.actor == ctx.actor || users.all(|owner| owner == Some(user)))
            }
            None => change.actor == ctx.actor,
        }
    };
    let asked = Changes {
        id: record.cloned(),
        commit,
        ..Changes::seen_by(access.viewer(&Owner::default()), most)
    };
    let newest = records.history(ctx, &asked).await?;
    let newest = newest.iter().find(|change| is_own(change));
    let none = || Error::NothingToUndo(record.cloned());
    let commit = newest.ok_or_else(none)?.commit;
    let whole = Changes {
        commit: Some(commit),
        ..Changes::seen_by(Viewer::Tenant, most)
    };
    let all = records.history(ctx, &whole).await?;
    match all.len() < most && all.iter().all(is_own) {
        true => Ok(commit),
        false => Err(none()),
    }
}
