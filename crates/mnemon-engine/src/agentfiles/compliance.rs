//! Whether a folder of agents keeps what the document requires. Every requirement is tried out on
//! a rehearsal: the files are read, and what would be written stays in memory.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use mnemon_core::Ctx;
use mnemon_core::files::{File, Files, FilesError, Listed, Stamp};
use mnemon_core::markdown::{Day, Document};
use serde::Serialize;

use super::{AgentFiles, Decision, Handoff, Issue, Learning, SessionEnd, SessionLog, TeamInfo};
use crate::Error;

/// A requirement, and whether it is met.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Requirement {
    pub id: &'static str,
    pub what: &'static str,
    pub pass: bool,
    /// Why it is not met, or for which agent or team it was tried.
    pub note: String,
}

/// Reads through; keeps what is written to itself.
struct Rehearsal {
    below: Arc<dyn Files>,
    written: Mutex<BTreeMap<String, Option<Vec<u8>>>>,
}

impl Rehearsal {
    fn own(&self, path: &str) -> Option<Option<Vec<u8>>> {
        let written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        written.get(path).cloned()
    }

    fn keep(&self, path: &str, bytes: Option<Vec<u8>>) {
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        written.insert(path.to_owned(), bytes);
    }

    fn stamp(bytes: &[u8]) -> Stamp {
        Stamp {
            digest: blake3::hash(bytes).to_hex().to_string(),
            modified: mnemon_core::Time::EPOCH,
        }
    }

    async fn expect(&self, path: &str, stamp: Option<&Stamp>) -> Result<(), FilesError> {
        let there = self.read(path).await?.map(|file| file.stamp.digest);
        match there.as_ref() == stamp.map(|stamp| &stamp.digest) {
            true => Ok(()),
            false => Err(FilesError::Conflict {
                path: path.to_owned(),
            }),
        }
    }
}

#[async_trait]
impl Files for Rehearsal {
    async fn read(&self, path: &str) -> Result<Option<File>, FilesError> {
        let bytes = match self.own(path) {
            Some(own) => own,
            None => self.below.read(path).await?.map(|file| file.bytes),
        };
        Ok(bytes.map(|bytes| File {
            stamp: Self::stamp(&bytes),
            bytes,
        }))
    }

    async fn write(
        &self,
        path: &str,
        bytes: &[u8],
        unchanged_since: Option<&Stamp>,
    ) -> Result<Stamp, FilesError> {
        self.expect(path, unchanged_since).await?;
        self.keep(path, Some(bytes.to_vec()));
        Ok(Self::stamp(bytes))
    }

    async fn remove(&self, path: &str, unchanged_since: &Stamp) -> Result<(), FilesError> {
        self.expect(path, Some(unchanged_since)).await?;
        self.keep(path, None);
        Ok(())
    }

    async fn list(&self, folder: &str) -> Result<Vec<Listed>, FilesError> {
        self.below.list(folder).await
    }

    async fn changed(&self, folder: &str, known: &[Listed]) -> Result<Vec<String>, FilesError> {
        self.below.changed(folder, known).await
    }
}

struct Report(Vec<Requirement>);

impl Report {
    fn add(&mut self, id: &'static str, what: &'static str, tried: Result<String, String>) {
        let pass = tried.is_ok();
        let (Ok(note) | Err(note)) = tried;
        self.0.push(Requirement {
            id,
            what,
            pass,
            note,
        });
    }
}

fn said<T>(result: &Result<T, Error>) -> Result<(), String> {
    result.as_ref().map(|_| ()).map_err(ToString::to_string)
}

fn holds(is: bool, why: &str) -> Result<(), String> {
    if is { Ok(()) } else { Err(why.to_owned()) }
}

const DECIDED: &str = "A rehearsed decision";
const LEARNT: &str = "A rehearsed learning";

