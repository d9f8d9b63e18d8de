//! Pages of the library: the summary of a part of a conversation, in a file.

use mnemon_core::files::{Files, FilesError, Stamp};
use mnemon_core::{Id, Time, limits};
use serde_json::json;

use super::log::ROOT;
use super::session::SessionId;
use crate::records::Error;

/// The folder of the pages, below the root.
pub(crate) fn library_folder() -> String {
    format!("{ROOT}/knowledge/library")
}

/// What a page says.
pub(super) struct Page {
    pub(super) session: SessionId,
    pub(super) created_at: Time,
    /// What the messages are reloaded by.
    pub(super) uuid: Id,
    /// How many messages it stands for.
    pub(super) messages: usize,
    /// When the first and the last of them were said.
    pub(super) period: (Time, Time),
    /// Where they stand in the log; none if nobody knows.
    pub(super) bytes: Option<(u64, u64)>,
    pub(super) summary: String,
    /// Summaries of the parts, and from when to when each of them goes.
    pub(super) parts: Vec<(Time, Time, String)>,
}

impl Page {
    fn text(&self, number: u64) -> String {
        let (from, to) = self.period;
        let mut page = format!(
            "---\nversion: 1\nstatus: final\nauthor: mnemon\ncreated_at: {}\nsession: {}\n",
            self.created_at,
            json!(self.session),
        );
        if let Some((start, end)) = self.bytes {
            // The place of the last line; earlier versions know a page by it.
            page.push_str(&format!("through: {end}\nbytes: {start}-{end}\n"));
        }
        page.push_str(&format!(
            "lines: {}\nfrom: {from}\nto: {to}\nreload: {}\n---\n\
             # History {number:03}\n\n\
             {} messages of session {}, {from} to {to}.\n\n{}\n",
            self.messages, self.uuid, self.messages, self.session, self.summary
        ));
        if self.parts.len() > 1 {
            for (from, to, part) in &self.parts {
                page.push_str(&format!("\n## {from} to {to}\n\n{part}\n"));
            }
        }
        page
    }

    /// Writes the page under the next free number. Its name, and what it is removed by.
    pub(super) async fn write(&self, files: &dyn Files) -> Result<(String, Stamp), Error> {
        let mut tries = 0;
        loop {
            let number = next_number(files).await?;
            let name = page_name(number);
            let path = format!("{}/{name}", library_folder());
            tries += 1;
            let text = self.text(number);
            match files.write(&path, text.as_bytes(), None).await {
                // Somebody else has just written a page of this number.
                Err(FilesError::Conflict { .. }) if tries < limits::CHANGE_TRIES => {}
                done => return Ok((name, done?)),
            }
        }
    }

    /// Writes the page over the one of this name, if that is still there.
    pub(super) async fn rewrite(&self, files: &dyn Files, name: &str) -> Result<(), Error> {
        let path = format!("{}/{name}", library_folder());
        if let (Some(number), Some(file)) = (number_of(name), files.read(&path).await?) {
            let text = self.text(number);
            let stamp = Some(&file.stamp);
            files.write(&path, text.as_bytes(), stamp).await?;
        }
        Ok(())
    }
}

/// How the page is called that is written next.
pub(super) async fn next_name(files: &dyn Files) -> Result<String, Error> {
    Ok(page_name(next_number(files).await?))
}

/// How a window names a page.
pub(super) fn link(name: &str) -> String {
    format!("[History Link: {name}]")
}

async fn next_number(files: &dyn Files) -> Result<u64, Error> {
    let listed = files.list(&library_folder()).await?;
    let numbers = listed.iter().filter_map(|file| number_of(&file.path));
    Ok(numbers.max().unwrap_or(0).saturating_add(1))
}

fn number_of(path: &str) -> Option<u64> {
    let name = path.rsplit('/').next()?;
    name.strip_prefix("history-")?
        .strip_suffix(".md")?
        .parse()
        .ok()
}

fn page_name(number: u64) -> String {
    format!("history-{number:03}.md")
}

fn front_matter<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let front = text.strip_prefix("---\n")?.split("\n---\n").next()?;
    let mut lines = front.lines();
    lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}

/// Whether the page was made of lines of the session.
pub(crate) fn is_page_of(text: &str, session: &SessionId) -> bool {
    session_of(text).as_ref() == Some(session)
}

/// The session that the page was made of; none if it was written by hand.
pub(super) fn session_of(text: &str) -> Option<SessionId> {
    serde_json::from_str(front_matter(text, "session")?).ok()
}

/// When the page was made.
pub(super) fn created_at(text: &str) -> Option<Time> {
    front_matter(text, "created_at")?.trim().parse().ok()
}
