//! Tools for notes. The names, the fields and the shape of the answers are those of the notes
//! document: an id, a summary and what describes the note, its content only on request.

use mnemon_core::{Invalid, Time};
use mnemon_engine::notes::{NotePage, NoteText, NoteView};
use serde_json::{Map, Value, json};

use super::super::answer::{Answer, RECALLED, Room, cut, excerpt, quote};
use super::super::profile::Profile;
use super::super::served::Served;
use super::super::tool::{Call, Tool, Touch, with_max_tokens};
use crate::Error;
use crate::operation::{
    Arguments, Field, NoteAdd, NoteCleanup, NoteClear, NoteDelete, NoteGet, NoteList, NoteStats,
    Operation, Search, Undo, Update,
};

const SMALL: &[Profile] = &[Profile::Small, Profile::Notes];
const NOTES: &[Profile] = &[Profile::Notes];
/// Characters of the summary in the answer to an update: its caller knows the content.
const UPDATED: usize = 300;
/// Bytes of JSON of the summary in the answer to an add, which stays short in any script.
const ADDED_BYTES: usize = 1210;

pub(super) fn tools() -> Vec<Tool> {
    vec![
        add(),
        search(),
        get(),
        list(),
        update(),
        delete(),
        undo(),
        stats(),
        clear_short_term(),
        clear_all(),
        cleanup(),
    ]
}

fn add() -> Tool {
    Tool {
        name: NoteAdd::TOOL,
        title: "Remember a note",
        about: "Store a note: a decision and why, a preference, a fact, what failed. Use it when \
            you learn something that matters after this conversation; one thing per note, no \
            secrets. To correct a note use memory_update.",
        fields: NoteAdd::fields(),
        touch: Touch::Adds,
        profiles: SMALL,
        run: |served, call| Box::pin(run_add(served, call)),
    }
}

async fn run_add(served: &Served, mut call: Call) -> Result<Answer, Error> {
    if !call.arguments.has("namespace") {
        let usual = served.config.notes.mcp_namespace.value;
        call.arguments.set("namespace", usual.as_str());
    }
    spread_metadata(&mut call.arguments)?;
    let added = call.run::<NoteAdd>(served).await?;
    let message = match added.known {
        true => format!("This is known already, as {}", added.id),
        false => excerpt(added.message.trim_end_matches('.'), 600),
    };
    let mut message = format!("{message}{}", expiry(added.expires));
    if let Some(near) = &added.near_duplicate {
        message.push_str(&format!(
            " {} says nearly the same ({:.0} % of the words): if this replaces it, memory_update \
             it and delete this one.",
            near.id,
            near.similarity * 100.0
        ));
    }
    let data = Fields::default()
        .with("id", &added.id)
        .with("namespace", added.namespace)
        .with("contentLength", added.content_length)
        .with("summary", brief(&added.summary))
        .with("message", &message)
        .maybe("expires", added.expires)
        .maybe("nearDuplicate", added.near_duplicate)
        .maybe("known", added.known.then_some(true))
        .maybe("truncated", added.truncated.then_some(true))
        .maybe("evicted", Some(added.evicted).filter(|count| *count > 0));
    let data = json!({"success": true, "referenceId": added.id, "data": data.0});
    Answer::with(&message, &data)
}

/// The document's program takes tags, source and importance from the metadata, too. Fields that the
/// call has count before them.
fn spread_metadata(arguments: &mut Arguments) -> Result<(), Error> {
    let Some(Value::Object(mut metadata)) = arguments.take("metadata") else {
        return Ok(());
    };
    for name in ["tags", "source", "importance"] {
        let Some(value) = metadata.remove(name) else {
            continue;
        };
        let field = NoteAdd::fields()
            .into_iter()
            .filter(|field| field.name == name);
        let sent = Map::from_iter([(name.to_owned(), value)]);
        let mut checked = Arguments::check(&field.collect::<Vec<_>>(), sent)
            .map_err(|wrong| Invalid::new(format!("metadata.{}", wrong.field), wrong.what))?;
        if let Some(value) = checked.take(name).filter(|_| !arguments.has(name)) {
            arguments.set(name, value);
        }
    }
    arguments.set("metadata", metadata);
    Ok(())
}

