//! Entries of the files as records, so that they are found by search. The files stay the truth:
//! the records can be forgotten at any time and are made again.

use std::collections::{BTreeMap, HashMap};

use mnemon_core::files::Listed;
use mnemon_core::markdown::{Day, Document};
use mnemon_core::{
    Ctx, Expect, Filter, Id, Kind, Namespace, Origin, Owner, Record, Scan, Scope, Time, limits,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::AgentFiles;
use super::entries::heading;
use crate::memory::Memory;
use crate::records::naming::fixed_id;
use crate::records::project::{project_tag, short_digest};
use crate::records::safety::TakenOut;
use crate::records::undo::as_index;
use crate::records::{Draft, Error, Records};

/// What was brought up to date.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Indexed {
    /// Files that were read because they had changed.
    pub files: usize,
    pub written: usize,
    pub removed: usize,
}

/// What a file holds, and whose it is.
struct FileRole {
    kind: Kind,
    agent: Option<String>,
    team: Option<String>,
}

/// The form of the index: another one has records that are made otherwise. 2: sessions have the
/// date of their file.
const FORM: u32 = 2;

/// The size and the time of each file that is indexed.
type Stamps = BTreeMap<String, (u64, i64)>;

/// The stamp of no file.
const OTHER_FORM: (u64, i64) = (u64::MAX, i64::MIN);

/// The files of one folder of one project, as records name them.
struct Index<'a> {
    memory: &'a Memory,
    project: &'a str,
    root: &'a str,
}

impl AgentFiles {
    /// Reads the files that changed since the last time and makes records of their entries.
    pub async fn index(&self, ctx: &Ctx, memory: &Memory) -> Result<Indexed, Error> {
        let index = self.index_in(memory);
        let ctx = &as_index(ctx);
        let mut done = Indexed::default();
        index.forget_unnamed(ctx, &mut done).await?;
        let known = index.known(ctx, &index.id()).await?.unwrap_or_default();
        let mut seen = Stamps::new();
        for (path, place, stamp) in self.indexable().await? {
            if known.get(&path) != Some(&stamp) {
                done.files += 1;
                match self.read(&path).await {
                    Ok(read) => {
                        let text = read.map(|read| read.text).unwrap_or_default();
                        let modified = Time::EPOCH.plus_millis(stamp.1);
                        let drafts = index.drafts(&path, &place, text, modified);
                        index
                            .update(ctx, &path, place.kind, drafts, &mut done)
                            .await?;
                    }
                    Err(error @ (Error::BadFile { .. } | Error::Files(_))) => {
                        ctx.notices.add(error.to_string());
                        continue;
                    }
                    Err(error) => return Err(error),
                }
            }
            seen.insert(path, stamp);
        }
        for path in known.keys().filter(|path| !seen.contains_key(*path)) {
            if let Some(place) = place(&self.root, path) {
                index
                    .update(ctx, path, place.kind, Vec::new(), &mut done)
                    .await?;
            }
        }
        if seen != known {
            index.remember(ctx, &seen).await?;
        }
        Ok(done)
    }

    /// Whether there are entries that the index does not have as they are now. Nothing is written.
    pub async fn is_index_behind(&self, ctx: &Ctx, memory: &Memory) -> Result<bool, Error> {
        let index = self.index_in(memory);
        let known = index.known(ctx, &index.id()).await?.unwrap_or_default();
        let files = self.indexable().await?.into_iter();
        let now: Stamps = files.map(|(path, _, stamp)| (path, stamp)).collect();
        Ok(now != known)
    }

    fn index_in<'a>(&'a self, memory: &'a Memory) -> Index<'a> {
        Index {
            memory,
            project: &self.project,
            root: &self.root,
        }
    }

    /// The files that have entries, what they hold, and their size and time.
    async fn indexable(&self) -> Result<Vec<(String, FileRole, (u64, i64))>, Error> {
        let listed = self.files.list(&self.root).await?.into_iter();
        let files = listed.filter_map(
            |Listed {
                 path,
                 bytes,
                 modified,
             }| {
                let place = place(&self.root, &path)?;
                Some((path, place, (bytes, modified.millis())))
            },
        );
        Ok(files.collect())
    }
}

