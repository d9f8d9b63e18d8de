//! Tools for notes. The names, the fields and the shape of the answers are those of the notes
//! document: an id, a summary and what describes the note, its content only on request.

use mnemon_core::{Id, Invalid, Viewer, limits};
use mnemon_engine::notes::{NewNote, NoteFilter, NoteQuery, NoteText, NoteView};
use serde_json::{Map, Value, json};

use super::super::answer::{Answer, RECALLED, Room, cut, excerpt, quote};
use super::super::field::Field;
use super::super::profile::Profile;
use super::super::served::Served;
use super::super::tool::{Call, Tool, Touch, max_tokens};
use super::recall::user;
use crate::Error;

const NAMESPACES: &[&str] = &["short-term", "long-term"];
const SMALL: &[Profile] = &[Profile::Small, Profile::Notes];
const NOTES: &[Profile] = &[Profile::Notes];
/// Characters of the summary in the answer to an add: whoever sent the content knows it.
const ADDED: usize = 300;

pub(super) fn tools() -> Vec<Tool> {
    vec![
        add(),
        search(),
        get(),
        delete(),
        stats(),
        clear_short_term(),
        clear_all(),
        cleanup(),
    ]
}

fn namespace(about: &'static str) -> Field {
    Field::choice("namespace", NAMESPACES, about).or(&["type", "ns", "memory_type"])
}

fn tags(about: &'static str) -> Field {
    Field::words("tags", limits::NOTE_TAGS, limits::NOTE_TAG_CHARS, about).or(&["tag", "labels"])
}

fn id() -> Field {
    Field::text(
        "id",
        limits::ID_CHARS,
        "The note's id, from an earlier answer",
    )
    .required()
    .or(&["reference_id", "ref_id", "note_id", "memory_id"])
}

fn add() -> Tool {
    let path = "A file of the project to read the content from, instead of content";
    let keep = "short-term: 14 days, for the work in hand (default); long-term: for years";
    let importance = "From 0 (least) to 1 (most); 2 to 10 are read as tenths";
    Tool {
        name: "memory_add",
        title: "Remember a note",
        about: "Store a note and get back its id and summary. Use it when you learn something \
            that will matter after this conversation: decisions and their reasons, preferences, \
            facts about the project, what failed and why. One thing per note. Not for secrets, \
            nor for what memory has just told you.",
        fields: vec![
            Field::text("content", limits::CONTENT_BYTES, "What to remember")
                .or(&["text", "note", "memory", "data", "body"]),
            Field::text("content_path", limits::PATH_BYTES, path).or(&["path", "file"]),
            namespace(keep),
            tags("Words to find it by; letters, digits, - and _"),
            Field::text("source", limits::NOTE_SOURCE_CHARS, "Where it came from"),
            Field::number("importance", 0.0, 10.0, importance),
            Field::object("metadata", "Anything else to keep with it"),
            user(),
            Field::text(
                "key",
                limits::KEY_CHARS,
                "Makes a retry harmless: the same key, the same note",
            )
            .or(&["idempotency_key"]),
        ],
        touch: Touch::Adds,
        profiles: SMALL,
        run: |served, call| Box::pin(run_add(served, call)),
    }
}

async fn run_add(served: &Served, mut call: Call) -> Result<Answer, Error> {
    let has = |name: &str| call.arguments.text(name).is_some();
    match (has("content"), has("content_path")) {
        (false, false) => {
            let what = "is missing: send a content, or a content_path to read it from";
            return Err(Invalid::new("content", what).into());
        }
        (true, true) => {
            let what = "is sent beside a content_path; send one of them";
            return Err(Invalid::new("content", what).into());
        }
        _ => {}
    }
    let key = call.arguments.take_text("key");
    let named = call.arguments.take_text("user");
    let mut note: NewNote = call.arguments.read()?;
    note.owner = served.owner(named);
    let notes = served.memory.notes();
    let added = notes.add(&call.ctx, note, key.as_deref()).await?;
    if added.not_stored {
        return Err(Invalid::new("importance", format!("is too low. {}", added.message)).into());
    }
    let message = match added.known {
        true => format!("This is known already, as {}.", added.id),
        false => excerpt(&added.message, 600),
    };
    let data = Fields::default()
        .with("id", &added.id)
        .with("namespace", added.namespace)
        .with("contentLength", added.content_length)
        .with("summary", excerpt(&added.summary, ADDED))
        .with("message", &message)
        .maybe("known", added.known.then_some(true))
        .maybe("truncated", added.truncated.then_some(true))
        .maybe("evicted", Some(added.evicted).filter(|count| *count > 0));
    let data = json!({"success": true, "referenceId": added.id, "data": data.0});
    Answer::with(&message, &data)
}

