//! Several who write at once, and a person among them.

use std::sync::Mutex;

use async_trait::async_trait;
use mnemon_core::files::{File, FilesError, Listed, Stamp};
use mnemon_engine::agentfiles::ContextChange;

use super::*;

/// Somebody who edits a file right before each of our first writes to it.
struct Busy {
    files: Arc<FilesInRam>,
    edits: Mutex<Vec<(&'static str, &'static str)>>,
}

#[async_trait]
impl Files for Busy {
    async fn read(&self, path: &str) -> Result<Option<File>, FilesError> {
        self.files.read(path).await
    }
    async fn write(
        &self,
        path: &str,
        bytes: &[u8],
        since: Option<&Stamp>,
    ) -> Result<Stamp, FilesError> {
        let edit = match path.ends_with("context.md") || path.ends_with("decisions.md") {
            true => self.edits.lock().unwrap().pop(),
            false => None,
        };
        if let (Some((old, new)), Some(file)) = (edit, self.files.read(path).await?) {
            let text = String::from_utf8(file.bytes).unwrap().replace(old, new);
            self.files
                .write(path, text.as_bytes(), Some(&file.stamp))
                .await?;
        }
        self.files.write(path, bytes, since).await
    }
    async fn remove(&self, path: &str, since: &Stamp) -> Result<(), FilesError> {
        self.files.remove(path, since).await
    }
    async fn list(&self, folder: &str) -> Result<Vec<Listed>, FilesError> {
        self.files.list(folder).await
    }
    async fn changed(&self, folder: &str, known: &[Listed]) -> Result<Vec<String>, FilesError> {
        self.files.changed(folder, known).await
    }
}

fn busy(desk: &Desk, edits: &[(&'static str, &'static str)]) -> AgentFiles {
    let files = Busy {
        files: desk.files.clone(),
        edits: Mutex::new(edits.to_vec()),
    };
    AgentFiles::new(Arc::new(files), ROOT).unwrap()
}

#[test]
fn a_change_is_made_again_on_what_a_person_wrote_meanwhile() {
    let desk = Desk::with_samples();
    let agents = busy(
        &desk,
        &[("50ms", "70ms"), ("All tests green", "Two tests red")],
    );
    let change = ContextChange {
        notes: vec!["mine".to_owned()],
        ..ContextChange::default()
    };
    wait(agents.update_context(&ctx(), "coder", &change)).unwrap();
    let text = desk.get(&format!("{MEMORY}/context.md"));
    for words in ["70ms", "Two tests red", "- mine"] {
        assert!(text.contains(words), "{words}");
    }
    let agents = busy(&desk, &[("pgx driver", "another driver")]);
    wait(agents.decide(&ctx(), "coder", &decision("x"))).unwrap();
    let text = desk.get(&format!("{MEMORY}/decisions.md"));
    assert!(text.contains("another driver") && text.contains("2026-01-02: x"));
}

#[test]
fn a_rewritten_context_is_merged_and_a_true_clash_keeps_both() {
    let desk = Desk::with_samples();
    let path = format!("{MEMORY}/context.md");
    let mine = CONTEXT
        .replace("All tests green", "my words")
        .replace("token bucket", "leaky bucket");
    desk.put(
        &path,
        &CONTEXT.replace("Update API documentation", "A person's step"),
    );
    let clashes = wait(desk.agents.rewrite_context(&ctx(), "coder", &mine, CONTEXT)).unwrap();
    assert!(clashes.is_empty(), "{clashes:?}");
    let text = desk.get(&path);
    for words in ["my words", "leaky bucket", "A person's step", "2026-01-02"] {
        assert!(text.contains(words), "{words}");
    }
    desk.put(
        &path,
        &CONTEXT.replace("All tests green", "a person's words"),
    );
    let clashes = wait(desk.agents.rewrite_context(&ctx(), "coder", &mine, CONTEXT)).unwrap();
    assert_eq!(clashes.len(), 1);
    let text = desk.get(&path);
    assert!(
        text.contains("a person's words")
            && text.contains("my words")
            && text.contains("<<<<<<< in the file"),
        "{text}"
    );
    let told = wait(desk.agents.activate("coder", None)).unwrap();
    assert_eq!(told.notices.len(), 1);
    assert!(
        wait(desk.agents.lint(&ctx(), "coder"))
            .unwrap()
            .iter()
            .any(|warning| warning.is_error())
    );
    assert!(wait(desk.agents.rewrite_context(&ctx(), "coder", " ", CONTEXT)).is_err());
}

#[test]
fn an_end_merges_with_what_a_person_wrote_meanwhile() {
    let desk = Desk::with_samples();
    let agents = busy(&desk, &[("50ms", "70ms")]);
    let end = mnemon_engine::agentfiles::SessionEnd {
        context: ContextChange {
            notes: vec!["mine".to_owned()],
            ..ContextChange::default()
        },
        decisions: vec![decision("y")],
        ..Default::default()
    };
    let ended = wait(agents.end(&ctx(), "coder", &end)).unwrap();
    assert!(ended.clashes.is_empty());
    let text = desk.get(&format!("{MEMORY}/context.md"));
    assert!(text.contains("70ms") && text.contains("- mine"));
}
