//! What holds a team up, and who must hear of it.

use mnemon_core::markdown::{Document, Entry};
use mnemon_core::{Ctx, Invalid, Time};
use serde::{Deserialize, Serialize};

use super::minute;
use crate::agentfiles::AgentFiles;
use crate::agentfiles::agent::append;
use crate::agentfiles::names::check_line;
use crate::agentfiles::writing::{BLOCKERS, Printer, empty_log, english};
use crate::records::Error;

/// Something that holds a team up.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Blocker {
    pub title: String,
    pub by: String,
    /// What cannot go on.
    pub blocking: String,
    pub owner: Option<String>,
}

/// A blocker as it stands in the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockerInfo {
    /// `BLOCKER-001`.
    pub id: String,
    pub title: String,
    pub owner: String,
    /// How long it has been there, if the file says since when.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub minutes: Option<i64>,
    /// Who must hear of it by now.
    pub escalation: String,
}

const HOUR: i64 = 60;

/// More than an hour: the lead; four hours: the user; a day: stop.
fn escalation(minutes: Option<i64>) -> &'static str {
    match minutes.unwrap_or(0) {
        minutes if minutes > 24 * HOUR => "stop the work",
        minutes if minutes > 4 * HOUR => "tell the user",
        minutes if minutes > HOUR => "tell the lead",
        _ => "none",
    }
}

fn number(entry: &Entry) -> Option<u32> {
    let title = entry.title.trim_start_matches("[RESOLVED]").trim();
    let digits = title.strip_prefix("BLOCKER-")?;
    let end = digits
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(digits.len());
    digits.get(..end)?.parse().ok()
}

fn is_resolved(document: &Document, entry: &Entry) -> bool {
    let status = document
        .field(&entry.body, "Status")
        .map(|field| field.text.to_lowercase());
    entry.title.contains("[RESOLVED]") || status.is_some_and(|status| status.contains("resolved"))
}

/// The blockers that are still there, with how long they have been.
pub(super) fn open(document: &Document, now: Time) -> Vec<BlockerInfo> {
    let entries = document.entries();
    let open = entries.iter().filter(|entry| !is_resolved(document, entry));
    open.filter_map(|entry| {
        let id = format!("BLOCKER-{:03}", number(entry)?);
        let title = entry
            .title
            .split_once(':')
            .map_or("", |(_, title)| title.trim());
        let field = |name: &str| document.field(&entry.body, name).map(|field| field.text);
        let at = field("Identified at").and_then(|at| {
            at.get(..16)
                .map(|at| format!("{}:00Z", at.replace(' ', "T")))
        });
        let at = at.and_then(|at| at.parse::<Time>().ok());
        let minutes = at.map(|at| (now.millis() - at.millis()).max(0) / 60_000);
        Some(BlockerInfo {
            id,
            title: title.to_owned(),
            owner: field("Owner").unwrap_or_default(),
            minutes,
            escalation: escalation(minutes).to_owned(),
        })
    })
    .collect()
}

impl AgentFiles {
    /// Says what holds the team up; the blocker gets the next number.
    pub async fn block(
        &self,
        ctx: &Ctx,
        team: &str,
        blocker: &Blocker,
    ) -> Result<BlockerInfo, Error> {
        check_line("title", &blocker.title)?;
        check_line("by", &blocker.by)?;
        let blocker = self.screened(ctx, "blocker", blocker)?;
        let team = self.team(team).await?;
        let path = team.file("blockers");
        let empty = empty_log(BLOCKERS, self.language);
        self.change(&path, &empty, |document| {
            let highest = document.entries().iter().filter_map(number).max();
            let id = format!("BLOCKER-{:03}", highest.unwrap_or(0).saturating_add(1));
            let mut entry = Printer::heading("title", &blocker.title, &format!("{id}: "))?;
            entry.value(english("Identified by"), "by", Some(&blocker.by))?;
            entry.value(english("Identified at"), "at", Some(&minute(ctx.now)))?;
            entry.block(english("Blocking"), &blocker.blocking);
            entry.value(
                english("Owner"),
                "owner",
                Some(blocker.owner.as_deref().unwrap_or("nobody yet")),
            )?;
            entry.value(english("Status"), "status", Some("🔴 Active"))?;
            append(&path, document, &entry.finish("blocker")?)?;
            Ok(BlockerInfo {
                id,
                title: blocker.title.trim().to_owned(),
                owner: blocker
                    .owner
                    .clone()
                    .unwrap_or_else(|| "nobody yet".to_owned()),
                minutes: Some(0),
                escalation: "none".to_owned(),
            })
        })
        .await
    }

    /// Says that a blocker is gone, and how.
    pub async fn unblock(
        &self,
        ctx: &Ctx,
        team: &str,
        id: &str,
        resolution: &str,
    ) -> Result<String, Error> {
        check_line("resolution", resolution)?;
        let resolution = self.screened(ctx, "resolution", &resolution.to_owned())?;
        let team = self.team(team).await?;
        let path = team.file("blockers");
        if self.read(&path).await?.is_none() {
            return Err(Error::NotThere(format!("{} has no blockers", team.name)));
        }
        let wanted: Option<u32> = id
            .trim()
            .to_uppercase()
            .trim_start_matches("BLOCKER-")
            .parse()
            .ok();
        let wanted = wanted
            .ok_or_else(|| Invalid::new("id", "is not a blocker; write it like BLOCKER-001"))?;
        self.change(&path, "", |document| {
            let entries = document.entries();
            let open = entries
                .iter()
                .find(|entry| number(entry) == Some(wanted) && !is_resolved(document, entry));
            let Some(entry) = open else {
                return Err(Error::NotThere(format!(
                    "there is no open BLOCKER-{wanted:03} in {path}"
                )));
            };
            let end = match document.field(&entry.body, "Status") {
                Some(field) => {
                    document.set_field(&field, "✅ Resolved");
                    field.value.start + "✅ Resolved".len()
                }
                None => entry.body.start,
            };
            document.replace(
                end..end,
                &format!("\n\n**Resolution**: {}", resolution.trim()),
            );
            let heading = document
                .slice(&(entry.span.start..entry.body.start))
                .trim_end()
                .len();
            let at = entry.span.start + heading;
            document.replace(at..at, " [RESOLVED]");
            Ok(format!("BLOCKER-{wanted:03}"))
        })
        .await
    }
}