/// The summary, cut if its JSON would be long.
fn brief(summary: &str) -> String {
    let mut bytes = 0;
    for (at, c) in summary.char_indices() {
        bytes += match c {
            '"' | '\\' | '\n' | '\r' | '\t' => 2,
            c if c.is_control() => 6,
            c => c.len_utf8(),
        };
        if bytes > ADDED_BYTES {
            let head = summary.get(..at).unwrap_or_default();
            return format!("{head}...");
        }
    }
    summary.to_owned()
}

fn search() -> Tool {
    Tool {
        name: Search::TOOL,
        title: "Search the memory",
        about: "Search all records (notes, facts, decisions, documents, messages, skills) by words \
            and meaning. Use it before you ask the user or store a note. A score estimates the \
            probability that the hit answers. Then memory_get reads one.",
        fields: with_max_tokens(search_fields()),
        touch: Touch::Reads,
        profiles: SMALL,
        run: |served, call| Box::pin(run_search(served, call)),
    }
}

/// A command may list the newest records without a query; a tool has memory_list for that.
fn search_fields() -> Vec<Field> {
    let fields = Search::fields().into_iter();
    let fields = fields.map(|field| match field.name {
        "query" => field.required(),
        "limit" => field.default("5"),
        _ => field,
    });
    fields.collect()
}

async fn run_search(served: &Served, mut call: Call) -> Result<Answer, Error> {
    let notes = served.memory.notes();
    let config = notes.config();
    let (query, content) = (
        call.arguments.needed("query"),
        call.arguments.flag("include_content"),
    );
    let query = excerpt(&query, 100);
    if !call.arguments.has("limit") {
        call.arguments.set("limit", config.top_k);
    }
    if let (None, Some(least)) = (call.arguments.number("min_score"), config.min_score) {
        call.arguments.set("min_score", least);
    }
    let is_cut = call.arguments.number("min_score") != Some(0.0);
    served.index_files(&call.ctx).await;
    let found = call.run::<Search>(served).await?;
    if found.hits.is_empty() {
        let message = "No matching entries found.";
        let hint = "Nothing known: min_score 0 shows the nearest entries.";
        let hint = Some(hint).filter(|_| is_cut);
        let data = Fields::default()
            .with("found", false)
            .with("results", json!([]))
            .with("query", query)
            .with("message", message)
            .maybe("hint", hint);
        let text = [Some(message), hint].into_iter().flatten();
        let text = text.collect::<Vec<_>>().join(" ");
        return Answer::with(text, &json!({"success": true, "data": data.0}));
    }
    let views = found.hits.iter().map(|hit| {
        let view = notes.view(&hit.record, content);
        view.scored(hit.score)
    });
    let results: Vec<NoteView> = views.collect();
    Answer::fit(&call, results.len(), |room| hits(&results, &query, room))
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
    let kind = note.kind.map_or("", |kind| kind.as_str());
    let mut head = format!("\n[{}] {} {}", note.id, note.namespace, note.created_at);
    for part in [Some(kind), note.score.as_deref()].into_iter().flatten() {
        head.push_str(if part.is_empty() { "" } else { " " });
        head.push_str(part);
    }
    if let Some(source) = &note.source {
        head.push_str(&format!(" from: {}", excerpt(source, 160)));
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
    let source = note.source.as_deref().map(|source| excerpt(source, 160));
    let preview = note.content_preview.as_deref();
    Fields::default()
        .with("id", &note.id)
        .maybe("kind", note.kind)
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
        name: NoteGet::TOOL,
        title: "Read a note",
        about: "Read a whole note. Use it when a summary is not enough.",
        fields: with_max_tokens(NoteGet::fields()),
        touch: Touch::Reads,
        profiles: SMALL,
        run: |served, call| Box::pin(run_get(served, call)),
    }
}