fn search() -> Tool {
    let query = "What to look for, in words; or an id";
    let whose = "Only this user's notes, and those that belong to nobody";
    Tool {
        name: "memory_search",
        title: "Find notes",
        about: "Find notes by words and by meaning, in any language, the best first: ids, \
            summaries and tags, no contents. Use it before you answer from general knowledge, \
            before you ask the user something they may have told, and before you store a note. \
            Then memory_get reads one.",
        fields: vec![
            Field::text("query", limits::NOTE_QUERY_CHARS, query)
                .required()
                .or(&["q", "text", "search", "question", "keywords"]),
            namespace("Only this one"),
            tags("Notes that have at least one of these"),
            Field::whole(
                "limit",
                1,
                limits::NOTE_HITS as u64,
                "How many at the most; 5 unless you say",
            )
            .or(&["max_results", "top_k", "k", "n", "count"]),
            Field::number("min_score", 0.0, 1.0, "Leave out what scores less").or(&["threshold"]),
            Field::flag("include_content", "Show the beginning of each content, too"),
            Field::text("user", limits::NAME_CHARS, whose).or(&["user_id"]),
            max_tokens(),
        ],
        touch: Touch::Reads,
        profiles: SMALL,
        run: |served, call| Box::pin(run_search(served, call)),
    }
}

async fn run_search(served: &Served, call: Call) -> Result<Answer, Error> {
    let arguments = &call.arguments;
    let namespace = arguments.text("namespace").map(|word| word.parse());
    let filter = NoteFilter {
        namespace: namespace.transpose()?,
        tags: arguments.texts("tags"),
        ..NoteFilter::seen_by(served.viewer(arguments.text("user")))
    };
    let query = NoteQuery {
        limit: arguments.whole("limit"),
        min_score: arguments.number("min_score"),
        include_content: arguments.flag("include_content"),
        ..NoteQuery::new(arguments.needed("query"), filter)
    };
    let found = served.memory.notes().search(&call.ctx, &query).await?;
    let query = excerpt(&found.query, 100);
    if found.results.is_empty() {
        let message = "No matching entries found.";
        let data = json!({"found": false, "results": [], "query": query, "message": message});
        return Answer::with(message, &json!({"success": true, "data": data}));
    }
    let results = &found.results;
    Answer::fit(call.tokens(), results.len(), |room| {
        hits(results, &query, room)
    })
}

fn hits(results: &[NoteView], query: &str, room: Room) -> Result<Answer, Error> {
    let shown: Vec<&NoteView> = results.iter().take(room.items).collect();
    let left = results.len() - shown.len();
    let texts = shown.iter().map(|note| line(note, room.chars));
    let mut text = format!("{RECALLED}\n{}", texts.collect::<String>());
    let how = "ask for a larger max_tokens or a smaller limit";
    if left > 0 {
        text.push_str(&format!("\n[{left} more did not fit: {how}]\n"));
    }
    text.push_str("\n[memory_get reads the content of one.]\n");
    let results: Vec<Value> = shown
        .iter()
        .map(|note| Value::Object(described(note, room.chars).0))
        .collect();
    let left_out = json!({"count": left, "how": how});
    let data = Fields::default()
        .with("found", true)
        .with("results", results)
        .with("total", shown.len() + left)
        .with("query", query)
        .with("note", RECALLED)
        .maybe("leftOut", Some(left_out).filter(|_| left > 0));
    Answer::with(text, &json!({"success": true, "data": data.0}))
}

/// A note without its content, as it is told.
fn line(note: &NoteView, chars: usize) -> String {
    let mut head = format!("\n[{}] {} {}", note.id, note.namespace, note.created_at);
    if let Some(score) = &note.score {
        head.push_str(&format!(" {score}"));
    }
    if !note.tags.is_empty() {
        head.push_str(&format!(" tags: {}", excerpt(&note.tags.join(", "), 100)));
    }
    let mut text = format!("{head}\n{}", quote(&excerpt(&note.summary, chars)));
    if let Some(preview) = &note.content_preview {
        text.push_str(&quote(&format!("content: {}", excerpt(preview, chars))));
    }
    text
}