impl Index<'_> {
    /// The record that says which files are indexed.
    fn id(&self) -> Id {
        fixed_id("agent-files", &[Some(self.project), Some(self.root)])
    }

    async fn known(&self, ctx: &Ctx, id: &Id) -> Result<Option<Stamps>, Error> {
        let records = self.memory.records_of(Scope::State);
        let found = records.find(ctx, id).await?;
        let body = found.and_then(|record| record.body);
        let Some(body) = body else {
            return Ok(None);
        };
        let files = body.get("files").cloned().unwrap_or_default();
        let mut files: Stamps = serde_json::from_value(files).unwrap_or_default();
        if body.get("v") != Some(&json!(FORM)) {
            // Every file is read again, and records that are as they should be stay.
            files.values_mut().for_each(|stamp| *stamp = OTHER_FORM);
        }
        Ok(Some(files))
    }

    /// It has no words and is derived, like the books of learning: no search and no list shows it.
    async fn remember(&self, ctx: &Ctx, seen: &Stamps) -> Result<(), Error> {
        let draft = Draft {
            id: Some(self.id()),
            scope: Some(Scope::State),
            kind: Some(Kind::Session),
            origin: Some(Origin::Derived),
            body: Some(json!({ "v": FORM, "files": seen, "project": self.project })),
            ..Draft::default()
        };
        let records = self.memory.records_of(Scope::State);
        records
            .put(ctx, vec![(draft, Expect::Anything)], None)
            .await?;
        Ok(())
    }

    /// Earlier versions named entries by their path alone, so that nobody can say whose they are:
    /// they go, and those of this project are made again.
    async fn forget_unnamed(&self, ctx: &Ctx, done: &mut Indexed) -> Result<(), Error> {
        let id = fixed_id("agent-files", &[Some(self.root)]);
        let Some(known) = self.known(ctx, &id).await? else {
            return Ok(());
        };
        for path in known.keys() {
            let Some(place) = place(self.root, path) else {
                continue;
            };
            let records = self.memory.records_of(place.kind.usual_scope());
            let there = records_of_file(ctx, records, &unnamed_tag(path)).await?;
            forget(ctx, records, there.into_keys().collect(), done).await?;
        }
        let records = self.memory.records_of(Scope::State);
        records.forget(ctx, &[id], None).await?;
        Ok(())
    }
}

/// What is to be found in a file; `None` for those that are not indexed.
fn place(root: &str, path: &str) -> Option<FileRole> {
    let (folder, file) = path.strip_prefix(root)?.rsplit_once('/')?;
    let name = file.strip_suffix(".md")?;
    let owner = |folder: &str| folder.rsplit('/').next().map(str::to_owned);
    if let Some(team) = folder.strip_suffix("/team-memory") {
        let kind = match name {
            "decisions" => Kind::Decision,
            "handoffs" => Kind::Handoff,
            _ => return None,
        };
        return Some(FileRole {
            kind,
            agent: None,
            team: owner(team),
        });
    }
    let (agent, inner) = folder.split_once("/memory")?;
    let kind = match (inner, name.split('-').next()?) {
        ("", _) if name == "decisions" => Kind::Decision,
        ("", _) if name == "learnings" => Kind::Learning,
        ("/archive", "decisions") => Kind::Decision,
        ("/archive", "learnings") => Kind::Learning,
        ("/sessions", _) => Kind::Session,
        _ => return None,
    };
    Some(FileRole {
        kind,
        agent: owner(agent),
        team: None,
    })
}

/// The day that the file of a session is named for.
fn session_day(path: &str) -> Option<Day> {
    let name = path.rsplit('/').next()?;
    name.get(..10)?.parse().ok()
}

/// The id of an entry: of several with the same heading, `count` tells which.
pub(super) fn entry_id(project: &str, path: &str, heading: &str, count: usize) -> Id {
    let names = [project, path, heading, &count.to_string()];
    fixed_id("agent-file-entry", &names.map(Some))
}

/// As earlier versions marked the entries of a file.
fn unnamed_tag(path: &str) -> String {
    format!("file:{}", short_digest(&[path]))
}

