//! A folder for each session, a file for each part: `{name}.json` for a value, `{name}.jsonl` with
//! `{name}.hash` for a list that grows.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use mnemon_core::files::{File, Files, FilesError, Listed};
use mnemon_core::log::Log;
use mnemon_core::{Ctx, Invalid, Limits, Time};
use serde_json::{Map, Value, json};

use super::{Mark, SessionId, SessionInfo, SessionState, Sessions, id};
use crate::records::safety::TakenOut;
use crate::records::{Error, Safety};

/// What a session says of itself beside its parts. Folders of other systems do without it.
const META: &str = "session_meta";

/// Sessions as folders. Each part by itself is saved whole; a list that only grew is appended to.
pub struct FolderSessions {
    files: Arc<dyn Files>,
    log: Arc<dyn Log>,
    folder: String,
    safety: Safety,
}

impl FolderSessions {
    /// Sessions below this folder; an empty name is the root of the files. Both ports must lead to
    /// the same root.
    pub fn new(files: Arc<dyn Files>, log: Arc<dyn Log>, folder: impl Into<String>) -> Self {
        Self {
            files,
            log,
            folder: folder.into(),
            safety: Safety::default(),
        }
    }

    /// What is kept out of what is saved.
    #[must_use]
    pub fn safety(mut self, safety: Safety) -> Self {
        self.safety = safety;
        self
    }

    /// Saves a value as `{name}.json`.
    pub async fn save_value(
        &self,
        session: &SessionId,
        name: &str,
        value: &Value,
    ) -> Result<(), Error> {
        id::check("component", name)?;
        let value = self
            .safety
            .clean_value(name, value, &mut TakenOut::default())?;
        self.write_value(session, name, &value).await
    }

    /// The value, if it was saved.
    pub async fn get_value(&self, session: &SessionId, name: &str) -> Result<Option<Value>, Error> {
        id::check("component", name)?;
        let path = self.path(session, &format!("{name}.json"));
        let Some(file) = self.files.read(&path).await? else {
            return Ok(None);
        };
        json_of(&path, &file.bytes).map(Some)
    }

    /// Saves a list as `{name}.jsonl`: appends what is new; writes the whole anew if it is not
    /// what was there and more.
    pub async fn save_list(
        &self,
        session: &SessionId,
        name: &str,
        list: &[Value],
    ) -> Result<Saved, Error> {
        id::check("component", name)?;
        let list = list.to_vec();
        let list = self
            .safety
            .clean_value(name, &list, &mut TakenOut::default())?;
        self.write_list(session, name, &list).await
    }

    async fn write_list(
        &self,
        session: &SessionId,
        name: &str,
        list: &[Value],
    ) -> Result<Saved, Error> {
        let path = self.path(session, &format!("{name}.jsonl"));
        let hash_path = self.path(session, &format!("{name}.hash"));
        let lines = list.iter().map(|item| item.to_string() + "\n");
        let lines: Vec<String> = lines.collect();
        let there = self.files.read(&path).await?;
        let hash = self.files.read(&hash_path).await?;
        let known = there.as_ref().map_or(Ok(Vec::new()), |file| {
            // What cannot be read is not written over.
            list_of(&path, &file.bytes).map(|_| whole_lines(&file.bytes))
        })?;
        let saved = if is_prefix(&known, &lines, hash.as_ref()) {
            let tail = lines.get(known.len()..).unwrap_or_default().concat();
            if there.is_none() {
                self.files.write(&path, tail.as_bytes(), None).await?;
            } else if !tail.is_empty() {
                self.log.append(&path, tail.as_bytes()).await?;
            }
            Saved::Appended(lines.len() - known.len())
        } else {
            let stamp = there.as_ref().map(|file| &file.stamp);
            let whole = lines.concat();
            self.files.write(&path, whole.as_bytes(), stamp).await?;
            Saved::Rewritten(lines.len())
        };
        let now = hash_of(&lines);
        if hash.as_ref().map(|file| file.bytes.as_slice()) != Some(now.as_bytes()) {
            let stamp = hash.as_ref().map(|file| &file.stamp);
            self.files.write(&hash_path, now.as_bytes(), stamp).await?;
        }
        Ok(saved)
    }

