//! A clock that is far ahead of the newest write, at the command line.

use std::path::Path;

use mnemon_core::{Batch, Ctx, Op, Policy, Record, Right, Tenant, Time};

use crate::sandbox::Sandbox;

/// A store that was last written to years ago, with a note that expired the day after.
fn unused_for_years(folder: &Path, url: &str) {
    let then = Time::from_millis(1_500_000_000_000).unwrap();
    let ctx = Ctx::new(Tenant::default(), "test", then);
    let mut brief = Record::note("brief".parse().unwrap(), &ctx, "until tomorrow");
    brief.expires = Some(then.plus_days(1));
    let grant = Policy::default().check(&ctx, Right::Write).unwrap();
    let (scheme, path) = url.split_once(':').unwrap();
    let url = format!("{scheme}:{}", folder.join(path).display());
    let store = mnemon_adapters::open(&url).unwrap().backend.store;
    let put = store.apply(&grant, Batch::of(Op::put(brief)));
    mnemon_testkit::block_on(put).unwrap();
}

#[test]
fn a_clock_far_ahead_erases_only_what_it_is_allowed_to() {
    for url in ["sqlite:m.db", "jsonl:log"] {
        let sandbox = Sandbox::new().with("MNEMON_STORE", url);
        unused_for_years(sandbox.folder(), url);
        let expired = || sandbox.run(&["stats", "--json"]).json()["expired"].clone();
        let said = sandbox.run(&["upkeep"]).ok();
        assert!(said.contains("nothing was expired"), "{url}: {said}");
        assert!(said.contains("--accept-clock"), "{url}: {said}");
        let added = sandbox.run(&["add", "x"]);
        assert!(
            added.err.contains("nothing was expired"),
            "{url}: {added:?}"
        );
        assert_eq!(expired(), 1, "{url}");
        let cleaned = sandbox.run(&["note", "cleanup"]).ok();
        assert!(cleaned.contains("nothing was expired"), "{url}: {cleaned}");

        let done = sandbox.run(&["upkeep", "--accept-clock", "--json"]).json();
        assert_eq!(done["expired"], 1, "{url}");
        assert_eq!(expired(), 0, "{url}");
        let said = sandbox.run(&["upkeep"]).ok();
        assert!(!said.contains("ahead"), "{url}: {said}");
    }
}
