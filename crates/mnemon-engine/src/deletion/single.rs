//! Purging single records: what of them lies in files is told, and not indexed again.

use std::collections::{HashMap, HashSet};

use mnemon_core::{Changes, Ctx, Id, Receipt, Record, Time};

use super::NotErased;
use crate::conversation::is_log_line;
use crate::conversation::library::is_library_page;
use crate::memory::Memory;
use crate::records::Error;
use crate::records::session_marks::is_root_mark;

/// What became of purged records.
#[derive(Debug, Clone, PartialEq)]
pub struct Purged {
    pub receipt: Receipt,
    /// Logs and pages that still hold their text.
    pub left: Vec<NotErased>,
}

impl Memory {
    /// Marks that a session is purged now: no line of its logs that is there already is shown or
    /// indexed any more.
    pub async fn mark_session_purged(&self, ctx: &Ctx, session: &str) -> Result<(), Error> {
        let records = self.records_of(mnemon_core::Scope::Dialog);
        records.mark_purged(ctx, session).await
    }

    /// Erases the records, all that was derived from them, and their history. A record that repeats
    /// a line of a log is not made again from it, and logs and pages that hold the text are told.
    pub async fn purge_records(
        &self,
        ctx: &Ctx,
        ids: &[Id],
        key: Option<&str>,
    ) -> Result<Purged, Error> {
        let mut left: Vec<NotErased> = Vec::new();
        let mut purged: HashMap<String, Option<Time>> = HashMap::new();
        let mut roots: HashSet<Id> = HashSet::new();
        for chunk in ids.chunks(self.records().policy.limits.page) {
            let found = self.records().get(ctx, chunk).await?;
            for (id, found) in chunk.iter().zip(found) {
                let record = match found {
                    Some(record) => record,
                    // What was forgotten earlier may still stand in a file.
                    None => match self.last_content(ctx, id).await? {
                        Some(record) => record,
                        None => continue,
                    },
                };
                if is_root_mark(&record) {
                    // It holds no text, and is needed to find the files.
                    roots.insert(record.id);
                    continue;
                }
                if is_log_line(&record) {
                    self.mark_line(ctx, &record, &mut purged).await?;
                }
                left.extend(file_of(&record).filter(|file| !left.contains(file)));
            }
        }
        let ids = ids.iter().filter(|id| !roots.contains(id));
        let ids: Vec<Id> = ids.cloned().collect();
        let receipt = self.records().purge(ctx, &ids, key).await?;
        Ok(Purged { receipt, left })
    }

    /// The newest version with content of a record that was deleted.
    async fn last_content(&self, ctx: &Ctx, id: &Id) -> Result<Option<Record>, Error> {
        let changes = Changes {
            id: Some(id.clone()),
            limit: 1,
            ..Changes::all_of_tenant(0)
        };
        let newest = self.records().history(ctx, &changes).await?;
        let newest = newest.into_iter().next();
        Ok(newest.and_then(|change| change.after.or(change.before)))
    }

    /// One line needs a mark of its own, unless its whole session is purged now.
    async fn mark_line(
        &self,
        ctx: &Ctx,
        line: &Record,
        purged: &mut HashMap<String, Option<Time>>,
    ) -> Result<(), Error> {
        let records = self.records_of(mnemon_core::Scope::Dialog);
        let session = line.owner.session.clone().unwrap_or_default();
        let at = match purged.get(&session) {
            Some(at) => *at,
            None => {
                let at = records.purged_at(ctx, &session).await?;
                purged.insert(session, at);
                at
            }
        };
        match at.is_some_and(|at| at >= line.updated) {
            true => Ok(()),
            false => records.mark_line_purged(ctx, &line.id).await,
        }
    }
}

fn file_of(record: &Record) -> Option<NotErased> {
    let path = record.source.clone()?;
    let session = record.owner.session.as_deref().unwrap_or("SESSION");
    let session = session.rsplit('/').next().unwrap_or_default();
    (is_log_line(record) || is_library_page(record)).then(|| NotErased {
        path,
        why: format!(
            "it still holds the text; `mnemon chat delete {session} --purge --files ROOT` \
             erases the files of a session"
        ),
    })
}