/// The same as data. The names are those of the notes document.
fn described(note: &NoteView, chars: usize) -> Fields {
    let source = note.source.as_deref().map(|source| excerpt(source, 100));
    let preview = note.content_preview.as_deref();
    Fields::default()
        .with("id", &note.id)
        .with("namespace", note.namespace)
        .with("summary", excerpt(&note.summary, chars))
        .with("tags", &note.tags)
        .with("createdAt", note.created_at)
        .maybe("score", note.score.as_ref())
        .maybe("source", source)
        .maybe("importance", note.importance)
        .maybe("contentPreview", preview.map(|text| excerpt(text, chars)))
}

/// Fields of an answer, some of which may be missing.
#[derive(Default)]
struct Fields(Map<String, Value>);

impl Fields {
    fn with(mut self, name: &str, value: impl serde::Serialize) -> Self {
        self.0.insert(name.to_owned(), json!(value));
        self
    }

    fn maybe(self, name: &str, value: Option<impl serde::Serialize>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }
}

fn get() -> Tool {
    Tool {
        name: "memory_get",
        title: "Read a note",
        about: "Read the content of one note, page by page if it is long. Use it after \
            memory_search, when a summary is not enough.",
        fields: vec![
            id(),
            Field::whole(
                "offset",
                0,
                limits::CONTENT_BYTES as u64,
                "Where to go on: the nextOffset of the answer before",
            )
            .or(&["from", "start"]),
            max_tokens(),
        ],
        touch: Touch::Reads,
        profiles: SMALL,
        run: |served, call| Box::pin(run_get(served, call)),
    }
}

async fn run_get(served: &Served, call: Call) -> Result<Answer, Error> {
    let tokens = call.tokens();
    let id: Id = call.arguments.needed("id").trim().parse()?;
    let offset = call.arguments.whole("offset").unwrap_or(0);
    // A token has rarely more than eight letters; what is too much is cut below.
    let most = tokens.saturating_mul(8);
    let (notes, viewer) = (served.memory.notes(), served.viewer(None));
    let note = notes.text(&call.ctx, &viewer, &id, offset, most).await?;
    let note = note.ok_or_else(|| Error::Missing(vec![id]))?;
    let content = note.content.clone().unwrap_or_default();
    let mut room = tokens;
    while room >= 320 {
        // The content stands in the text and in the data.
        let (head, _) = cut(&content, room.saturating_sub(300) / 2);
        let answer = page(&note, head, &content, offset)?;
        if answer.tokens() <= tokens && (content.is_empty() || !head.is_empty()) {
            return Ok(answer);
        }
        room = room * 9 / 10;
    }
    // There is room for it once.
    let mut room = tokens;
    loop {
        let (head, _) = cut(&content, room);
        let answer = Answer::text(page(&note, head, &content, offset)?.text);
        if answer.tokens() <= tokens || room == 0 {
            return Ok(answer.within(tokens));
        }
        room = room * 4 / 5;
    }
}

fn page(note: &NoteText, head: &str, content: &str, offset: usize) -> Result<Answer, Error> {
    let utf16 = |text: &str| text.encode_utf16().count();
    let next = match head.len() < content.len() {
        true => Some(offset + utf16(head)),
        false => note.next_offset,
    };
    let view = &note.note;
    let mut text = format!(
        "{RECALLED}\n\n[{}] {} {}\n{}",
        view.id,
        view.namespace,
        view.created_at,
        quote(head)
    );
    if let Some(next) = next {
        let left = note.content_length.saturating_sub(next);
        text.push_str(&format!(
            "\n[{left} more characters: call again with offset = {next}, or ask for a larger \
             max_tokens]\n"
        ));
    }
    let data = described(view, 80)
        .with("content", head)
        .with("contentLength", note.content_length)
        .maybe("nextOffset", next);
    let data = json!({"success": true, "note": RECALLED, "data": data.0});
    Answer::with(text, &data)
}

fn delete() -> Tool {
    Tool {
        name: "memory_delete",
        title: "Forget a note",
        about: "Forget one note. Use it when a note is wrong or the user asks to forget it. \
            `mnemon undo` brings it back.",
        fields: vec![id()],
        touch: Touch::Removes,
        profiles: SMALL,
        run: |served, call| Box::pin(run_delete(served, call)),
    }
}

