//! Counting notes and taking them away.

use mnemon_core::{
    Ctx, Fate, Id, Invalid, Kind, Namespace, Owner, Record, Scan, Scope, Upkept, Viewer, clock,
};
use serde::{Deserialize, Serialize};

use super::{NoteFilter, Notes, notes_of};
use crate::records::Error;
use crate::records::edit::FILE_ENTRY;

/// How many notes there are, expired ones that no cleanup has taken included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NoteCounts {
    pub total: u64,
    pub short_term: u64,
    pub long_term: u64,
}

/// What clearing took away.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cleared {
    pub cleared: u64,
    /// How many notes are left in both namespaces, as far as the user may see them.
    pub remaining: u64,
    /// What undo knows the removals by.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<u64>,
}

/// What a cleanup erased.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cleaned {
    pub cleaned: u64,
    pub message: String,
    /// Whether there is more to do.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub more: bool,
    /// Why nothing was erased although something has expired.
    #[serde(skip)]
    pub held_back: Option<String>,
}

impl NoteCounts {
    fn add(&mut self, namespace: Namespace, count: u64) {
        self.total += count;
        match namespace {
            Namespace::ShortTerm => self.short_term += count,
            Namespace::LongTerm => self.long_term += count,
        }
    }
}

impl Notes {
    /// How many notes that this viewer may see there are in each namespace. For the tenant they
    /// are counted already; for a person they are read.
    pub async fn stats(&self, ctx: &Ctx, viewer: &Viewer) -> Result<NoteCounts, Error> {
        let mut counts = NoteCounts::default();
        if *viewer == Viewer::Tenant {
            let tally = self.records.stats(ctx).await?;
            let notes = tally.groups.iter();
            let notes = notes.filter(|one| one.kind == Kind::Note && one.scope == Scope::Semantic);
            notes.for_each(|group| counts.add(group.namespace, group.count));
            return Ok(counts);
        }
        let filter = NoteFilter::seen_by(viewer.clone()).of_records();
        let scan = Scan::new(filter, self.records.limits().page);
        let take = |page: Vec<Record>| {
            page.iter().for_each(|note| counts.add(note.namespace, 1));
            true
        };
        self.records.each_page(ctx, scan, take).await?;
        Ok(counts)
    }

    /// How many notes there are, in one namespace or both.
    pub async fn count(&self, ctx: &Ctx, namespace: Option<Namespace>) -> Result<u64, Error> {
        let counts = self.stats(ctx, &Viewer::Tenant).await?;
        Ok(match namespace {
            None => counts.total,
            Some(Namespace::ShortTerm) => counts.short_term,
            Some(Namespace::LongTerm) => counts.long_term,
        })
    }

    /// Forgets a note, or another piece of knowledge that a search named; whether there was one.
    /// Undo brings it back. A chunk goes with its document, and a message with its conversation.
    pub async fn delete(&self, ctx: &Ctx, viewer: &Viewer, id: &Id) -> Result<bool, Error> {
        let Some(there) = self.readable(ctx, viewer, id).await? else {
            return Ok(false);
        };
        let what = match there.kind {
            _ if there.is_of_agent_file() => FILE_ENTRY,
            Kind::Chunk => "is a part of a document; delete the document",
            Kind::Message | Kind::Summary => "is of a conversation; delete the conversation",
            _ if there.scope == Scope::Semantic => "",
            _ => "is not a note, a fact or a document",
        };
        if !what.is_empty() {
            return Err(Invalid::new("id", format!("{id} {what}")).into());
        }
        let receipt = self
            .records
            .forget(ctx, std::slice::from_ref(id), None)
            .await?;
        let gone = |fate: &Fate| matches!(fate, Fate::Deleted);
        Ok(receipt.items.iter().any(|item| gone(&item.fate)))
    }

    /// Forgets every note of the owner, in one namespace or both. Undo brings them back.
    pub async fn clear(
        &self,
        ctx: &Ctx,
        namespace: Option<Namespace>,
        owner: &Owner,
    ) -> Result<Cleared, Error> {
        let limits = self.records.limits();
        let filter = notes_of(owner, namespace);
        let ctx = &ctx.as_one_commit();
        let (mut cleared, mut commit) = (0, None);
        let mut scan = Scan::new(filter, limits.commit_ops.min(limits.page));
        loop {
            let page = self.records.list(ctx, &scan).await?;
            let ids: Vec<Id> = page.records.into_iter().map(|record| record.id).collect();
            if !ids.is_empty() {
                let receipt = self.records.forget(ctx, &ids, None).await?;
                let gone = receipt.items.iter();
                let gone = gone.filter(|item| matches!(item.fate, Fate::Deleted));
                cleared += gone.count() as u64;
                commit = commit.or(receipt.commit);
            }
            match page.next {
                Some(next) => scan.after = Some(next),
                None => break,
            }
        }
        let user = owner.user.as_deref();
        let viewer = user.map_or(Viewer::Tenant, Viewer::user);
        Ok(Cleared {
            cleared,
            remaining: self.stats(ctx, &viewer).await?.total,
            commit,
        })
    }

    /// Erases expired notes permanently.
    pub async fn cleanup(&self, ctx: &Ctx) -> Result<Cleaned, Error> {
        let before = self.records.stats(ctx).await?.expired;
        let mut upkept = Upkept::default();
        let limits = self.records.limits();
        for _ in 0..limits.cleanup_slices {
            upkept = self.records.upkeep(ctx, limits.page).await?;
            if !upkept.more {
                break;
            }
        }
        let after = self.records.stats(ctx).await?.expired;
        let cleaned = before.saturating_sub(after);
        let held_back = upkept.clock_days_ahead.map(clock::notice);
        Ok(Cleaned {
            cleaned,
            message: match &held_back {
                Some(why) => why.clone(),
                None => format!("Cleaned up {cleaned} expired entries."),
            },
            more: upkept.more,
            held_back,
        })
    }
}