impl Index<'_> {
    fn file_tag(&self, path: &str) -> String {
        format!("file:{}", short_digest(&[self.project, path]))
    }

    fn drafts(&self, path: &str, place: &FileRole, text: String, modified: Time) -> Vec<Draft> {
        let document = Document::parse(text);
        if place.kind == Kind::Session {
            let content = document.as_str().trim();
            let title = document
                .sections()
                .first()
                .map_or("", |section| section.title.as_str());
            let mut whole = self.draft(path, place, title, 1, content);
            whole.created = Some(session_day(path).map_or(modified, Day::start));
            return match content.is_empty() {
                true => Vec::new(),
                false => vec![whole],
            };
        }
        let mut seen: HashMap<String, usize> = HashMap::new();
        let mut drafts = Vec::new();
        for entry in document.entries() {
            let heading = heading(&document, &entry);
            let count = seen.entry(heading.clone()).or_default();
            *count += 1;
            let mut made = self.draft(path, place, &heading, *count, document.entry_text(&entry));
            made.created = entry.day.map(|day| {
                day.start()
                    .plus_millis(i64::from(entry.minute.unwrap_or(0)) * 60_000)
            });
            drafts.push(made);
        }
        drafts
    }

    fn draft(
        &self,
        path: &str,
        place: &FileRole,
        heading: &str,
        count: usize,
        text: &str,
    ) -> Draft {
        let mut metadata = Map::new();
        metadata.insert("file".to_owned(), Value::from(path));
        metadata.insert("heading".to_owned(), Value::from(heading));
        let source = format!("{path}#{heading}");
        let source: String = source
            .chars()
            .map(|c| if c.is_control() { ' ' } else { c })
            .take(limits::SOURCE_CHARS)
            .collect();
        let mut tags = vec![self.file_tag(path), project_tag(self.project)];
        tags.extend(place.team.as_ref().map(|team| format!("team:{team}")));
        Draft {
            id: Some(entry_id(self.project, path, heading, count)),
            content: text.replace('\0', ""),
            kind: Some(place.kind),
            namespace: Some(Namespace::LongTerm),
            owner: Owner {
                agent: place.agent.clone(),
                ..Owner::default()
            },
            source: Some(source),
            origin: Some(Origin::File),
            tags,
            metadata,
            ..Draft::default()
        }
    }

    /// Writes what is new or changed and takes away what is no longer in the file.
    async fn update(
        &self,
        ctx: &Ctx,
        path: &str,
        kind: Kind,
        drafts: Vec<Draft>,
        done: &mut Indexed,
    ) -> Result<(), Error> {
        let records = self.memory.records_of(kind.usual_scope());
        let mut there = records_of_file(ctx, records, &self.file_tag(path)).await?;
        let mut new = Vec::new();
        // What people write into their files is theirs; it is only not repeated elsewhere.
        let safety = records.safety.never_refusing();
        for mut draft in drafts {
            safety.screen(&mut draft, &mut TakenOut::default())?;
            let old = draft.id.as_ref().and_then(|id| there.remove(id));
            let is_same = |old: &Record| {
                old.content == draft.content
                    && old.owner == draft.owner
                    && draft.created.is_none_or(|created| created == old.created)
            };
            if !old.as_ref().is_some_and(is_same) {
                new.push((draft, Expect::Anything));
            }
        }
        done.written += new.len();
        while !new.is_empty() {
            let rest = new.split_off(new.len().min(records.limits().commit_ops));
            records
                .put_screened(ctx, std::mem::replace(&mut new, rest), None)
                .await?;
        }
        forget(ctx, records, there.into_keys().collect(), done).await
    }
}

async fn forget(
    ctx: &Ctx,
    records: &Records,
    gone: Vec<Id>,
    done: &mut Indexed,
) -> Result<(), Error> {
    done.removed += gone.len();
    for ids in gone.chunks(records.limits().commit_ops) {
        records.forget(ctx, ids, None).await?;
    }
    Ok(())
}

async fn records_of_file(
    ctx: &Ctx,
    records: &Records,
    tag: &str,
) -> Result<HashMap<Id, Record>, Error> {
    let filter = Filter {
        tags: vec![tag.to_owned()],
        ..Filter::all_of_tenant()
    };
    let scan = Scan::new(filter, records.limits().page);
    let mut found = HashMap::new();
    let take = |page: Vec<Record>| {
        found.extend(page.into_iter().map(|record| (record.id.clone(), record)));
        true
    };
    records.each_page(ctx, scan, take).await?;
    Ok(found)
}

#[cfg(test)]
mod tests;
