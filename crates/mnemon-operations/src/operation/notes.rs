//! Operations on notes. The names of the tools, of the fields and of the answers are those of the
//! notes document.

pub(super) mod json;

use mnemon_core::rank::Recipe;
use mnemon_core::{Id, Invalid, Namespace, Owner, limits};
use mnemon_engine::notes::{
    Added, Cleaned, Cleared, FoundNotes, NewNote, NoteCounts, NoteFilter, NotePage, NoteQuery,
    NoteText,
};
use serde::{Deserialize, Serialize};

use super::records::id;
use super::{
    Access, Arguments, Field, Interface, NoteAdd, NoteCleanup, NoteClear, NoteDelete, NoteGet,
    NoteList, NoteSearch, NoteStats, Operation, Spelling,
};
use crate::Error;

const NAMESPACES: &[&str] = &["short-term", "long-term"];
/// Notes of a page unless another number is asked for.
const PAGE: usize = 20;
/// The heading of the options that choose notes.
const WHICH: &str = "Which notes";

pub(super) fn namespace(about: &'static str) -> Field {
    Field::choice("namespace", NAMESPACES, about).or(&["type", "ns", "memory_type"])
}

pub(super) fn tags(about: &'static str) -> Field {
    let field = Field::words("tags", limits::NOTE_TAGS, limits::NOTE_TAG_CHARS, about);
    field.or(&["tag", "labels"]).option("tag").value("TAG")
}

pub(super) fn metadata(about: &'static str) -> Field {
    Field::object("metadata", about).or(&["meta", "meta_json"])
}

pub(super) fn ttl() -> Field {
    let about = "How long to keep it, such as 36h, 14d or 2y";
    Field::text("ttl", 20, about).value("DURATION").prose()
}

/// Whose a note is. A tool is called for a user; only the command line names the rest.
pub(super) fn owner(user: &'static str) -> Vec<Field> {
    let name = |name, about| Field::text(name, limits::NAME_CHARS, about).value("NAME");
    let rest = [
        ("agent", "The agent it belongs to"),
        ("session", "The session it belongs to"),
        ("flow", "The flow it belongs to"),
        ("node", "The node of the flow"),
    ];
    let rest = rest.map(|(part, about)| name(part, about).only(Interface::CommandLine));
    std::iter::once(self::user(user)).chain(rest).collect()
}

/// The user that a call is for.
pub(super) fn user(about: &'static str) -> Field {
    let field = Field::text("user", limits::NAME_CHARS, about).value("NAME");
    field.or(&["user_id"]).lenient().rare()
}

/// The user of an operation that reads.
pub(super) const READER: &str = "User who reads: shows their own records and the shared ones";

/// Whether a user reads only their own records.
pub(super) fn own() -> Field {
    let field = Field::flag("own", "With --user: leave out shared records");
    field.only(Interface::CommandLine)
}

/// A user who reads sees their own records and the shared ones; with `own`, only theirs.
pub(super) fn see_shared(arguments: &mut Arguments, owner: &mut Owner) -> Result<(), Invalid> {
    let is_own = arguments.flag("own").unwrap_or(false);
    arguments.take("own");
    match (is_own, owner.user.is_some()) {
        (true, false) => Err(Invalid::new("own", "needs --user")),
        (true, true) => Ok(()),
        (false, _) => {
            owner.user = None;
            Ok(())
        }
    }
}

/// Which notes of those that the caller may see.
fn which() -> Vec<Field> {
    let mut fields = vec![
        namespace("Only notes of this namespace").rare(),
        tags("At least one of these tags").rare(),
    ];
    fields.extend(owner(READER));
    fields.push(own());
    fields.into_iter().map(|field| field.under(WHICH)).collect()
}

fn filter(access: &Access<'_>, arguments: &mut Arguments) -> Result<NoteFilter, Error> {
    let namespace = arguments.take_text("namespace").map(|word| word.parse());
    let tags = arguments.texts("tags");
    let mut owner = arguments.take_owner();
    let viewer = access.viewer(&owner);
    see_shared(arguments, &mut owner)?;
    Ok(NoteFilter {
        namespace: namespace.transpose()?,
        tags,
        viewer,
        owner,
    })
}

impl Operation for NoteAdd {
    const COMMAND: &'static str = "note add";
    const TOOL: &'static str = "memory_add";
    type Answer = Added;