    /// The list; empty when none was saved.
    pub async fn get_list(&self, session: &SessionId, name: &str) -> Result<Vec<Value>, Error> {
        id::check("component", name)?;
        let path = self.path(session, &format!("{name}.jsonl"));
        match self.files.read(&path).await? {
            Some(file) => list_of(&path, &file.bytes),
            None => Ok(Vec::new()),
        }
    }

    async fn write_value(
        &self,
        session: &SessionId,
        name: &str,
        value: &Value,
    ) -> Result<(), Error> {
        let path = self.path(session, &format!("{name}.json"));
        let mut text = serde_json::to_vec_pretty(value)
            .map_err(|error| Invalid::new("component", error.to_string()))?;
        text.push(b'\n');
        let there = self.files.read(&path).await?;
        if there.as_ref().is_none_or(|file| file.bytes != text) {
            let stamp = there.as_ref().map(|file| &file.stamp);
            self.files.write(&path, &text, stamp).await?;
        }
        Ok(())
    }

    fn home(&self, session: &SessionId) -> String {
        let name = folder_name(session.as_str());
        match self.folder.as_str() {
            "" => name,
            folder => format!("{folder}/{name}"),
        }
    }

    fn path(&self, session: &SessionId, file: &str) -> String {
        format!("{}/{file}", self.home(session))
    }

    /// The files of the parts: the name of the part, its form, and the file.
    async fn parts(&self, session: &SessionId) -> Result<Vec<(String, Form, Listed)>, Error> {
        let home = self.home(session) + "/";
        let files = self.files.list(home.trim_end_matches('/')).await?;
        let parts = files.into_iter().filter_map(|file| {
            let name = file.path.strip_prefix(&home)?.to_owned();
            let form = Form::ALL
                .iter()
                .find(|form| name.ends_with(form.ending()))?;
            let part = name.strip_suffix(form.ending())?;
            (!part.contains('/')).then(|| (part.to_owned(), *form, file))
        });
        Ok(parts.collect())
    }

    async fn drop_file(&self, path: &str) -> Result<(), Error> {
        if let Some(file) = self.files.read(path).await? {
            self.files.remove(path, &file.stamp).await?;
        }
        Ok(())
    }
}

/// What became of a list that was saved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Saved {
    /// This many lines were added at the end.
    Appended(usize),
    /// This many lines were written in place of what was there.
    Rewritten(usize),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Value,
    List,
    Hash,
}

impl Form {
    const ALL: &'static [Self] = &[Self::Value, Self::List, Self::Hash];

    fn ending(self) -> &'static str {
        match self {
            Self::Value => ".json",
            Self::List => ".jsonl",
            Self::Hash => ".hash",
        }
    }
}

#[async_trait]
impl Sessions for FolderSessions {
    async fn load(
        &self,
        _ctx: &Ctx,
        session: &SessionId,
    ) -> Result<Option<(SessionState, Mark)>, Error> {
        let mut state = SessionState::new(session.clone());
        let mut digests = Map::new();
        for (name, form, file) in self.parts(session).await? {
            let Some(read) = self.files.read(&file.path).await? else {
                continue;
            };
            digests.insert(file.path.clone(), json!(read.stamp.digest));
            let value = match form {
                Form::Hash => continue,
                Form::Value => json_of(&file.path, &read.bytes)?,
                Form::List => Value::Array(list_of(&file.path, &read.bytes)?),
            };
            if name == META && form == Form::Value {
                take_meta(&mut state, value, &file.path)?;
            } else if state.components.insert(name, value).is_some() {
                let what = "there is a list of the same name; remove one of them";
                return Err(not_ours(&file.path, what.to_owned()));
            }
        }
        if digests.is_empty() {
            return Ok(None);
        }
        let mark = Mark::Digest(Value::Object(digests).to_string());
        Ok(Some((state, mark)))
    }

