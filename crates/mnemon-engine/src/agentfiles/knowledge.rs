//! Knowledge beside an agent: core files always, topic files when the task speaks of them.

use std::collections::BTreeSet;

use serde::Deserialize;
use std::collections::BTreeMap;

use super::AgentFiles;
use super::agent::BETWEEN;
use crate::memory::payload::estimate;
use crate::records::Error;

/// How many tokens of knowledge an agent is told.
const BUDGET: u64 = 6000;
/// The file that says which knowledge belongs to which words.
const INDEX: &str = "knowledge-index.json";

/// What was chosen.
#[derive(Debug, Default)]
pub(super) struct Knowledge {
    /// Name and text.
    pub(super) files: Vec<(String, String)>,
    pub(super) notices: Vec<String>,
}

impl Knowledge {
    pub(super) fn text(&self) -> String {
        let files = self
            .files
            .iter()
            .map(|(name, text)| format!("## {name}\n\n{}", text.trim()));
        files.collect::<Vec<_>>().join("\n\n")
    }
}

/// `knowledge-index.json`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Index {
    core: Vec<String>,
    entries: Vec<Topic>,
    /// A word and the words it stands for.
    aliases: BTreeMap<String, Vec<String>>,
    /// Words of which each brings all the others.
    topics: BTreeMap<String, Vec<String>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Topic {
    file: String,
    keywords: Vec<String>,
    topics: Vec<String>,
    /// 1 is the most important.
    priority: u32,
}

impl Index {
    /// The words of a task and what they stand for, in lower case: `SIGINT` is found, too.
    fn words(&self, task: &str) -> BTreeSet<String> {
        let lower = task.to_lowercase();
        let words = lower.split(|c: char| !c.is_alphanumeric() && c != '_');
        let words = words.filter(|word| {
            word.chars().count() >= 3 && !word.starts_with(|c: char| c.is_ascii_digit() || c == '_')
        });
        let mut words: BTreeSet<String> = words.map(str::to_owned).collect();
        for (alias, means) in &self.aliases {
            if words.contains(&alias.to_lowercase()) {
                words.extend(means.iter().map(|word| word.to_lowercase()));
            }
        }
        for (topic, members) in &self.topics {
            let members: Vec<String> = members
                .iter()
                .chain([topic])
                .map(|word| word.to_lowercase())
                .collect();
            if members.iter().any(|word| words.contains(word)) {
                words.extend(members);
            }
        }
        words
    }

    fn chosen(&self, task: &str) -> Vec<&Topic> {
        let words = self.words(task);
        let speaks_of = |names: &[String]| {
            names
                .iter()
                .any(|name| words.contains(&name.to_lowercase()))
        };
        let entries = self.entries.iter();
        let mut chosen: Vec<&Topic> = entries
            .filter(|entry| speaks_of(&entry.keywords) || speaks_of(&entry.topics))
            .collect();
        chosen.sort_by_key(|entry| entry.priority);
        chosen
    }
}

impl AgentFiles {
    /// The knowledge of an agent for a task, within the budget; core files first.
    pub(super) async fn knowledge(&self, agent: &str, task: &str) -> Result<Knowledge, Error> {
        let folder = format!("{agent}/knowledge");
        let path = format!("{folder}/{INDEX}");
        let mut found = Knowledge::default();
        let index = match self.read(&path).await? {
            Some(read) => {
                serde_json::from_str::<Index>(&read.text).map_err(|error| Error::BadFile {
                    path,
                    what: format!("is not an index of knowledge: {error}"),
                })?
            }
            None => self.core_by_name(&folder).await?,
        };
        let topics = index
            .chosen(task)
            .into_iter()
            .map(|entry| entry.file.as_str());
        let mut left = BUDGET;
        let mut seen = BTreeSet::new();
        for file in index.core.iter().map(String::as_str).chain(topics) {
            if !seen.insert(file.to_owned()) {
                continue;
            }
            let Some(read) = self.read(&format!("{folder}/{file}")).await? else {
                found.notices.push(format!(
                    "knowledge/{file} is in the index, but there is no such file"
                ));
                continue;
            };
            let tokens = estimate(&read.text) + estimate(BETWEEN);
            if tokens > left {
                found
                    .notices
                    .push(format!("knowledge/{file} has no room in {BUDGET} tokens"));
                continue;
            }
            left -= tokens;
            found.files.push((file.to_owned(), read.text));
        }
        Ok(found)
    }

    /// Without an index: files whose names begin with two digits (`01-basics.md`) or `core` are core.
    async fn core_by_name(&self, folder: &str) -> Result<Index, Error> {
        let listed = self.files.list(folder).await?;
        let names = listed
            .iter()
            .filter_map(|file| file.path.strip_prefix(folder)?.strip_prefix('/'));
        let is_core = |name: &&str| {
            let numbered = name.bytes().take(2).all(|byte| byte.is_ascii_digit());
            name.ends_with(".md") && !name.contains('/') && (numbered || name.starts_with("core"))
        };
        Ok(Index {
            core: names.filter(is_core).map(str::to_owned).collect(),
            ..Index::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_chooses_by_words_aliases_and_topics() {
        let index: Index = serde_json::from_str(
            r#"{"core": ["a.md", "b.md"],
                "entries": [
                  {"file": "signals.md", "keywords": ["SIGINT"], "priority": 2},
                  {"file": "concurrency.md", "keywords": ["race", "goroutine"], "priority": 1},
                  {"file": "http.md", "keywords": ["http"], "topics": ["network"], "priority": 1}],
                "aliases": {"deadlock": ["race"]},
                "topics": {"network": ["socket", "tcp"]}}"#,
        )
        .unwrap();
        let files = |task: &str| -> Vec<&str> {
            index
                .chosen(task)
                .iter()
                .map(|entry| entry.file.as_str())
                .collect()
        };
        assert_eq!(files("Fix race condition in goroutine"), ["concurrency.md"]);
        assert_eq!(
            files("a DEADLOCK on sigint"),
            ["concurrency.md", "signals.md"]
        );
        assert_eq!(files("the tcp layer"), ["http.md"]);
        assert!(files("nothing of the sort").is_empty());
    }
}