    fn fields() -> Vec<Field> {
        let path = "A file of the project that holds the content";
        let keep = "short-term: 14 days, for current work; long-term: years (default of tools)";
        let importance = "From 0 (least) to 1 (most); 2 to 10 are read as tenths";
        let key = "Idempotency key: the same key stores a note once";
        let mut fields = vec![
            Field::text("content", limits::CONTENT_BYTES, "Text to remember")
                .or(&["text", "note", "memory", "data", "body"])
                .or_else(&["content_path"])
                .positional(Spelling::Words, "CONTENT")
                .piped(),
            Field::text("content_path", limits::PATH_BYTES, path)
                .or(&["path", "file"])
                .option("file")
                .value("PATH")
                .local()
                .rare(),
            namespace(keep),
            tags("Words to find it by, without spaces"),
            Field::text("source", limits::NOTE_SOURCE_CHARS, "Where it came from").rare(),
            Field::number("importance", 0.0, 10.0, importance).rare(),
            ttl(),
            metadata("Other data to store with it").rare(),
        ];
        fields.extend(owner("The owner; default: the caller"));
        fields.push(
            Field::text("key", limits::KEY_CHARS, key)
                .or(&["idempotency_key"])
                .rare(),
        );
        fields
    }

    async fn run(access: &Access<'_>, mut arguments: Arguments) -> Result<Added, Error> {
        let key = arguments.take_text("key");
        let owner = access.owned(arguments.take_owner());
        let note = NewNote {
            owner,
            expires: access.expires(&mut arguments)?,
            ..arguments.read()?
        };
        let notes = access.memory.notes();
        let added = notes.add(access.ctx, note, key.as_deref()).await?;
        match added.not_stored {
            true => {
                let what = format!("is too low. {}", added.message);
                Err(Invalid::new("importance", what).into())
            }
            false => Ok(added),
        }
    }
}

impl Operation for NoteSearch {
    const COMMAND: &'static str = "note search";
    type Answer = FoundNotes;

    fn fields() -> Vec<Field> {
        let most = limits::NOTE_HITS as u64;
        let query = "Words to search for, or an id";
        let recipes = Recipe::ALL.iter().map(|recipe| recipe.as_str());
        let content = "Show the beginning of each content, too";
        let min_score = "Leave out notes that score less; 0 shows the nearest notes";
        let mut fields = vec![
            Field::text("query", limits::NOTE_QUERY_CHARS, query)
                .required()
                .positional(Spelling::Words, "QUERY")
                .piped(),
            Field::whole("limit", 1, most, "Maximum number of notes").default("notes.top_k, 5"),
            Field::number("min_score", 0.0, 1.0, min_score).default("notes.min_score"),
            Field::one_of("recipe", recipes, "Ranking method").default("notes.recipe, hybrid"),
            Field::flag("include_content", content).option("content"),
        ];
        fields.extend(which());
        fields
    }

    async fn run(access: &Access<'_>, mut arguments: Arguments) -> Result<FoundNotes, Error> {
        let filter = filter(access, &mut arguments)?;
        let recipe = arguments.text("recipe").map(|word| word.parse::<Recipe>());
        let query = NoteQuery {
            limit: arguments.whole("limit"),
            min_score: arguments.number("min_score"),
            recipe: recipe.transpose()?,
            include_content: arguments.flag("include_content"),
            ..NoteQuery::new(arguments.needed("query"), filter)
        };
        Ok(access.memory.notes().search(access.ctx, &query).await?)
    }
}

impl Operation for NoteGet {
    const COMMAND: &'static str = "note get";
    const TOOL: &'static str = "memory_get";
    type Answer = NoteText;

    fn fields() -> Vec<Field> {
        let most = limits::CONTENT_BYTES as u64;
        let offset = "Where to continue: nextOffset of the previous answer";
        vec![
            id().positional(Spelling::Positional, "ID"),
            Field::flag("content", "Show the content as well").only(Interface::CommandLine),
            Field::whole("offset", 0, most, offset).or(&["from", "start"]),
            Field::whole(
                "length",
                1,
                most,
                "Maximum number of characters of the content",
            )
            .only(Interface::CommandLine),
        ]
    }