    async fn save(
        &self,
        ctx: &Ctx,
        state: &SessionState,
        seen: Option<&Mark>,
    ) -> Result<(), Error> {
        let session = &state.session;
        for name in state.components.keys() {
            id::check("component", name)?;
            if name == META {
                let what = format!("`{META}` is taken; choose another name");
                return Err(Invalid::new("component", what).into());
            }
        }
        let there = self.load(ctx, session).await?.map(|(_, mark)| mark);
        if there.as_ref() != seen {
            let path = self.home(session);
            return Err(FilesError::Conflict { path }.into());
        }
        let state = &state.screened(ctx, self.safety)?;
        for (name, value) in &state.components {
            match value {
                Value::Array(list) => {
                    self.write_list(session, name, list).await?;
                }
                value => self.write_value(session, name, value).await?,
            }
        }
        let mut meta = state.extra.clone();
        meta.insert("sessionId".to_owned(), json!(session));
        meta.insert("timestamp".to_owned(), json!(state.timestamp));
        self.write_value(session, META, &Value::Object(meta))
            .await?;
        for (name, form, file) in self.parts(session).await? {
            let is_list = state.components.get(&name).map(Value::is_array);
            let belongs = match form {
                Form::Value => name == META || is_list == Some(false),
                Form::List | Form::Hash => is_list == Some(true),
            };
            if !belongs {
                self.drop_file(&file.path).await?;
            }
        }
        Ok(())
    }

    async fn delete(&self, _ctx: &Ctx, session: &SessionId) -> Result<bool, Error> {
        let files = self.files.list(&self.home(session)).await?;
        for file in &files {
            self.drop_file(&file.path).await?;
        }
        Ok(!files.is_empty())
    }

    async fn list(&self, _ctx: &Ctx) -> Result<Vec<String>, Error> {
        let files = self.files.list(&self.folder).await?;
        let names = files.iter().filter_map(|file| {
            let below = match self.folder.as_str() {
                "" => Some(file.path.as_str()),
                folder => file.path.strip_prefix(folder)?.strip_prefix('/'),
            };
            let (folder, _) = below?.split_once('/')?;
            Some(session_of(folder))
        });
        let names: BTreeSet<String> = names.collect();
        Ok(names.into_iter().take(Limits::DEFAULT.sessions).collect())
    }

    async fn info(&self, _ctx: &Ctx, session: &SessionId) -> Result<Option<SessionInfo>, Error> {
        let parts = self.parts(session).await?;
        if parts.is_empty() {
            return Ok(None);
        }
        let holds_state = |name: &str, form: Form| form != Form::Hash && name != META;
        let counted = parts
            .iter()
            .filter(|(name, form, _)| holds_state(name, *form));
        let modified = parts.iter().map(|(_, _, file)| file.modified);
        Ok(Some(SessionInfo {
            session_id: session.to_string(),
            size: parts.iter().map(|(_, _, file)| file.bytes).sum(),
            last_modified: modified.max().unwrap_or(Time::EPOCH),
            component_count: counted.count(),
        }))
    }
}

fn take_meta(state: &mut SessionState, meta: Value, path: &str) -> Result<(), Error> {
    let Value::Object(mut meta) = meta else {
        return Err(not_ours(path, "it holds no object".to_owned()));
    };
    let named = meta.remove("sessionId");
    if named.is_some_and(|named| named != json!(state.session)) {
        let what = format!("it is not of session `{}`", state.session);
        return Err(not_ours(path, what));
    }
    if let Some(Value::String(timestamp)) = meta.remove("timestamp") {
        state.timestamp = Some(timestamp);
    }
    state.extra = meta;
    Ok(())
}

fn not_ours(path: &str, what: String) -> Error {
    let place = path.to_owned();
    Error::NoSessionFile { place, what }
}