async fn run_get(served: &Served, mut call: Call) -> Result<Answer, Error> {
    let tokens = call.tokens();
    let offset = call.arguments.whole("offset").unwrap_or(0);
    // A token has rarely more than eight letters; what is too much is cut below.
    let most = tokens.saturating_mul(8);
    call.arguments.set("content", true);
    call.arguments.set("length", most);
    let note = call.run::<NoteGet>(served).await?;
    let content = note.content.clone().unwrap_or_default();
    for structured in [call.structured, false] {
        let mut room = tokens;
        while room > 0 {
            let (head, _) = cut(&content, room);
            let answer = page(&note, head, &content, offset)?.structured(structured);
            // Every page must bring the reader further.
            if answer.tokens() <= tokens && (content.is_empty() || !head.is_empty()) {
                return Ok(answer);
            }
            room = (room * tokens / answer.tokens().max(1)).min(room - 1);
        }
    }
    Ok(page(&note, "", &content, offset)?.within(tokens))
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

fn list() -> Tool {
    Tool {
        name: NoteList::TOOL,
        title: "List notes",
        about: "List notes, the newest first. Use it when the user asks what you remember.",
        fields: with_max_tokens(NoteList::fields()),
        touch: Touch::Reads,
        profiles: SMALL,
        run: |served, call| Box::pin(run_list(served, call)),
    }
}

async fn run_list(served: &Served, mut call: Call) -> Result<Answer, Error> {
    let page = call.run::<NoteList>(served).await?;
    Answer::fit(&call, page.notes.len(), |room| listed(&page, room))
}

fn listed(page: &NotePage, room: Room) -> Result<Answer, Error> {
    let shown: Vec<&NoteView> = page.notes.iter().take(room.items).collect();
    let left = page.notes.len() - shown.len();
    // The next page begins behind all notes of this one, also those that did not fit.
    let next = page.next.as_ref().filter(|_| left == 0);
    let lines = shown.iter().map(|note| line(note, room.chars));
    let mut text = format!("{RECALLED}\n{}", lines.collect::<String>());
    match (page.notes.is_empty(), left, next) {
        (true, ..) => text = "There are no notes.".to_owned(),
        (_, 1.., _) => text.push_str(&format!(
            "\n[{left} more did not fit: ask for a larger max_tokens or a smaller limit]\n"
        )),
        (_, _, Some(next)) => text.push_str(&format!("\n[There are more: after = {next}]\n")),
        _ => {}
    }
    let notes = shown.iter().map(|note| described(note, room.chars).0);
    let notes: Vec<Value> = notes.map(Value::Object).collect();
    let data = Fields::default().with("notes", notes).maybe("next", next);
    Answer::with(text, &json!({"success": true, "data": data.0}))
}

fn update() -> Tool {
    Tool {
        name: Update::TOOL,
        title: "Change a note",
        about: "Change a note; fields that you leave out stay. Use it when a stored note is out of \
            date.",
        fields: Update::fields(),
        touch: Touch::Edits,
        profiles: SMALL,
        run: |served, call| Box::pin(run_update(served, call)),
    }
}

async fn run_update(served: &Served, mut call: Call) -> Result<Answer, Error> {
    let done = call.run::<Update>(served).await?;
    let text = format!(
        "Updated {} to version {}{}",
        done.id,
        done.version,
        expiry(done.expires)
    );
    let data = Fields::default()
        .with("id", &done.id)
        .with("version", done.version)
        .with("summary", excerpt(&done.content, UPDATED))
        .maybe("expires", done.expires)
        .maybe("commit", done.commit);
    Answer::with(text, &json!({"success": true, "data": data.0}))
}

/// When something is forgotten by itself, at the end of a sentence.
fn expiry(at: Option<Time>) -> String {
    let day = at.map(|at| at.to_string().chars().take(10).collect::<String>());
    day.map_or(".".to_owned(), |day| format!("; it expires on {day}."))
}

fn undo() -> Tool {
    Tool {
        name: Undo::TOOL,
        title: "Undo a change",
        about: "Undo the newest change, or that of a record. Use it when a change was a mistake.",
        fields: Undo::fields(),
        touch: Touch::Edits,
        profiles: SMALL,
        run: |served, call| Box::pin(run_undo(served, call)),
    }
}

async fn run_undo(served: &Served, mut call: Call) -> Result<Answer, Error> {
    let done = call.run::<Undo>(served).await?;
    let records = done.receipt.items.len();
    let text = match records {
        0 => format!("Commit {} was undone before.", done.undone),
        _ => format!("Undid commit {}; records changed: {records}.", done.undone),
    };
    let data = json!({"undone": done.undone, "commit": done.receipt.commit, "records": records});
    Answer::with(text, &json!({"success": true, "data": data}))
}

fn delete() -> Tool {
    Tool {
        name: NoteDelete::TOOL,
        title: "Forget a note",
        about: "Forget a note. Use it when the user asks to, or it is wrong; memory_undo restores it.",
        fields: NoteDelete::fields(),
        touch: Touch::Removes,
        profiles: SMALL,
        run: |served, call| Box::pin(run_delete(served, call)),
    }
}

async fn run_delete(served: &Served, mut call: Call) -> Result<Answer, Error> {
    let done = call.run::<NoteDelete>(served).await?;
    if !done.deleted {
        return Err(Error::Missing(vec![done.id]));
    }
    let text = format!("Forgot {}; memory_undo restores it.", done.id);
    let data = json!(done);
    Answer::with(text, &json!({"success": true, "data": data}))
}

fn stats() -> Tool {
    Tool {
        name: NoteStats::TOOL,
        title: "Count notes",
        about: "Count the notes in each namespace. Use it to see whether there is \
            anything to search.",
        fields: NoteStats::fields(),
        touch: Touch::Reads,
        profiles: NOTES,
        run: |served, call| Box::pin(run_stats(served, call)),
    }
}

async fn run_stats(served: &Served, mut call: Call) -> Result<Answer, Error> {
    let whose = match served.owner(None).user {
        None => " of all users",
        Some(_) => "",
    };
    let counts = call.run::<NoteStats>(served).await?;
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
        run: |served, call| Box::pin(run_clear(served, call, "short-term")),
    }
}

