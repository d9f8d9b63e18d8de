//! Forgetting a session: what was said and done in it, and what is known only from it.

use mnemon_core::{Batch, Ctx, Expect, Fate, Id, Op, Record, Right, Scope, limits};
use serde::{Deserialize, Serialize};

use super::family::derived_from;
use super::listing::each;
use super::session_files::{FilesDone, ProjectFiles, SavedFolder};
use super::session_records::{self, SessionRecords};
use super::{Deletion, Mode, NotErased, Removed};
use crate::conversation::session::SessionId;
use crate::conversation::{Conversation as Listed, session_in};
use crate::memory::Memory;
use crate::records::naming::check_name;
use crate::records::session_marks::{root_of, roots_of, session_of_user};
use crate::records::{Error, Records};

/// How often is looked again for records that were written meanwhile.
const ROUNDS: usize = 16;

/// Which session is forgotten, and how.
#[derive(Clone, Copy)]
pub struct SessionForget<'a> {
    pub user: &'a str,
    pub session: &'a str,
    /// Erase it permanently, instead of keeping it for undo.
    pub purge: bool,
    /// The projects whose conversation of this name is meant; without any, that of no project.
    pub projects: &'a [ProjectFiles],
    /// Folders in which states of the latter may be saved.
    pub folders: &'a [SavedFolder],
}

/// What became of a session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Forgotten {
    /// Records that are gone: the session's own, and what was derived only from them.
    pub records: u64,
    /// Records that were derived from the session and from something else, too: they stay, and
    /// name only the other sources now.
    pub kept: u64,
    /// What undo knows the removals by on the first store.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<u64>,
    /// Files that were erased.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// What still holds text of the session.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<NotErased>,
    /// Sessions that were forked from it: they are sessions of their own, and stay.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub forks: Vec<String>,
    /// Whether records were written to the session as fast as they were removed, so that some may be
    /// left.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub more: bool,
}

impl Forgotten {
    /// Whether nothing of the session is left that this call knows of.
    pub fn is_whole(&self) -> bool {
        self.left.is_empty() && !self.more
    }

    /// Whether there was nothing of it anywhere. A purge that leaves something was not for nothing;
    /// files that hold what was forgotten before are.
    pub fn is_nothing(&self, purge: bool) -> bool {
        let is_left = purge && !self.left.is_empty();
        self.records == 0 && self.files.is_empty() && !is_left
    }

    fn count(&mut self, removed: Removed) {
        let gone = |fate: &Fate| matches!(fate, Fate::Deleted | Fate::Purged);
        let receipt = removed.receipt;
        let items = receipt.items.iter().filter(|item| gone(&item.fate)).count();
        self.records += (items + receipt.cascaded.len()) as u64;
        self.kept += removed.parted;
        self.commit = self.commit.or(receipt.commit);
    }

    fn take_files(&mut self, done: FilesDone) {
        self.files.extend(done.erased);
        self.left.extend(done.left);
        self.forks.extend(done.forks);
    }
}

impl Memory {
    /// Forgets a user's session on every store: its dialog, state and experience, and all that was
    /// derived only from them. Profile and shared knowledge stay, and so do sessions of this name in
    /// projects. With `purge` it is erased permanently, otherwise undo brings it back. Forgetting it
    /// again changes nothing.
    pub async fn delete_session(
        &self,
        ctx: &Ctx,
        user: &str,
        session: &str,
        purge: bool,
    ) -> Result<Forgotten, Error> {
        let asked = SessionForget {
            user,
            session,
            purge,
            projects: &[],
            folders: &[],
        };
        self.forget_session(ctx, &asked).await
    }

    /// The roots of projects in which the session has a log or pages, as far as this memory was
    /// told. Also those of a session that was forgotten earlier.
    pub async fn session_roots(&self, ctx: &Ctx, session: &str) -> Result<Vec<String>, Error> {
        let marks = self.root_marks(ctx, session).await?;
        Ok(marks.into_iter().map(|(_, root)| root).collect())
    }

    async fn root_marks(&self, ctx: &Ctx, session: &str) -> Result<Vec<(Id, String)>, Error> {
        let records = self.records_of(Scope::Dialog);
        let mut marks = Vec::new();
        let filter = roots_of(session);
        each(records, ctx, &filter, true, limits::FILES, |record, _| {
            marks.extend(root_of(&record).map(|root| (record.id, root)));
        })
        .await?;
        Ok(marks)
    }

