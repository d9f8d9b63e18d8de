//! Tools for notes. The names, the fields and the shape of the answers are those of the notes
//! document: an id, a summary and what describes the note, its content only on request.

use mnemon_core::{Invalid, Time};
use mnemon_engine::notes::{Added, NotePage, NoteText, NoteView};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::super::answer::{Answer, RECALLED, Room, cut, excerpt, quote};
use super::super::profile::Profile;
use super::super::served::Served;
use super::super::tool::{Call, Tool, Touch};
use mnemon_operations::Error;
use mnemon_operations::operation::{
    Arguments, NoteAdd, NoteCleanup, NoteClear, NoteDelete, NoteGet, NoteList, NoteStats,
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
        Tool::of::<NoteAdd, _>(
            Touch::Adds,
            "Remember a note",
            "Store a note: a decision and why, a preference, a fact, what failed. Use it when \
             you learn something that matters after this conversation; one thing per note, no \
             secrets. To correct a note use memory_update.",
            SMALL,
            |served, call| Box::pin(add(served, call)),
        ),
        Tool::of::<Search, _>(
            Touch::Reads,
            "Search the memory",
            "Search all records (notes, facts, decisions, documents, messages, skills) by words \
             and meaning. Use it before you ask the user or store a note. A score estimates the \
             probability that the hit answers. Then memory_get reads one.",
            SMALL,
            |served, call| Box::pin(search(served, call)),
        )
        .with_default("limit", "5")
        .with_max_tokens(),
        Tool::of::<NoteGet, _>(
            Touch::Reads,
            "Read a note",
            "Read a whole note. Use it when a summary is not enough.",
            SMALL,
            |served, call| Box::pin(get(served, call)),
        )
        .with_max_tokens(),
        Tool::of::<NoteList, _>(
            Touch::Reads,
            "List notes",
            "List notes, the newest first. Use it when the user asks what you remember.",
            SMALL,
            |served, call| Box::pin(list(served, call)),
        )
        .with_max_tokens(),
        Tool::of::<Update, _>(
            Touch::Edits,
            "Change a note",
            "Change a note; fields that you leave out stay. Use it when a stored note is out of \
             date.",
            SMALL,
            |served, call| Box::pin(update(served, call)),
        ),
        Tool::of::<NoteDelete, _>(
            Touch::Removes,
            "Forget a note",
            "Forget a note. Use it when the user asks to, or it is wrong; memory_undo restores it.",
            SMALL,
            |served, call| Box::pin(delete(served, call)),
        ),
        Tool::of::<Undo, _>(
            Touch::Edits,
            "Undo a change",
            "Undo the newest change, or that of a record. Use it when a change was a mistake.",
            SMALL,
            |served, call| Box::pin(undo(served, call)),
        ),
    ]
}

/// Tools that count and clear.
pub(super) fn housekeeping() -> Vec<Tool> {
    vec![
        Tool::of::<NoteStats, _>(
            Touch::Reads,
            "Count notes",
            "Count the notes in each namespace. Use it to see whether there is \
             anything to search.",
            NOTES,
            |served, call| Box::pin(stats(served, call)),
        ),
        Tool {
            name: "memory_clear_short_term",
            ..Tool::of::<NoteClear, _>(
                Touch::Removes,
                "Forget all short-term notes",
                "Forget every short-term note (the user's own, if the server has a user). Use it \
             only when the user asks for it.",
                NOTES,
                |served, call| Box::pin(clear(served, call, "short-term")),
            )
        },
        Tool::of::<NoteClear, _>(
            Touch::Removes,
            "Forget all notes",
            "Forget every note, short-term and long-term (the user's own, if the server has a \
             user). Use it only when the user explicitly asks for it.",
            NOTES,
            |served, call| Box::pin(clear(served, call, "all")),
        ),
        Tool::of::<NoteCleanup, _>(
            Touch::Removes,
            "Erase expired notes",
            "Erase expired notes. They are never shown; use it to free space.",
            NOTES,
            |served, call| Box::pin(cleanup(served, call)),
        ),
    ]
}

