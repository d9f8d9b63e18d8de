//! Entries of the files as records, so that they are found by search. The files stay the truth:
//! the records can be forgotten at any time and are made again.

use std::collections::{BTreeMap, HashMap};

use mnemon_core::files::Listed;
use mnemon_core::markdown::Document;
use mnemon_core::{
    Ctx, Expect, Filter, Id, Invalid, Kind, Namespace, Origin, Owner, Record, Scan, Scope, limits,
};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::AgentFiles;
use crate::naming::fixed_id;
use crate::safety::TakenOut;
use crate::{Draft, Error, Memory, Records};

/// What was brought up to date.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Indexed {
    /// Files that were read because they had changed.
    pub files: usize,
    pub written: usize,
    pub removed: usize,
    /// Sentences for people: files that could not be read.
    pub notices: Vec<String>,
}

/// Records in one commit.
const COMMIT: usize = 500;

/// What a file holds, and whose it is.
struct Place {
    kind: Kind,
    agent: Option<String>,
    team: Option<String>,
}

impl AgentFiles {
    /// Reads the files that changed since the last time and makes records of their entries.
    pub async fn index(&self, ctx: &Ctx, memory: &Memory) -> Result<Indexed, Error> {
        let records = memory.records_of(Scope::State);
        let id = fixed_id("agent-files", &[Some(&self.root)]);
        let known = records
            .get(ctx, std::slice::from_ref(&id))
            .await?
            .pop()
            .flatten();
        let known: BTreeMap<String, (u64, i64)> = known
            .and_then(|record| serde_json::from_value(record.body?.get("files")?.clone()).ok())
            .unwrap_or_default();
        let mut done = Indexed::default();
        let mut seen: BTreeMap<String, (u64, i64)> = BTreeMap::new();
        for Listed {
            path,
            bytes,
            modified,
        } in self.files.list(&self.root).await?
        {
            let Some(place) = place(&self.root, &path) else {
                continue;
            };
            let stamp = (bytes, modified.millis());
            if known.get(&path) != Some(&stamp) {
                done.files += 1;
                match self.read(&path).await {
                    Ok(read) => {
                        let text = read.map(|read| read.text).unwrap_or_default();
                        let drafts = drafts(&path, &place, text)?;
                        update(ctx, memory, &path, place.kind, drafts, &mut done).await?;
                    }
                    Err(error @ (Error::BadFile { .. } | Error::Files(_))) => {
                        done.notices.push(error.to_string());
                        continue;
                    }
                    Err(error) => return Err(error),
                }
            }
            seen.insert(path, stamp);
        }
        for path in known.keys().filter(|path| !seen.contains_key(*path)) {
            if let Some(place) = place(&self.root, path) {
                update(ctx, memory, path, place.kind, Vec::new(), &mut done).await?;
            }
        }
        if seen != known {
            let draft = Draft {
                id: Some(id),
                kind: Some(Kind::State),
                origin: Some(Origin::Derived),
                body: Some(json!({ "files": seen })),
                ..Draft::note(format!("which files below {} are indexed", self.root))
            };
            records
                .put(ctx, vec![(draft, Expect::Anything)], None)
                .await?;
        }
        Ok(done)
    }
}

/// What is to be found in a file; `None` for those that are not indexed.
fn place(root: &str, path: &str) -> Option<Place> {
    let (folder, file) = path.strip_prefix(root)?.rsplit_once('/')?;
    let name = file.strip_suffix(".md")?;
    let owner = |folder: &str| folder.rsplit('/').next().map(str::to_owned);
    if let Some(team) = folder.strip_suffix("/team-memory") {
        let kind = match name {
            "decisions" => Kind::Decision,
            "handoffs" => Kind::Handoff,
            _ => return None,
        };
        return Some(Place {
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
    Some(Place {
        kind,
        agent: owner(agent),
        team: None,
    })
}

fn file_tag(path: &str) -> String {
    let digest = blake3::hash(path.as_bytes()).to_hex();
    format!("file:{}", digest.chars().take(16).collect::<String>())
}

fn drafts(path: &str, place: &Place, text: String) -> Result<Vec<Draft>, Invalid> {
    let document = Document::parse(text);
    if place.kind == Kind::Session {
        let content = document.as_str().trim();
        let title = document
            .sections()
            .first()
            .map_or("", |section| section.title.as_str());
        let whole = draft(path, place, title, 1, content);
        return Ok(if content.is_empty() {
            Vec::new()
        } else {
            vec![whole]
        });
    }
    let mut seen: HashMap<String, usize> = HashMap::new();
    let mut drafts = Vec::new();
    for entry in document.entries() {
        let heading = document
            .slice(&entry.span)
            .lines()
            .next()
            .unwrap_or_default();
        let heading = heading.trim_start_matches(['#', ' ']).trim_end().to_owned();
        let count = seen.entry(heading.clone()).or_default();
        *count += 1;
        let mut made = draft(path, place, &heading, *count, document.entry_text(&entry));
        made.created = entry.day.map(|day| {
            day.start()
                .plus_millis(i64::from(entry.minute.unwrap_or(0)) * 60_000)
        });
        drafts.push(made);
    }
    Ok(drafts)
}

fn draft(path: &str, place: &Place, heading: &str, count: usize, text: &str) -> Draft {
    let count = count.to_string();
    let mut metadata = Map::new();
    metadata.insert("file".to_owned(), Value::from(path));
    metadata.insert("heading".to_owned(), Value::from(heading));
    let source = format!("{path}#{heading}");
    let source: String = source
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(limits::SOURCE_CHARS)
        .collect();
    let mut tags = vec![file_tag(path)];
    tags.extend(place.team.as_ref().map(|team| format!("team:{team}")));
    Draft {
        id: Some(fixed_id(
            "agent-file-entry",
            &[Some(path), Some(heading), Some(&count)],
        )),
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
    ctx: &Ctx,
    memory: &Memory,
    path: &str,
    kind: Kind,
    drafts: Vec<Draft>,
    done: &mut Indexed,
) -> Result<(), Error> {
    let records = memory.records_of(kind.usual_scope());
    let mut there = records_of_file(ctx, records, path).await?;
    let mut new = Vec::new();
    // What people write into their files is theirs; it is only not repeated elsewhere.
    let safety = records.safety.never_refusing();
    for mut draft in drafts {
        safety.screen(&mut draft, &mut TakenOut::default())?;
        let old = draft.id.as_ref().and_then(|id| there.remove(id));
        if old.is_none_or(|old| old.content != draft.content || old.owner != draft.owner) {
            new.push((draft, Expect::Anything));
        }
    }
    done.written += new.len();
    done.removed += there.len();
    while !new.is_empty() {
        let rest = new.split_off(new.len().min(COMMIT));
        records
            .put_as_is(ctx, std::mem::replace(&mut new, rest), None)
            .await?;
    }
    let gone: Vec<Id> = there.into_keys().collect();
    for ids in gone.chunks(COMMIT) {
        records.forget(ctx, ids, None).await?;
    }
    Ok(())
}

async fn records_of_file(
    ctx: &Ctx,
    records: &Records,
    path: &str,
) -> Result<HashMap<Id, Record>, Error> {
    let filter = Filter {
        tags: vec![file_tag(path)],
        ..Filter::default()
    };
    let mut scan = Scan::new(filter, limits::PAGE);
    let mut found = HashMap::new();
    loop {
        let page = records.list(ctx, &scan).await?;
        found.extend(
            page.records
                .into_iter()
                .map(|record| (record.id.clone(), record)),
        );
        match page.next {
            Some(next) => scan.after = Some(next),
            None => return Ok(found),
        }
    }
}
