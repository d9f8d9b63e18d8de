//! The strategy of a project: the older half becomes a page, and a link to it stays.

use mnemon_core::files::Stamp;
use mnemon_core::window::{Change, Extract, chars, message_tokens, tokens};
use mnemon_core::{Ctx, Id, Message, Record, Time};
use serde_json::json;

use super::compress::Made;
use super::stored::Entry;
use super::{Read, Window};
use crate::conversation::pages::{Page, library_folder, link, next_name};
use crate::conversation::project::Project;
use crate::conversation::session::SessionId;
use crate::records::Error;

/// Characters that name a speaker in a summary.
const SPEAKER: usize = 16;

/// Characters that the summary of a page may have however short its messages are.
const SUMMARY: usize = 600;

/// Messages after a part in which answers and corrections are looked for: with all of them, a long
/// conversation would take time by the square of its length.
const FOLLOWING: usize = 50;

/// A page that was written, and what it is removed by.
pub(super) type WrittenPage = (String, Stamp);

impl Window<'_> {
    /// The change with a page and a link to it; none if the link is no shorter than what it
    /// replaces. The page is written when the change is carried out.
    pub(super) async fn make_page(
        &self,
        ctx: &Ctx,
        change: Change,
        read: &Read,
    ) -> Result<Option<Made>, Error> {
        let Some((project, session)) = &self.project else {
            return Ok(None);
        };
        let messages = &read.messages;
        let name = next_name(&*project.files).await?;
        let uuid = self.records.ids.next(ctx.now);
        let message = change.replacement(messages, &link(&name), &uuid, &self.settings);
        let replaced = change.replaced(messages);
        let before = tokens(replaced, self.measure);
        let after = message_tokens(&message, self.measure);
        if after >= before {
            return Ok(None);
        }
        let extract = self.by_extract(&change, replaced, messages);
        // A page takes no room in the window.
        let summary = extract.text((change.original_chars * 3 / 5).max(SUMMARY));
        let following = messages.get(change.replaced.end..).unwrap_or_default();
        let page = page_of(
            ctx,
            (project, session),
            &uuid,
            (replaced, following),
            summary,
        );
        let sizes = (before, after);
        let event = self.event(ctx, &change, messages, &message, sizes, &extract);
        Ok(Some(Made {
            change,
            uuid,
            message,
            event,
            page: Some(page),
        }))
    }

    /// Writes the page, and names it in the change.
    pub(super) async fn write_page(
        &self,
        ctx: &Ctx,
        mut page: Page,
        made: &mut Made,
        entries: &[Entry],
    ) -> Result<Option<WrittenPage>, Error> {
        let Some((project, _)) = &self.project else {
            return Ok(None);
        };
        let replaced = entries.get(made.change.replaced.clone());
        page.bytes = self.log_range(ctx, replaced.unwrap_or_default()).await?;
        let (name, stamp) = page.write(&*project.files).await?;
        made.message = made
            .change
            .replacement(&[], &link(&name), &made.uuid, &self.settings);
        made.event.metadata.insert("page".to_owned(), json!(name));
        Ok(Some((name, stamp)))
    }

    /// Writes a page anew, with the summary of a model.
    pub(super) async fn rewrite_page(
        &self,
        ctx: &Ctx,
        (name, uuid): (String, &Id),
        entries: &[Entry],
        originals: &[Message],
        summary: &str,
    ) -> Result<(), Error> {
        let Some((project, session)) = &self.project else {
            return Ok(());
        };
        let messages = (originals, &[][..]);
        let mut page = page_of(ctx, (project, session), uuid, messages, summary.to_owned());
        page.bytes = self.log_range(ctx, entries).await?;
        page.rewrite(&*project.files, &name).await?;
        project.index_library(self.library, self.records, ctx).await;
        Ok(())
    }

    /// From where to where the messages of these entries stand in the log.
    async fn log_range(&self, ctx: &Ctx, entries: &[Entry]) -> Result<Option<(u64, u64)>, Error> {
        let ends = entries.first().into_iter().chain(entries.last());
        let ids: Vec<_> = ends.map(|entry| entry.of.clone()).collect();
        let found = self.records.get(ctx, &ids).await?;
        let place =
            |record: Option<&Record>, end: usize| record?.metadata.get("log")?.get(end)?.as_u64();
        let start = place(found.first().and_then(Option::as_ref), 0);
        let end = place(found.last().and_then(Option::as_ref), 1);
        Ok(start.zip(end))
    }

    /// Indexes the pages; or removes them, if the window that links to them was not written.
    pub(super) async fn settle_pages(
        &self,
        ctx: &Ctx,
        pages: Vec<Option<WrittenPage>>,
        is_written: bool,
    ) {
        let Some((project, _)) = &self.project else {
            return;
        };
        if pages.is_empty() {
            return;
        }
        for (name, stamp) in pages.iter().flatten().filter(|_| !is_written) {
            let path = format!("{}/{name}", library_folder());
            if let Err(error) = project.files.remove(&path, stamp).await {
                let what = format!("No conversation links to {path}: {error}.");
                ctx.notices.add(what);
            }
        }
        project.index_library(self.library, self.records, ctx).await;
    }
}

/// The page of these messages: the summary, and an extract of each part. What follows the messages
/// may answer or correct them.
fn page_of(
    ctx: &Ctx,
    (project, session): (&Project, &SessionId),
    uuid: &Id,
    (messages, following): (&[Message], &[Message]),
    summary: String,
) -> Page {
    let size = project.config().chunk_size.max(2);
    let mut parts = Vec::new();
    let mut rest = messages;
    while !rest.is_empty() {
        let (part, later) = rest.split_at(size.min(rest.len()));
        // With room for everything of it that matters.
        let room: usize = part.iter().map(|message| chars(message) + SPEAKER).sum();
        let next = later.iter().chain(following).take(FOLLOWING);
        let text = Extract::of(part, &next.cloned().collect::<Vec<_>>()).text(room);
        let (from, to) = period(part, ctx.now);
        parts.push((from, to, text));
        rest = later;
    }
    Page {
        session: session.clone(),
        created_at: ctx.now,
        uuid: uuid.clone(),
        messages: messages.len(),
        period: period(messages, ctx.now),
        bytes: None,
        summary,
        parts,
    }
}

/// When the first and the last of the messages were said.
fn period(messages: &[Message], now: Time) -> (Time, Time) {
    let time =
        |message: Option<&Message>| -> Option<Time> { message?.timestamp.as_deref()?.parse().ok() };
    let from = time(messages.first()).unwrap_or(now);
    (from, time(messages.last()).unwrap_or(from))
}
