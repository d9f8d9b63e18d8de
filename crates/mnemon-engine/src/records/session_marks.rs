//! What is known about a session besides its records: when it was purged, where its files lie, and
//! how far its log was read.
//!
//! A purge mark holds a time and a digest of the session's name, and stays. Lines of a log that are
//! not younger are not read any more, so that a log that could not be erased, or that came back from
//! a backup, is not indexed again. A root mark holds the path of a project in which the session has
//! files, so that a purge finds them; it goes when they are erased.

use mnemon_core::{
    Batch, Ctx, Expect, Filter, Id, Kind, Op, Origin, Owner, Receipt, Record, Right, Scope, Time,
    limits,
};
use serde_json::{Value, json};

use crate::records::naming::fixed_id;
use crate::records::safety::TakenOut;
use crate::records::{Draft, Error, Records};

const PURGED: &str = "purge-mark";
const ROOT: &str = "session-files";
const LOG: &str = "log-watermark";

/// Whether the record says that a session was purged: no undo takes that back.
pub(crate) fn is_purge_mark(record: &Record) -> bool {
    record.kind == Kind::Session && record.tags.iter().any(|tag| tag == PURGED)
}

/// Whether the record says where files of a session lie.
pub(crate) fn is_root_mark(record: &Record) -> bool {
    record.kind == Kind::Session && record.tags.iter().any(|tag| tag == ROOT)
}

/// Whether the record says how far a log was read: forgetting and undoing its messages do not move
/// it, so that they are not read again.
pub(crate) fn is_log_mark(record: &Record) -> bool {
    record.kind == Kind::Session && record.tags.iter().any(|tag| tag == LOG)
}

/// Where it is kept how far the log of this user's session was read.
pub(crate) fn log_mark_id(owner: &Owner) -> Id {
    fixed_id(LOG, &[owner.user.as_deref(), owner.session.as_deref()])
}

/// The root that the record names.
pub(crate) fn root_of(record: &Record) -> Option<String> {
    let body = record.body.as_ref().filter(|_| is_root_mark(record))?;
    Some(body.get("root")?.as_str()?.to_owned())
}

/// The marks of roots in which a session has files.
pub(crate) fn roots_of(session: &str) -> Filter {
    Filter {
        owner: Owner::of(None, Some(session)),
        scopes: vec![Scope::Dialog],
        kinds: vec![Kind::Session],
        tags: vec![ROOT.to_owned()],
        ..Filter::all_of_tenant()
    }
}

/// What a purge mark is named by if only one user of the session purged it: the log stays for the
/// others. No session's name holds a control character.
pub(crate) fn session_of_user(session: &str, user: &str) -> String {
    format!("{session}\u{1f}{user}")
}

impl Records {
    /// When the session was last purged.
    pub(crate) async fn purged_at(&self, ctx: &Ctx, session: &str) -> Result<Option<Time>, Error> {
        let mark = self.find(ctx, &purge_mark_id(session)).await?;
        Ok(mark.and_then(|mark| mark.body?.get("purged")?.as_str()?.parse().ok()))
    }

    /// Marks that the session is purged now.
    pub(crate) async fn mark_purged(&self, ctx: &Ctx, session: &str) -> Result<(), Error> {
        let before = self.purged_at(ctx, session).await?;
        let at = before.map_or(ctx.now, |before| before.max(ctx.now));
        let mark = Record {
            tags: vec![PURGED.to_owned()],
            body: Some(json!({ "purged": at })),
            ..silent(purge_mark_id(session), ctx)
        };
        self.keep_mark(ctx, mark).await
    }

    /// Marks that one line of a log was purged from the index.
    pub(crate) async fn mark_line_purged(&self, ctx: &Ctx, line: &Id) -> Result<(), Error> {
        let mark = Record {
            tags: vec![PURGED.to_owned()],
            body: Some(json!({ "purged": ctx.now })),
            ..silent(line_mark_id(line), ctx)
        };
        self.keep_mark(ctx, mark).await
    }

    /// Which of these lines of a log were not purged from the index.
    pub(crate) async fn not_purged(&self, ctx: &Ctx, lines: &[Id]) -> Result<Vec<bool>, Error> {
        let marks: Vec<Id> = lines.iter().map(line_mark_id).collect();
        let marks = self.get_all(ctx, &marks).await?;
        Ok(marks.iter().map(Option::is_none).collect())
    }

    /// Marks that the session has files below this root; once.
    pub(crate) async fn mark_root(
        &self,
        ctx: &Ctx,
        session: &str,
        root: &str,
    ) -> Result<(), Error> {
        let id = fixed_id(ROOT, &[Some(session), Some(root)]);
        let there = self.get(ctx, std::slice::from_ref(&id)).await?;
        if there.iter().any(Option::is_some) || root.len() > limits::PATH_BYTES {
            return Ok(());
        }
        let mark = Record {
            owner: roots_of(session).owner,
            tags: vec![ROOT.to_owned()],
            body: Some(json!({ "root": root })),
            ..silent(id, ctx)
        };
        self.keep_mark(ctx, mark).await
    }

    /// Writes messages that lie in a log, and with them, in one commit, how far it was read: if
    /// nobody else has moved that since. What lies in a log already is masked, not refused.
    pub(crate) async fn put_with_log_mark(
        &self,
        ctx: &Ctx,
        drafts: Vec<Draft>,
        owner: &Owner,
        body: Value,
        version: Option<u64>,
    ) -> Result<Receipt, Error> {
        let grant = self.policy.check(ctx, Right::Write)?;
        let safety = self.safety.never_refusing();
        let mut ops = Vec::with_capacity(drafts.len() + 1);
        for mut draft in drafts {
            safety.screen(&mut draft, &mut TakenOut::default())?;
            let record = draft.into_record(ctx, &self.ids, self.retention);
            ops.push(Op::put_if(record, Expect::Absent));
        }
        let mark = Record {
            owner: owner.clone(),
            tags: vec![LOG.to_owned()],
            body: Some(body),
            ..silent(log_mark_id(owner), ctx)
        };
        let expect = version.map_or(Expect::Absent, Expect::Version);
        ops.push(Op::put_if(mark, expect));
        self.apply(ctx, &grant, Batch::from(ops)).await
    }

    /// Marks do not expire, whatever the retention says of other records, and are commits of their
    /// own: whoever undoes a command still has its files.
    async fn keep_mark(&self, ctx: &Ctx, mark: Record) -> Result<(), Error> {
        let grant = self.policy.check(ctx, Right::Write)?;
        self.commit(&grant, Batch::of(Op::put(mark))).await?;
        Ok(())
    }
}

fn purge_mark_id(session: &str) -> Id {
    fixed_id(PURGED, &[Some(session)])
}

fn line_mark_id(line: &Id) -> Id {
    fixed_id("purged-line", &[Some(line.as_str())])
}

/// A record without words, which no search finds.
fn silent(id: Id, ctx: &Ctx) -> Record {
    Record {
        scope: Scope::Dialog,
        origin: Origin::Derived,
        ..Record::new(id, ctx, Kind::Session, "")
    }
}