fn json_of(path: &str, bytes: &[u8]) -> Result<Value, Error> {
    serde_json::from_slice(bytes)
        .map_err(|error| not_ours(path, format!("it is not JSON: {error}")))
}

/// The items of a list. Blank lines are skipped; so is an end without a line break, which a writer
/// left that was cut off before it could say "saved".
fn list_of(path: &str, bytes: &[u8]) -> Result<Vec<Value>, Error> {
    let mut items = Vec::new();
    for (number, line) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
        if line.trim_ascii().is_empty() {
            continue;
        }
        match serde_json::from_slice(line) {
            Ok(item) => items.push(item),
            Err(_) if !line.ends_with(b"\n") => {}
            Err(error) => {
                let what = format!("line {} is not JSON: {error}", number + 1);
                return Err(not_ours(path, what));
            }
        }
    }
    Ok(items)
}

/// The lines as they are, but for blank ones.
fn whole_lines(bytes: &[u8]) -> Vec<&[u8]> {
    let lines = bytes.split_inclusive(|byte| *byte == b'\n');
    lines.filter(|line| !line.trim_ascii().is_empty()).collect()
}

/// Whether the lines that are there are how the new ones begin. The hash alone would not tell a
/// file that was edited by hand, the lines alone not one whose writer was cut off.
fn is_prefix(known: &[&[u8]], lines: &[String], hash: Option<&File>) -> bool {
    let Some(head) = lines.get(..known.len()) else {
        return false;
    };
    if known.is_empty() {
        return true;
    }
    let same = known.iter().zip(head).all(|(a, b)| *a == b.as_bytes());
    same && hash.is_some_and(|file| file.bytes == hash_of(head).as_bytes())
}

/// A digest of every line, and how many there are.
fn hash_of(lines: &[String]) -> String {
    if lines.is_empty() {
        return "empty:0".to_owned();
    }
    let mut hasher = blake3::Hasher::new();
    hasher.update(format!("{}:", lines.len()).as_bytes());
    for line in lines {
        hasher.update(line.as_bytes());
    }
    hasher.finalize().to_hex().to_string()
}

/// The session's id if it is plain, otherwise its URL-safe Base64. An id that looks like the
/// Base64 of another one is written in Base64 as well, so that no two meet.
fn folder_name(session: &str) -> String {
    match is_encoded(session) {
        true => URL_SAFE_NO_PAD.encode(session),
        false => session.to_owned(),
    }
}

fn is_encoded(session: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    let is_plain = !session.is_empty() && session.bytes().all(plain);
    let leads_astray = matches!(session, "." | "..");
    !is_plain || leads_astray || decoded(session).is_some_and(|inner| is_encoded(&inner))
}

/// The session that a folder of this name belongs to.
fn session_of(folder: &str) -> String {
    let inner = decoded(folder).filter(|inner| is_encoded(inner));
    inner.unwrap_or_else(|| folder.to_owned())
}

fn decoded(name: &str) -> Option<String> {
    let text = String::from_utf8(URL_SAFE_NO_PAD.decode(name).ok()?).ok()?;
    // What could not be a session was not encoded: a plain name looks like Base64 by chance.
    text.parse::<SessionId>().ok().map(|id| id.to_string())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_session_has_a_folder_of_its_own(a in "\\PC{1,12}", b in "\\PC{1,12}") {
            for id in [&a, &b, &URL_SAFE_NO_PAD.encode(&a)] {
                if id.parse::<SessionId>().is_ok() {
                    let name = folder_name(id);
                    prop_assert_eq!(&session_of(&name), id);
                    prop_assert!(name != "." && name != ".." && !name.contains('/'));
                }
            }
        }
    }

    #[test]
    fn plain_names_are_kept_and_others_encoded() {
        assert_eq!(folder_name("user-1_a.b"), "user-1_a.b");
        assert_eq!(folder_name("a b"), "YSBi");
        assert_eq!(folder_name("YSBi"), "WVNCaQ");
        assert_eq!(session_of("YSBi"), "a b");
        assert_eq!(session_of("user123"), "user123");
    }
}
