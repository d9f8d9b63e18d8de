use std::sync::Arc;

use futures::executor::block_on;
use mnemon_core::files::Files;
use mnemon_core::ram::Ram;
use mnemon_core::{Ids, Tenant, Time};
use mnemon_testkit::fakes::FilesInRam;

use super::*;

const PATH: &str = ".microai/agents/coder/memory/decisions.md";

/// Entries and books as they were made when a file was known by its path alone.
async fn index_of_an_earlier_version(ctx: &Ctx, records: &Records) {
    let entry = Draft {
        id: Some(fixed_id(
            "agent-file-entry",
            &[Some(PATH), Some("Old"), Some("1")],
        )),
        kind: Some(Kind::Decision),
        origin: Some(Origin::File),
        tags: vec![unnamed_tag(PATH)],
        ..Draft::note("of some other project")
    };
    let books = Draft {
        id: Some(fixed_id("agent-files", &[Some(".microai")])),
        kind: Some(Kind::State),
        body: Some(json!({ "files": { PATH: [1, 2] } })),
        ..Draft::note("which files below .microai are indexed")
    };
    let note = Draft::note("of the user");
    records
        .add(ctx, vec![entry, books, note], None)
        .await
        .unwrap();
}

#[test]
fn entries_of_earlier_versions_are_made_again_with_their_project() {
    let ctx = Ctx::new(Tenant::default(), "test", Time::EPOCH.plus_days(20_000));
    let memory = Memory::builder(Arc::new(Ram::new()), Ids::new(7)).build();
    let files = Arc::new(FilesInRam::default());
    let text = "# D\n\n## 2025-12-31: New\n\nof this project\n";
    let agents = AgentFiles::new(files.clone(), ".microai").unwrap();
    let agents = agents.project("/shop");
    let contents = || {
        let scan = Scan::new(Filter::all_of_tenant(), 100);
        let page = block_on(memory.records().list(&ctx, &scan)).unwrap();
        let mut texts: Vec<String> = page.records.into_iter().map(|r| r.content).collect();
        texts.sort();
        texts
    };
    block_on(async {
        index_of_an_earlier_version(&ctx, memory.records()).await;
        files.write(PATH, text.as_bytes(), None).await.unwrap();
        let done = agents.index(&ctx, &memory).await.unwrap();
        assert_eq!((done.written, done.removed), (1, 1));
        assert_eq!(
            agents.index(&ctx, &memory).await.unwrap(),
            Indexed::default()
        );
    });
    let texts = contents();
    assert_eq!(texts.len(), 3, "{texts:?}");
    assert!(texts[0].is_empty() && texts[2] == "of the user");
    assert!(texts[1].contains("of this project"), "{texts:?}");
}