fn clear_all() -> Tool {
    Tool {
        name: NoteClear::TOOL,
        title: "Forget all notes",
        about: "Forget every note, short-term and long-term (the user's own, if the server has a \
            user). Use it only when the user explicitly asks for it.",
        fields: NoteClear::fields(),
        touch: Touch::Removes,
        profiles: NOTES,
        run: |served, call| Box::pin(run_clear(served, call, "all")),
    }
}

async fn run_clear(served: &Served, mut call: Call, which: &'static str) -> Result<Answer, Error> {
    call.progress.tell(0, 1, "forgetting").await;
    call.arguments.set("namespace", which);
    let whose = served.owner(None).user.map(|user| format!(" of {user}"));
    let whose = whose.unwrap_or_default();
    let done = call.run::<NoteClear>(served).await?;
    call.progress.tell(1, 1, "done").await;
    let way_back = done
        .commit
        .map(|commit| format!(" `mnemon undo {commit}` restores them."));
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
        name: NoteCleanup::TOOL,
        title: "Erase expired notes",
        about: "Erase expired notes. They are never shown; use it to free space.",
        fields: NoteCleanup::fields(),
        touch: Touch::Removes,
        profiles: NOTES,
        run: |served, call| Box::pin(run_cleanup(served, call)),
    }
}

/// How often a cleanup goes on before it answers that there is more.
const ROUNDS: u32 = 10;

async fn run_cleanup(served: &Served, mut call: Call) -> Result<Answer, Error> {
    let (mut cleaned, mut more, mut round) = (0, true, 0);
    let mut held_back = None;
    while more && round < ROUNDS {
        let said = format!("{cleaned} erased");
        call.progress.tell(round, ROUNDS, &said).await;
        let done = call.run::<NoteCleanup>(served).await?;
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