/// The end of a session in which a little of everything happened.
fn rehearsed() -> SessionEnd {
    SessionEnd {
        context: super::ContextChange {
            notes: vec!["A rehearsed note".to_owned()],
            ..Default::default()
        },
        decisions: vec![Decision {
            title: DECIDED.to_owned(),
            decision: "It works".to_owned(),
            ..Decision::default()
        }],
        learnings: vec![Learning {
            title: LEARNT.to_owned(),
            pattern: "It works".to_owned(),
            ..Learning::default()
        }],
        archive: Some(SessionLog {
            summary: "A rehearsal".to_owned(),
            tasks: vec!["Tried it".to_owned()],
            issues: vec![Issue {
                title: "None".to_owned(),
                problem: "None".to_owned(),
                solution: "None".to_owned(),
            }],
            ..SessionLog::default()
        }),
    }
}

impl AgentFiles {
    /// Tries each requirement on every agent and every team; nothing is written.
    pub async fn compliance(&self, ctx: &Ctx) -> Result<Vec<Requirement>, Error> {
        let rehearsal = Rehearsal {
            below: self.files.clone(),
            written: Mutex::default(),
        };
        let tried = Self {
            files: Arc::new(rehearsal),
            ..self.clone()
        };
        let mut report = Report(Vec::new());
        let agents: Vec<String> = self
            .list()
            .await?
            .into_iter()
            .map(|agent| agent.name)
            .collect();
        if agents.is_empty() {
            return Err(Error::NotThere(format!(
                "there are no agents below {}",
                self.agents()
            )));
        }
        tried.loading(&mut report, &agents).await;
        tried.saving(ctx, &mut report, &agents).await;
        tried.teamwork(ctx, &mut report).await;
        // Level 2 first, whatever was tried together.
        report.0.sort_by_key(|row| !row.id.starts_with('M'));
        Ok(report.0)
    }

    async fn loading(&self, report: &mut Report, agents: &[String]) {
        let (mut context, mut decisions, mut inject) = (Ok(()), Ok(()), Ok(()));
        for name in agents {
            let activation = self.activate(name, None).await;
            let text = self
                .show(name, "context.md")
                .await
                .ok()
                .flatten()
                .unwrap_or_default();
            let log = self
                .show(name, "decisions.md")
                .await
                .ok()
                .flatten()
                .unwrap_or_default();
            let prompt = activation
                .as_ref()
                .map(|activation| activation.prompt.clone())
                .unwrap_or_default();
            let about = |why: String| format!("{name}: {why}");
            let loads = said(&activation).and_then(|()| {
                holds(
                    prompt.contains(text.trim_end()),
                    "the context is not in the prompt",
                )
            });
            context = context.and(loads.clone().map_err(about));
            let log = Document::parse(log);
            let recent = log.recent(mnemon_core::limits::RECENT_DECISIONS);
            let all = recent
                .iter()
                .all(|entry| prompt.contains(log.entry_text(entry)));
            let told = said(&activation)
                .and_then(|()| holds(all, "a recent decision is not in the prompt"));
            decisions = decisions.and(told.map_err(about));
            let memory = text.trim().is_empty() && recent.is_empty();
            let first = memory || prompt.starts_with("## Agent Memory | Memory của Agent");
            inject = inject.and(
                said(&activation)
                    .and_then(|()| holds(first, "the memory does not come first"))
                    .map_err(about),
            );
        }
        let count = format!("{} agents", agents.len());
        report.add(
            "M2.1",
            "load context.md on activation",
            context.map(|()| count.clone()),
        );
        report.add(
            "M2.2",
            "load the last 10 decisions",
            decisions.map(|()| count.clone()),
        );
        report.add(
            "M2.3",
            "inject memory before the prompt",
            inject.map(|()| count),
        );
    }

    async fn saving(&self, ctx: &Ctx, report: &mut Report, agents: &[String]) {
        let end = rehearsed();
        let mut results: [Result<(), String>; 4] = std::array::from_fn(|_| Ok(()));
        for name in agents {
            let ended = self.end(ctx, name, &end).await;
            let day = Day::of(ctx.now);
            let session = format!("sessions/{day}.md");
            let wanted = [
                ("context.md", "A rehearsed note"),
                ("decisions.md", DECIDED),
                ("learnings.md", LEARNT),
                (session.as_str(), "A rehearsal"),
            ];
            for ((file, words), result) in wanted.into_iter().zip(results.iter_mut()) {
                let text = self
                    .show(name, file)
                    .await
                    .ok()
                    .flatten()
                    .unwrap_or_default();
                let kept = said(&ended).and_then(|()| {
                    holds(text.contains(words), &format!("{file} does not keep it"))
                });
                let before = std::mem::replace(result, Ok(()));
                *result = before.and(kept.map_err(|why| format!("{name}: {why}")));
            }
        }
        let [context, decisions, learnings, session] = results;
        let count = format!("{} agents", agents.len());
        report.add("M2.4", "save the context", context.map(|()| count.clone()));
        report.add(
            "M2.5",
            "append decisions",
            decisions.map(|()| count.clone()),
        );
        report.add(
            "M2.6",
            "append learnings",
            learnings.map(|()| count.clone()),
        );
        report.add(
            "S3.1",
            "archive a session to sessions/YYYY-MM-DD.md",
            session.map(|()| count),
        );
        self.beginning(ctx, report, &end).await;
    }

