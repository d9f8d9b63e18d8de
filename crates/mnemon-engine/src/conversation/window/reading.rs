//! The window as it is kept: read whole, written whole.

use mnemon_core::window::truncated;
use mnemon_core::{
    Ctx, Expect, Id, Kind, Message, Order, Origin, Owner, Receipt, Record, Scan, Scope,
};

use super::stored::{Covered, Entry, Offload, Position, Working};
use super::{Read, Window};
use crate::memory::scopes::message_of;
use crate::records::{Draft, Error};

impl Window<'_> {
    /// The window's record, and its version.
    pub(super) async fn working(&self, ctx: &Ctx) -> Result<(Option<u64>, Working), Error> {
        match self.records.find(ctx, &self.id()).await? {
            Some(record) => Ok((Some(record.version), Working::of(&record)?)),
            None => Ok((None, Working::default())),
        }
    }

    /// The window as it is now: its entries, and whatever was said after them.
    pub(super) async fn read(&self, ctx: &Ctx) -> Result<Read, Error> {
        if let Some((project, _)) = &self.project {
            return self
                .read_newest(ctx, project.config().hot_window_size)
                .await;
        }
        let limits = self.records.limits();
        let (version, working) = self.working(ctx).await?;
        let mut covered = working.covered;
        let known = working.ids();
        let mut found = self.resolve(ctx, working.entries).await?;
        let mut scan = Scan {
            order: Order::Oldest,
            after: covered.map(|covered| covered.at.cursor()),
            ..Scan::new(self.within(Kind::Message), limits.page)
        };
        let before = covered;
        let more = loop {
            let page = self.records.list(ctx, &scan).await?;
            for record in &page.records {
                // One that was brought back by undo has a new number, but was seen already.
                let again = record.version > 1
                    && before.is_some_and(|b| b.at.created == record.created.millis());
                if !again && !known.contains(&record.id) {
                    found.push((Entry::original(record), message_of(record)));
                }
                covered = Some(Covered::by(record).after(covered));
            }
            match page.next {
                Some(_) if found.len() > limits.window_messages => break true,
                Some(next) => scan.after = Some(next),
                None => break found.len() > limits.window_messages,
            }
        };
        let (entries, messages) = found.into_iter().unzip();
        Ok(Read {
            version,
            covered,
            entries,
            messages,
            more,
        })
    }

    /// The same in a project, where at most `most` messages are shown word for word, after links to
    /// the last pages: only the newest messages are read. A result whose call is not among them is
    /// not shown either.
    async fn read_newest(&self, ctx: &Ctx, most: usize) -> Result<Read, Error> {
        let (version, working) = self.working(ctx).await?;
        let covered = working.covered;
        let known = working.ids();
        let mut newest: Vec<Record> = Vec::new();
        let mut after = None;
        loop {
            let wanted = (most - newest.len()).min(self.records.limits().page);
            let page = self.page(ctx, Order::Newest, after, wanted).await?;
            newest.extend(page.records);
            after = page.next.filter(|_| newest.len() < most);
            if after.is_none() {
                break;
            }
        }
        let is_new = |record: &&Record| {
            covered.is_none_or(|covered| Position::of(record) > covered.at)
                && !known.contains(&record.id)
        };
        let fresh = newest.iter().rev().filter(is_new);
        let fresh = fresh.map(|record| (Entry::original(record), message_of(record)));
        let mut found = self.resolve(ctx, working.entries).await?;
        found.extend(fresh);
        let (entries, messages) = shown_in_project(found, most);
        Ok(Read {
            version,
            covered: newest.first().map(|last| Covered::by(last).after(covered)),
            entries,
            messages,
            more: false,
        })
    }

    /// The messages that entries stand for. Of one whose replacement was forgotten, what is left of
    /// the messages that it stood for.
    pub(super) async fn resolve(
        &self,
        ctx: &Ctx,
        entries: Vec<Entry>,
    ) -> Result<Vec<(Entry, Message)>, Error> {
        let mut found = Vec::with_capacity(entries.len());
        for chunk in entries.chunks(self.records.limits().page) {
            let ids: Vec<Id> = chunk.iter().map(|entry| entry.of.clone()).collect();
            let records = self.records.get(ctx, &ids).await?;
            for (entry, record) in chunk.iter().zip(records) {
                match record {
                    Some(record) if !entry.replaced => {
                        found.push((entry.clone(), message_of(&record)));
                    }
                    Some(record) => match Offload::of(&record) {
                        Some(offload) => found.push((entry.clone(), offload.message)),
                        None => found.extend(self.between(ctx, entry).await?),
                    },
                    None if entry.replaced => found.extend(self.between(ctx, entry).await?),
                    None => {}
                }
            }
        }
        Ok(found)
    }

    /// What was said where this entry stands.
    pub(super) async fn between(
        &self,
        ctx: &Ctx,
        entry: &Entry,
    ) -> Result<Vec<(Entry, Message)>, Error> {
        let limits = self.records.limits();
        let mut found = Vec::new();
        let mut after = Some(entry.first.just_before());
        while let Some(cursor) = after {
            let page = self
                .page(ctx, Order::Oldest, Some(cursor), limits.page)
                .await?;
            for record in &page.records {
                if Position::of(record) > entry.last {
                    return Ok(found);
                }
                found.push((Entry::original(record), message_of(record)));
            }
            after = page.next.filter(|_| found.len() <= limits.window_messages);
        }
        Ok(found)
    }

    /// Writes the window, with what was offloaded from it, in one batch. It is refused if somebody
    /// else wrote it since it was read.
    pub(super) async fn write(
        &self,
        ctx: &Ctx,
        read: &Read,
        mut offloads: Vec<(Draft, Expect)>,
    ) -> Result<Receipt, Error> {
        let working = Working {
            entries: read.entries.clone(),
            covered: read.covered,
        };
        let draft = |id: Id, body| Draft {
            id: Some(id),
            owner: self.session(),
            scope: Some(Scope::Dialog),
            kind: Some(Kind::Session),
            body: Some(body),
            origin: Some(Origin::Derived),
            ..Draft::default()
        };
        let expect = read.version.map_or(Expect::Absent, Expect::Version);
        offloads.push((draft(self.id(), working.to_json()?), expect));
        if let Some(covered) = read.covered {
            let place = draft(self.fixed("window-place"), covered.to_json()?);
            // The window's own version guards it.
            offloads.push((place, Expect::Anything));
        }
        // Messages as they are stored, and places: nothing that was not looked through.
        self.records.put_screened(ctx, offloads, None).await
    }

    /// The owner without the agent: the window is the session's.
    pub(super) fn session(&self) -> Owner {
        Owner {
            agent: None,
            ..self.owner.clone()
        }
    }
}

/// Links to pages that stay in view; the library has them all.
const LINKS: usize = 8;

/// The last links, and of what is shown word for word the last messages.
fn shown_in_project(found: Vec<(Entry, Message)>, most: usize) -> (Vec<Entry>, Vec<Message>) {
    let hot = found.iter().filter(|(entry, _)| !entry.replaced);
    let hot: Vec<Message> = hot.map(|(_, message)| message.clone()).collect();
    let mut too_old = hot.len() - truncated(&hot, most).len();
    let links = found.iter().filter(|(entry, _)| entry.replaced).count();
    let mut surplus = links.saturating_sub(LINKS);
    let shown = found.into_iter().filter(|(entry, _)| {
        let left = match entry.replaced {
            true => &mut surplus,
            false => &mut too_old,
        };
        let is_shown = *left == 0;
        *left = left.saturating_sub(1);
        is_shown
    });
    shown.unzip()
}
