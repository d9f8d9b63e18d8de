//! The example runs, and tells the story that it should.

#[allow(dead_code, reason = "the example's main is for those who run it")]
#[path = "../../examples/planner.rs"]
mod example;

#[test]
fn the_planner_and_the_worker_play_to_the_end_on_every_store() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    for store in [
        "ram:".to_owned(),
        format!("sqlite:{}", folder.path().join("m.db").display()),
        format!("jsonl:{}", folder.path().join("lines").display()),
    ] {
        let lines = runtime.block_on(example::play(&store)).unwrap();
        assert_eq!(
            lines,
            [
                "planner hears: Build me a search agent",
                "  turns: 1",
                "  document: A search agent calls the index service over HTTP and ranks what it returns.",
                "  skill: build a search agent",
                "  profile: {\"name\":\"Ann\",\"style\":\"brief answers\"}",
                "worker runs create_repo: ok",
                "worker runs HttpRequestTool: timeout after 5 s",
                "successful traces so far: 0",
                "planner hears: Please try again",
                "  turns: 2",
                "  skill: build a search agent",
                "  profile: {\"name\":\"Ann\",\"style\":\"brief answers\"}",
                "  failed before: timeout after 5 s",
                "worker runs create_repo: ok",
                "worker runs HttpRequestTool: ok",
                "successful traces so far: 1",
                "the session is forgotten: 13 records gone, 3 left",
            ],
            "{store}"
        );
    }
}