    /// The root of the project in which the conversation lies, as far as this memory was told.
    pub async fn project_root(
        &self,
        ctx: &Ctx,
        conversation: &Listed,
    ) -> Result<Option<String>, Error> {
        let Some(project) = &conversation.project else {
            return Ok(None);
        };
        let session = &conversation.session;
        let key = format!("{project}/{session}");
        let roots = self.session_roots(ctx, session).await?;
        let is_its = |root: &String| session_in(root, session).is_ok_and(|name| name == key);
        Ok(roots.into_iter().find(is_its))
    }

    /// Whether there is something that forgetting the session would take.
    pub async fn has_session(&self, ctx: &Ctx, asked: &SessionForget<'_>) -> Result<bool, Error> {
        let stores = self.records().on_all_stores();
        for one in asked.conversations()? {
            let own = session_records::find(&stores, ctx, &asked.named(&one.key), true).await?;
            let (has_files, _) = find_files(ctx, asked, &own, &one).await;
            let is_kept = asked.purge && (has_files || !own.moved.is_empty());
            if is_kept || !own.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Forgets a session: that of no project, or those of the same name in the projects that the
    /// call names. With `purge` it erases what was forgotten of them earlier, their files and their
    /// snapshots as well.
    pub async fn forget_session(
        &self,
        ctx: &Ctx,
        asked: &SessionForget<'_>,
    ) -> Result<Forgotten, Error> {
        let ctx = &ctx.as_one_commit();
        let mut done = Forgotten::default();
        for one in asked.conversations()? {
            self.forget_conversation(ctx, asked, &one, &mut done)
                .await?;
        }
        done.forks.sort();
        done.forks.dedup();
        Ok(done)
    }

    async fn forget_conversation(
        &self,
        ctx: &Ctx,
        asked: &SessionForget<'_>,
        one: &Conversation<'_>,
        done: &mut Forgotten,
    ) -> Result<(), Error> {
        let stores = self.records().on_all_stores();
        let by_key = &asked.named(&one.key);
        let mut own = session_records::find(&stores, ctx, by_key, true).await?;
        done.forks.append(&mut own.forks);
        let (has_files, files) = find_files(ctx, asked, &own, one).await;
        done.take_files(files);
        if asked.purge && (has_files || !own.is_empty() || !own.moved.is_empty()) {
            if !own.has_others {
                // Before anything is erased, so that nobody reads a line again on the way.
                self.mark_session_purged(ctx, &one.key).await?;
                self.erase_files(ctx, asked, one, done).await?;
            } else if one.project.is_some() {
                // The log is of others, too: it stays, and this user does not read its lines again.
                let key = session_of_user(&one.key, asked.user);
                self.mark_session_purged(ctx, &key).await?;
            }
            erase_older_versions(&stores, ctx, asked, &own, done).await?;
        }
        done.left.extend(own.left_of_others(asked.session));
        let mode = match asked.purge {
            true => Mode::Purge,
            false => Mode::Forget,
        };
        for round in 0..ROUNDS {
            if round > 0 {
                own = session_records::find(&stores, ctx, by_key, false).await?;
            }
            if own.is_empty() {
                return Ok(());
            }
            let deletion = Deletion::new(&stores, ctx, mode);
            done.count(deletion.run(&own.ids).await?);
        }
        let last = session_records::find(&stores, ctx, by_key, false).await?;
        done.more |= !last.is_empty();
        Ok(())
    }

    /// Erases the files of a conversation that is one user's alone, and then the mark of its root.
    async fn erase_files(
        &self,
        ctx: &Ctx,
        asked: &SessionForget<'_>,
        one: &Conversation<'_>,
        done: &mut Forgotten,
    ) -> Result<(), Error> {
        let Ok(session) = asked.session.parse::<SessionId>() else {
            return Ok(());
        };
        let Some(project) = one.project else {
            for folder in asked.folders {
                done.take_files(folder.erase(ctx, &session).await);
            }
            return Ok(());
        };
        let erased = project.erase(&session).await;
        let is_clean = erased.left.is_empty();
        done.take_files(erased);
        let marks = self.root_marks(ctx, asked.session).await?;
        let marks = marks.into_iter().filter(|(_, root)| *root == project.root);
        let marks: Vec<Id> = marks.map(|(id, _)| id).filter(|_| is_clean).collect();
        if !marks.is_empty() {
            let records = self.records_of(Scope::Dialog);
            records.purge(ctx, &marks, None).await?;
        }
        Ok(())
    }
}

/// One of the conversations that have the session's name.
struct Conversation<'a> {
    /// Its session in the store.
    key: String,
    project: Option<&'a ProjectFiles>,
}

impl<'a> SessionForget<'a> {
    fn named<'b>(&'b self, session: &'b str) -> SessionForget<'b> {
        SessionForget { session, ..*self }
    }