    /// What a new agent gets.
    async fn beginning(&self, ctx: &Ctx, report: &mut Report, end: &SessionEnd) {
        let fresh = self.end(ctx, "mnemon-rehearsal", end).await;
        report.add(
            "M2.7",
            "create files that are not there",
            said(&fresh).map(|()| "a new agent".to_owned()),
        );
        let told = self.activate("mnemon-rehearsal", None).await;
        let silent = told
            .as_ref()
            .is_ok_and(|told| !told.prompt.contains("Archived session"));
        report.add(
            "S3.2",
            "sessions are never loaded by themselves",
            holds(silent, "a session is in the prompt").map(|()| "a new agent".to_owned()),
        );
        let session = format!("sessions/{}.md", Day::of(ctx.now));
        let kept = self.show("mnemon-rehearsal", &session).await;
        let log = Document::parse(kept.ok().flatten().unwrap_or_default());
        let parts = ["Summary", "Tasks Completed", "Issues Encountered"];
        let whole = parts.iter().all(|part| log.section(part).is_some());
        report.add(
            "S3.3",
            "an archive has summary, tasks and issues",
            holds(whole, "a section is missing").map(|()| "a new agent".to_owned()),
        );
    }

    async fn teamwork(&self, ctx: &Ctx, report: &mut Report) {
        let teams = match self.teams().await {
            Ok(teams) => teams,
            Err(error) => {
                return report.add(
                    "T3.1",
                    "find teams and their members",
                    Err(error.to_string()),
                );
            }
        };
        for team in teams {
            self.one_team(ctx, report, &team).await;
        }
    }

    async fn one_team(&self, ctx: &Ctx, report: &mut Report, team: &TeamInfo) {
        let name = match team.folder.strip_prefix(&format!("{}/agents/", self.root)) {
            Some(rest) => format!(
                "{}/{}",
                rest.split('/').next().unwrap_or_default(),
                team.name
            ),
            None => team.name.clone(),
        };
        let note = |result: Result<(), String>| {
            result
                .map(|()| name.clone())
                .map_err(|why| format!("{name}: {why}"))
        };
        report.add(
            "T3.1",
            "find teams and their members",
            note(holds(!team.members.is_empty(), "it has no members")),
        );
        report.add(
            "T3.2",
            "recognise the lead",
            note(holds(
                team.lead.is_some(),
                "no member is the lead (is_lead: true, or a name that ends in -lead)",
            )),
        );
        let Some(member) = team.members.first() else {
            return;
        };
        let told = self.activate_member(&name, member).await;
        report.add(
            "T3.3",
            "activate a member with the team's memory",
            note(said(&told)),
        );
        let handoff = Handoff {
            from: member.clone(),
            to: member.clone(),
            task: "A rehearsed task".to_owned(),
            context: "A rehearsal".to_owned(),
            deliverable: "Nothing".to_owned(),
            ..Handoff::default()
        };
        let handed = self.hand_off(ctx, &name, &handoff).await;
        report.add("T3.4", "hand off and verify", note(said(&handed)));
        let nobody = Handoff {
            to: "mnemon-nobody".to_owned(),
            ..handoff
        };
        let refused = self.hand_off(ctx, &name, &nobody).await.is_err();
        report.add(
            "T3.5",
            "refuse a handoff to nobody",
            note(holds(refused, "it was taken")),
        );
        let status = self.team_status(ctx, &name).await;
        report.add("T3.6", "track blockers and handoffs", note(said(&status)));
    }
}