async fn run_delete(served: &Served, call: Call) -> Result<Answer, Error> {
    let id: Id = call.arguments.needed("id").trim().parse()?;
    let viewer = served.viewer(None);
    let deleted = served
        .memory
        .notes()
        .delete(&call.ctx, &viewer, &id)
        .await?;
    let text = match deleted {
        true => format!("Forgot {id}."),
        false => format!("There is no note {id}; nothing was changed."),
    };
    let data = json!({"deleted": deleted, "id": id});
    Answer::with(text, &json!({"success": true, "data": data}))
}

fn stats() -> Tool {
    Tool {
        name: "memory_stats",
        title: "Count notes",
        about: "How many notes there are in each namespace. Use it to see whether there is \
            anything to search.",
        fields: vec![],
        touch: Touch::Reads,
        profiles: NOTES,
        run: |served, call| Box::pin(run_stats(served, call)),
    }
}

async fn run_stats(served: &Served, call: Call) -> Result<Answer, Error> {
    let viewer = served.viewer(None);
    let whose = match viewer {
        Viewer::Tenant => " of all users",
        Viewer::Person { .. } => "",
    };
    let counts = served.memory.notes().stats(&call.ctx, &viewer).await?;
    let text = format!(
        "{} notes{whose}: {} short-term, {} long-term.",
        counts.total, counts.short_term, counts.long_term
    );
    Answer::with(text, &json!({"success": true, "data": counts}))
}

fn clear_short_term() -> Tool {
    Tool {
        name: "memory_clear_short_term",
        title: "Forget all short-term notes",
        about: "Forget every short-term note (the user's own, if the server has a user). Use it \
            only when the user asks for it.",
        fields: vec![],
        touch: Touch::Removes,
        profiles: NOTES,
        run: |served, call| Box::pin(run_clear(served, call, true)),
    }
}

fn clear_all() -> Tool {
    Tool {
        name: "memory_clear_all",
        title: "Forget all notes",
        about: "Forget every note, short-term and long-term (the user's own, if the server has a \
            user). Use it only when the user asks for it in so many words.",
        fields: vec![],
        touch: Touch::Removes,
        profiles: NOTES,
        run: |served, call| Box::pin(run_clear(served, call, false)),
    }
}

async fn run_clear(served: &Served, call: Call, short_only: bool) -> Result<Answer, Error> {
    call.progress.tell(0, 1, "forgetting").await;
    let namespace = short_only.then_some(mnemon_core::Namespace::ShortTerm);
    let owner = served.owner(None);
    let notes = served.memory.notes();
    let done = notes.clear(&call.ctx, namespace, &owner).await?;
    let whose = owner.user.map(|user| format!(" of {user}"));
    let whose = whose.unwrap_or_default();
    call.progress.tell(1, 1, "done").await;
    let way_back = done
        .commit
        .map(|commit| format!(" `mnemon undo {commit}` brings them back."));
    let text = format!(
        "Forgot {} {}{whose}; {} left in all.{}",
        done.cleared,
        if done.cleared == 1 { "note" } else { "notes" },
        done.remaining,
        way_back.unwrap_or_default()
    );
    let data = Fields::default()
        .with("cleared", done.cleared)
        .with("remaining", done.remaining)
        .maybe("commit", done.commit);
    Answer::with(text, &json!({"success": true, "data": data.0}))
}

fn cleanup() -> Tool {
    Tool {
        name: "memory_cleanup",
        title: "Erase expired notes",
        about: "Erase what has expired. It is never shown anyway; use it to make room.",
        fields: vec![],
        touch: Touch::Removes,
        profiles: NOTES,
        run: |served, call| Box::pin(run_cleanup(served, call)),
    }
}

/// How often a cleanup goes on before it answers that there is more.
const ROUNDS: u32 = 10;

async fn run_cleanup(served: &Served, call: Call) -> Result<Answer, Error> {
    let (mut cleaned, mut more, mut round) = (0, true, 0);
    let mut held_back = None;
    while more && round < ROUNDS {
        let said = format!("{cleaned} erased");
        call.progress.tell(round, ROUNDS, &said).await;
        let done = served.memory.notes().cleanup(&call.ctx).await?;
        cleaned += done.cleaned;
        more = done.more;
        held_back = done.held_back;
        round += 1;
    }
    call.progress.tell(ROUNDS, ROUNDS, "done").await;
    let mut message = match held_back {
        Some(why) => why,
        None => format!("Cleaned up {cleaned} expired entries."),
    };
    if more {
        message.push_str(" There are more: call again.");
    }
    let data = json!({"cleaned": cleaned, "message": message, "more": more});
    Answer::with(message, &json!({"success": true, "data": data}))
}