    /// The conversations that are meant.
    fn conversations(&self) -> Result<Vec<Conversation<'a>>, Error> {
        check_name("user", self.user, limits::NAME_CHARS)?;
        check_name("session", self.session, limits::NAME_CHARS)?;
        if self.projects.is_empty() {
            let key = self.session.to_owned();
            return Ok(vec![Conversation { key, project: None }]);
        }
        let mut all = Vec::new();
        for project in self.projects {
            all.push(Conversation {
                key: session_in(&project.root, self.session)?,
                project: Some(project),
            });
        }
        Ok(all)
    }
}

/// Records that belong elsewhere now keep their newest version only. One that others were derived
/// from cannot be written anew without them: it is listed.
async fn erase_older_versions(
    stores: &[Records],
    ctx: &Ctx,
    asked: &SessionForget<'_>,
    own: &SessionRecords,
    done: &mut Forgotten,
) -> Result<(), Error> {
    for (number, record) in &own.moved {
        let Some(records) = stores.get(*number) else {
            continue;
        };
        let user = record.owner.user.as_deref();
        let is_theirs = user.is_none_or(|user| user == asked.user);
        if !is_theirs || !drop_older_versions(records, ctx, record).await? {
            done.left.push(NotErased {
                path: format!("older versions of record {}", record.id),
                why: format!(
                    "the record now belongs to another session; `mnemon forget {} --purge` erases it completely",
                    record.id
                ),
            });
        }
    }
    Ok(())
}

/// Whether there are files that hold text of the conversation, and which of them stay.
async fn find_files(
    ctx: &Ctx,
    asked: &SessionForget<'_>,
    own: &SessionRecords,
    one: &Conversation<'_>,
) -> (bool, FilesDone) {
    let mut look = FilesDone::default();
    let Ok(session) = asked.session.parse::<SessionId>() else {
        return (false, look);
    };
    let mut held: Vec<String> = Vec::new();
    match one.project {
        Some(project) => {
            let (paths, _) = project.held(&session).await;
            held.extend(paths.iter().map(|path| project.path(path)));
        }
        None => {
            for folder in asked.folders {
                held.extend(folder.held(ctx, &session).await);
            }
        }
    }
    let has_files = !held.is_empty();
    let why = match (asked.purge, own.has_others) {
        // They are erased.
        (true, false) => None,
        (true, true) => {
            Some("another user has a session of this name, and the file belongs to both")
        }
        (false, _) => Some("the session was forgotten, not purged: the file keeps its text"),
    };
    if let Some(why) = why {
        let why = || why.to_owned();
        look.left
            .extend(held.into_iter().map(|path| NotErased { path, why: why() }));
    }
    (has_files, look)
}

/// Writes the record anew without its history, unless something was derived from it or somebody
/// changes it meanwhile; whether it did.
async fn drop_older_versions(records: &Records, ctx: &Ctx, record: &Record) -> Result<bool, Error> {
    let mut is_source = false;
    let filter = derived_from(std::slice::from_ref(&record.id));
    let most = records.policy.limits.cascade;
    each(records, ctx, &filter, true, most, |_, _| is_source = true).await?;
    if is_source {
        return Ok(false);
    }
    let grant = records.policy.check(ctx, Right::Purge)?;
    let expect = Expect::Version(record.version);
    let ops = vec![
        // Only to hold the version: a purge does not ask for one.
        Op::put_if(record.clone(), expect),
        Op::Purge {
            id: record.id.clone(),
        },
        Op::put(record.clone()),
    ];
    match records.apply(ctx, &grant, Batch::from(ops)).await {
        Ok(_) => Ok(true),
        Err(Error::Store(mnemon_core::StoreError::Conflict { .. })) => Ok(false),
        Err(error) => Err(error),
    }
}