    async fn run(access: &Access<'_>, mut arguments: Arguments) -> Result<NoteText, Error> {
        let id = access.id(&mut arguments, "id").await?;
        let (offset, length) = (arguments.whole("offset"), arguments.whole("length"));
        let shows = arguments.flag("content").unwrap_or(false) || offset.or(length).is_some();
        let (offset, length) = (offset.unwrap_or(0), length.unwrap_or(limits::CONTENT_BYTES));
        let (notes, viewer) = (access.memory.notes(), access.viewer(&Owner::default()));
        let text = notes.text(access.ctx, &viewer, &id, offset, length).await?;
        let Some(mut text) = text else {
            return Err(Error::Missing(vec![id]));
        };
        if !shows {
            (text.content, text.next_offset) = (None, None);
            let view = notes.get(access.ctx, &viewer, &id, None).await?;
            text.note = view.unwrap_or(text.note);
        }
        Ok(text)
    }
}

impl Operation for NoteList {
    const COMMAND: &'static str = "note list";
    const TOOL: &'static str = "memory_list";
    type Answer = NotePage;

    fn fields() -> Vec<Field> {
        let most = limits::PAGE as u64;
        let after = "Where to continue: `next` of the previous page";
        let mut fields = vec![
            Field::whole("limit", 1, most, "Maximum number of notes")
                .clamped()
                .default("20")
                .or(&["max_results", "top_k", "k", "n", "count"]),
            Field::text("after", limits::ID_CHARS * 2, after).value("CURSOR"),
        ];
        fields.extend(which());
        fields
    }

    async fn run(access: &Access<'_>, mut arguments: Arguments) -> Result<NotePage, Error> {
        let after = arguments.cursor("after")?;
        let limit = arguments.whole("limit").unwrap_or(PAGE);
        let filter = filter(access, &mut arguments)?;
        let notes = access.memory.notes();
        Ok(notes.list(access.ctx, &filter, after, limit).await?)
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub struct NoteDeleted {
    pub deleted: bool,
    pub id: Id,
}

impl Operation for NoteDelete {
    const COMMAND: &'static str = "note delete";
    const TOOL: &'static str = "memory_delete";
    type Answer = NoteDeleted;

    fn fields() -> Vec<Field> {
        vec![id().positional(Spelling::Each, "ID")]
    }

    async fn run(access: &Access<'_>, mut arguments: Arguments) -> Result<NoteDeleted, Error> {
        let id = access.id(&mut arguments, "id").await?;
        access.check_own(std::slice::from_ref(&id)).await?;
        let (notes, viewer) = (access.memory.notes(), access.viewer(&Owner::default()));
        let deleted = notes.delete(access.ctx, &viewer, &id).await?;
        Ok(NoteDeleted { deleted, id })
    }
}

impl Operation for NoteClear {
    const COMMAND: &'static str = "note clear";
    const TOOL: &'static str = "memory_clear_all";
    type Answer = Cleared;

    fn fields() -> Vec<Field> {
        let which = "Which notes";
        vec![
            Field::choice("namespace", &["short-term", "long-term", "all"], which)
                .required()
                .positional(Spelling::Positional, "WHICH")
                .only(Interface::CommandLine),
        ]
    }

    async fn run(access: &Access<'_>, arguments: Arguments) -> Result<Cleared, Error> {
        let namespace: Option<Namespace> = match arguments.text("namespace").as_deref() {
            None | Some("all") => None,
            Some(word) => Some(word.parse()?),
        };
        let owner = access.owned(Owner::default());
        let notes = access.memory.notes();
        Ok(notes.clear(access.ctx, namespace, &owner).await?)
    }
}

impl Operation for NoteStats {
    const COMMAND: &'static str = "note stats";
    const TOOL: &'static str = "memory_stats";
    type Answer = NoteCounts;

    async fn run(access: &Access<'_>, _: Arguments) -> Result<NoteCounts, Error> {
        let viewer = access.viewer(&Owner::default());
        Ok(access.memory.notes().stats(access.ctx, &viewer).await?)
    }
}

impl Operation for NoteCleanup {
    const COMMAND: &'static str = "note cleanup";
    const TOOL: &'static str = "memory_cleanup";
    type Answer = Cleaned;

    async fn run(access: &Access<'_>, _: Arguments) -> Result<Cleaned, Error> {
        Ok(access.memory.notes().cleanup(access.ctx).await?)
    }
}