async fn add(served: &Served, mut call: Call) -> Result<Answer, Error> {
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
    let data = Added {
        summary: brief(&added.summary),
        message: message.clone(),
        ..added
    };
    let data = json!({"success": true, "referenceId": data.id, "data": data});
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

/// An answer whose data is as the notes document has it.
fn answer(text: impl Into<String>, data: &impl Serialize) -> Result<Answer, Error> {
    Answer::with(text, &json!({"success": true, "data": data}))
}

async fn search(served: &Served, mut call: Call) -> Result<Answer, Error> {
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
        let data = json!({"found": false, "results": [], "query": query, "message": message});
        let text = [Some(message), hint].into_iter().flatten();
        let text = text.collect::<Vec<_>>().join(" ");
        return answer(text, &with(data, "hint", hint));
    }
    let views = found.hits.iter().map(|hit| {
        let view = notes.view(&hit.record, content);
        view.scored(hit.score)
    });
    let results: Vec<NoteView> = views.collect();
    Answer::fit(&call, results.len(), |room| hits(&results, &query, room))
}

fn hits(results: &[NoteView], query: &str, room: Room) -> Result<Answer, Error> {
    let shown = shortened(results, room);
    let left = results.len() - shown.len();
    let texts = shown.iter().map(line);
    let mut text = format!("{RECALLED}\n{}", texts.collect::<String>());
    if left > 0 {
        text.push_str(&format!("\n[{left} more did not fit: {HOW}]\n"));
    }
    text.push_str("\n[memory_get reads the content of one.]\n");
    let data = json!({
        "found": true, "results": shown, "total": results.len(), "query": query, "note": RECALLED,
    });
    answer(text, &with(data, "leftOut", left_out(left)))
}

/// How to get entries that did not fit.
const HOW: &str = "ask for a larger max_tokens or a smaller limit";

fn left_out(left: usize) -> Option<Value> {
    (left > 0).then(|| json!({"count": left, "how": HOW}))
}

/// The data with another member, if there is one.
fn with(mut data: Value, name: &str, value: Option<impl Serialize>) -> Value {
    if let (Some(members), Some(value)) = (data.as_object_mut(), value) {
        members.insert(name.to_owned(), json!(value));
    }
    data
}

/// As many notes as there is room for, with their texts cut.
fn shortened(notes: &[NoteView], room: Room) -> Vec<NoteView> {
    let notes = notes.iter().take(room.items);
    notes.map(|note| shortened_to(note, room.chars)).collect()
}

fn shortened_to(note: &NoteView, chars: usize) -> NoteView {
    let cut = |text: &Option<String>, chars| text.as_deref().map(|text| excerpt(text, chars));
    NoteView {
        summary: excerpt(&note.summary, chars),
        source: cut(&note.source, 160),
        content_preview: cut(&note.content_preview, chars),
        ..note.clone()
    }
}

/// A note without its content, as it is told.
fn line(note: &NoteView) -> String {
    let mut head = format!("\n[{}] {} {}", note.id, note.namespace, note.created_at);
    let kind = note.kind.map(|kind| kind.as_str());
    for part in [kind, note.score.as_deref()].into_iter().flatten() {
        head.push_str(&format!(" {part}"));
    }
    if let Some(source) = &note.external {
        head.push_str(&format!(" external source: {source}"));
    }
    if let Some(source) = &note.source {
        head.push_str(&format!(" from: {source}"));
    }
    if !note.tags.is_empty() {
        head.push_str(&format!(" tags: {}", excerpt(&note.tags.join(", "), 100)));
    }
    let mut text = format!("{head}\n{}", quote(&note.summary));
    if let Some(preview) = &note.content_preview {
        text.push_str(&quote(&format!("content: {preview}")));
    }
    text
}

async fn get(served: &Served, mut call: Call) -> Result<Answer, Error> {
    let tokens = call.tokens();
    let offset = call.arguments.whole("offset").unwrap_or(0);
    // A token has rarely more than eight letters; what is too much is cut below.
    let most = tokens.saturating_mul(8);
    call.arguments.set("content", true);
    call.arguments.set("length", most);
    let note = call.run::<NoteGet>(served).await?;
    let content = note.content.clone().unwrap_or_default();
    for is_bare in [false, true] {
        let mut room = tokens;
        while room > 0 {
            let (head, _) = cut(&content, room);
            let answer = page(&note, head, offset, is_bare)?.structured(call.structured);
            // Every page must bring the reader further.
            if answer.tokens() <= tokens && (content.is_empty() || !head.is_empty()) {
                return Ok(answer);
            }
            room = (room * tokens / answer.tokens().max(1)).min(room - 1);
        }
    }
    page(&note, "", offset, true)
}

