//! Agents and teams whose memory is Markdown.
//!
//! The requirements of the format and where they are tested: activation with context, recent
//! decisions and memory before the prompt (M2.1 to M2.3) and no sessions (S3.2) in `activating`;
//! context, decisions, learnings, new files and the archive (M2.4 to M2.7, S3.1, S3.3) in
//! `ending`; members, lead, activation, handoffs and blockers (T3.1 to T3.6) in `teams`.

mod activating;
mod addresses;
mod bad_input;
mod ending;
mod indexing;
mod sharing;
mod teams;

use std::sync::Arc;

use mnemon_core::files::Files;
use mnemon_core::{Ctx, Tenant};
use mnemon_engine::agentfiles::{AgentFiles, Decision, Learning, ROOT};
use mnemon_testkit::fakes::FilesInRam;

use super::wait;

const CONTEXT: &str = include_str!("../../../mnemon-core/src/markdown/samples/context.md");
const DECISIONS: &str = include_str!("../../../mnemon-core/src/markdown/samples/decisions.md");
const LEARNINGS: &str = include_str!("../../../mnemon-core/src/markdown/samples/learnings.md");
const SESSION: &str = include_str!("../../../mnemon-core/src/markdown/samples/session.md");

const MEMORY: &str = ".microai/agents/coder/memory";

/// The second of January 2026, half past nine.
fn ctx() -> Ctx {
    Ctx::new(
        Tenant::default(),
        "test",
        "2026-01-02T09:30:00Z".parse().unwrap(),
    )
}

/// Files in memory, and agents over them.
struct Desk {
    files: Arc<FilesInRam>,
    agents: AgentFiles,
}

impl Desk {
    fn empty() -> Self {
        let files = Arc::new(FilesInRam::default());
        let agents = AgentFiles::new(files.clone(), ROOT).unwrap();
        Self { files, agents }
    }

    /// The agent `coder` with the files of the document.
    fn with_samples() -> Self {
        let desk = Self::empty();
        desk.put(
            ".microai/agents/coder/agent.md",
            "---\nname: coder\ndescription: Writes code\n---\n\nYou write code.\n",
        );
        for (file, text) in [
            ("context", CONTEXT),
            ("decisions", DECISIONS),
            ("learnings", LEARNINGS),
            ("sessions/2025-12-31", SESSION),
        ] {
            desk.put(&format!("{MEMORY}/{file}.md"), text);
        }
        desk
    }

    /// Writes a file as a person would.
    fn put(&self, path: &str, text: &str) {
        wait(async {
            let stamp = self.files.read(path).await.unwrap().map(|file| file.stamp);
            self.files
                .write(path, text.as_bytes(), stamp.as_ref())
                .await
                .unwrap();
        });
    }

    fn remove(&self, path: &str) {
        wait(async {
            let stamp = self.files.read(path).await.unwrap().unwrap().stamp;
            self.files.remove(path, &stamp).await.unwrap();
        });
    }

    fn get(&self, path: &str) -> String {
        let file = wait(self.files.read(path)).unwrap();
        String::from_utf8(file.unwrap_or_else(|| panic!("there is no {path}")).bytes).unwrap()
    }

    fn paths(&self) -> Vec<String> {
        let listed = wait(self.files.list("")).unwrap();
        listed.into_iter().map(|file| file.path).collect()
    }

    /// Everything there is, to be compared.
    fn all(&self) -> Vec<(String, String)> {
        self.paths()
            .into_iter()
            .map(|path| (path.clone(), self.get(&path)))
            .collect()
    }
}

fn decision(title: &str) -> Decision {
    Decision {
        title: title.to_owned(),
        context: "It had to be one or the other.".to_owned(),
        decision: format!("We take {title}."),
        reasons: vec!["It is simple".to_owned()],
        ..Decision::default()
    }
}

fn learning(title: &str) -> Learning {
    Learning {
        title: title.to_owned(),
        pattern: "Always so.".to_owned(),
        why: "It pays.".to_owned(),
        ..Learning::default()
    }
}

/// The lines that differ: gone ones with `-`, new ones with `+`.
fn diff(old: &str, new: &str) -> Vec<String> {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    // The longest common run of lines, the plain way: the files are small.
    let mut best = vec![vec![0; new.len() + 1]; old.len() + 1];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            best[i][j] = if old[i] == new[j] {
                best[i + 1][j + 1] + 1
            } else {
                best[i + 1][j].max(best[i][j + 1])
            };
        }
    }
    let (mut i, mut j, mut lines) = (0, 0, Vec::new());
    while i < old.len() || j < new.len() {
        if i < old.len() && j < new.len() && old[i] == new[j] {
            (i, j) = (i + 1, j + 1);
        } else if j == new.len() || (i < old.len() && best[i + 1][j] >= best[i][j + 1]) {
            lines.push(format!("-{}", old[i]));
            i += 1;
        } else {
            lines.push(format!("+{}", new[j]));
            j += 1;
        }
    }
    lines
}