/// The beginning of the content from the offset on. A bare page says little about the note, so that
/// a part of the content fits into the smallest answer.
fn page(note: &NoteText, head: &str, offset: usize, is_bare: bool) -> Result<Answer, Error> {
    let utf16 = |text: &str| text.encode_utf16().count();
    let next = match note.content.as_ref() {
        Some(content) if head.len() < content.len() => Some(offset + utf16(head)),
        _ => note.next_offset,
    };
    let view = &note.note;
    let title = match is_bare {
        true => String::new(),
        false => format!("\n[{}] {} {}\n", view.id, view.namespace, view.created_at),
    };
    let mut text = format!("{RECALLED}\n{title}{}", quote(head));
    if let Some(next) = next {
        let left = note.content_length.saturating_sub(next);
        text.push_str(&format!(
            "\n[{left} more characters: call again with offset = {next}, or ask for a larger \
             max_tokens]\n"
        ));
    }
    let bare = |view: NoteView| NoteView {
        summary: String::new(),
        tags: Vec::new(),
        source: None,
        ..view
    };
    let view = shortened_to(view, 80);
    let data = NoteText {
        note: if is_bare { bare(view) } else { view },
        content_length: note.content_length,
        content: Some(head.to_owned()),
        next_offset: next,
    };
    let data = json!({"success": true, "data": data});
    let warning = Some(RECALLED).filter(|_| !is_bare);
    Answer::with(text, &with(data, "note", warning))
}

async fn list(served: &Served, mut call: Call) -> Result<Answer, Error> {
    let page = call.run::<NoteList>(served).await?;
    Answer::fit(&call, page.notes.len(), |room| listed(&page, room))
}

fn listed(page: &NotePage, room: Room) -> Result<Answer, Error> {
    let notes = shortened(&page.notes, room);
    let left = page.notes.len() - notes.len();
    // The next page begins behind all notes of this one, also those that did not fit.
    let next = page.next.clone().filter(|_| left == 0);
    let lines = notes.iter().map(line);
    let mut text = format!("{RECALLED}\n{}", lines.collect::<String>());
    match (page.notes.is_empty(), left, &next) {
        (true, ..) => text = "There are no notes.".to_owned(),
        (_, 1.., _) => text.push_str(&format!("\n[{left} more did not fit: {HOW}]\n")),
        (_, _, Some(next)) => text.push_str(&format!("\n[There are more: after = {next}]\n")),
        _ => {}
    }
    let data = json!(NotePage { notes, next });
    answer(text, &with(data, "leftOut", left_out(left)))
}

async fn update(served: &Served, mut call: Call) -> Result<Answer, Error> {
    let done = call.run::<Update>(served).await?;
    let text = format!(
        "Updated {} to version {}{}",
        done.id,
        done.version,
        expiry(done.expires)
    );
    let summary = excerpt(&done.content, UPDATED);
    let data = json!({"id": done.id, "version": done.version, "summary": summary});
    let data = with(data, "commit", done.commit);
    answer(text, &with(data, "expires", done.expires))
}

/// When something is forgotten by itself, at the end of a sentence.
fn expiry(at: Option<Time>) -> String {
    let day = at.map(|at| at.to_string().chars().take(10).collect::<String>());
    day.map_or(".".to_owned(), |day| format!("; it expires on {day}."))
}

async fn undo(served: &Served, mut call: Call) -> Result<Answer, Error> {
    let done = call.run::<Undo>(served).await?;
    let records = done.receipt.items.len();
    let text = match records {
        0 => format!("Commit {} was undone before.", done.undone),
        _ => format!("Undid commit {}; records changed: {records}.", done.undone),
    };
    let data = json!({"undone": done.undone, "commit": done.receipt.commit, "records": records});
    answer(text, &data)
}

async fn delete(served: &Served, mut call: Call) -> Result<Answer, Error> {
    let done = call.run::<NoteDelete>(served).await?;
    if !done.deleted {
        return Err(Error::Missing(vec![done.id]));
    }
    let text = format!("Forgot {}; memory_undo restores it.", done.id);
    answer(text, &done)
}

async fn stats(served: &Served, mut call: Call) -> Result<Answer, Error> {
    let whose = match served.owner(None).user {
        None => " of all users",
        Some(_) => "",
    };
    let counts = call.run::<NoteStats>(served).await?;
    let text = format!(
        "{} notes{whose}: {} short-term, {} long-term.",
        counts.total, counts.short_term, counts.long_term
    );
    answer(text, &counts)
}

async fn clear(served: &Served, mut call: Call, which: &'static str) -> Result<Answer, Error> {
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
    answer(text, &done)
}

/// How often a cleanup goes on before it answers that there is more.
const ROUNDS: u32 = 10;

async fn cleanup(served: &Served, mut call: Call) -> Result<Answer, Error> {
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
    answer(message, &data)
}
