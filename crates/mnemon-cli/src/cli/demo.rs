//! `mnemon demo`

use mnemon_core::{Changes, Ctx, Fate, Id, Invalid, Namespace, Owner, Receipt};
use mnemon_engine::{Draft, Memory};

use super::door::Door;
use super::{history, list, text};
use crate::config::Config;
use crate::{Error, api, wiring};

/// Show the main features step by step, in a temporary folder
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  mnemon demo")]
pub(super) struct Args {}

pub(super) async fn run(_args: Args, door: &mut Door) -> Result<(), Error> {
    if door.out.json {
        let what = "is not available for the demo, which prints text; leave it out";
        return Err(Invalid::new("--json", what).into());
    }
    let folder = tempfile::tempdir().map_err(|source| Error::File {
        path: std::env::temp_dir(),
        verb: "used",
        source,
    })?;
    let path = folder.path().join("demo.db");
    let config = Config {
        actor: door.config.actor.clone(),
        ..Config::for_store(format!("sqlite:{}", path.display()))
    };
    let memory = wiring::open(&config)?.memory;
    let mut demo = Demo {
        door,
        config,
        memory,
        step: 0,
    };
    demo.say(&format!("A new memory in {}.", path.display()))?;
    demo.play().await?;
    let Demo { memory, door, .. } = demo;
    drop(memory);
    folder.close().map_err(|source| Error::File {
        path,
        verb: "removed",
        source,
    })?;
    door.out.line("")?;
    door.out
        .line("The temporary folder is gone. Yours to try: mnemon add \"Ann prefers tea\"")
}

struct Demo<'a> {
    door: &'a mut Door,
    config: Config,
    memory: Memory,
    step: usize,
}

impl Demo<'_> {
    fn say(&mut self, what: &str) -> Result<(), Error> {
        if self.step > 0 {
            self.door.out.line("")?;
        }
        self.step += 1;
        self.door.out.line(format!("{}. {what}", self.step))
    }

    /// Each step is a commit of its own, as if it were a command.
    fn ctx(&self) -> Result<Ctx, Error> {
        wiring::stamp(&self.config)
    }

    async fn play(&mut self) -> Result<(), Error> {
        let ids = self.remember().await?;
        self.search().await?;
        self.context().await?;
        self.look().await?;
        let [first, ..] = ids.as_slice() else {
            return Err(Error::Internal("nothing was stored".to_owned()));
        };
        let summary = self.derive(first).await?;
        self.change(first).await?;
        self.forget(first, &summary).await?;
        self.undo().await?;
        self.retry().await?;
        self.look_back(first).await?;
        self.examine()
    }

    async fn remember(&mut self) -> Result<Vec<Id>, Error> {
        self.say("Four records are stored in one commit: all of them or none.")?;
        let ann = Owner::of(Some("ann"), None);
        let drafts = [
            ("Ann prefers green tea in the afternoon", "drinks", 0.8),
            ("Họp nhóm lúc chín giờ sáng thứ Hai", "meeting", 0.5),
            ("東京の会議は十時に始まります", "meeting", 0.5),
            (
                "The deploy key rotates on the first of the month",
                "ops",
                0.9,
            ),
        ]
        .map(|(content, tag, importance)| Draft {
            owner: ann.clone(),
            tags: vec![tag.to_owned()],
            importance: Some(importance),
            ..Draft::note(content)
        });
        let receipt = self.add(drafts.to_vec(), None).await?;
        let ids: Vec<Id> = receipt.items.into_iter().map(|item| item.id).collect();
        for id in &ids {
            self.door.out.line(format!("   stored {id}"))?;
        }
        Ok(ids)
    }

    async fn add(&self, drafts: Vec<Draft>, key: Option<&str>) -> Result<Receipt, Error> {
        let records = self.memory.records();
        Ok(records.add(&self.ctx()?, drafts, key).await?)
    }

    async fn search(&mut self) -> Result<(), Error> {
        self.say("A search finds them by words and by meaning.")?;
        for query in ["what does Ann drink?", "when do keys change?", "東京"] {
            let request = api::search::Request {
                query: query.to_owned(),
                limit: 1,
                ..api::search::Request::default()
            };
            let found = api::search::run(&self.memory, &self.ctx()?, request).await?;
            let hit = found.hits.first().map(|hit| hit.record.content.as_str());
            let hit = text::one_line(hit.unwrap_or("nothing"));
            self.door.out.line(format!("   {query} → {hit}"))?;
        }
        Ok(())
    }

    async fn context(&mut self) -> Result<(), Error> {
        self.say("The context for a prompt is built within a token budget.")?;
        let request = serde_json::json!({
            "user": "ann", "session": "demo", "agent": "cli",
            "query": "what does Ann drink?", "budget": 120,
        });
        let request = serde_json::from_value(request).map_err(|error| {
            Error::Internal(format!(
                "the demo sends an invalid request: \
                {error}"
            ))
        })?;
        let found = api::context::run(&self.memory, &self.ctx()?, request).await?;
        for line in found.context.compiled.text.lines() {
            let line = format!("   {}", text::clean(line));
            self.door.out.line(line.trim_end())?;
        }
        Ok(())
    }

    async fn look(&mut self) -> Result<(), Error> {
        self.say("All records are listed, newest first.")?;
        let request = api::list::Request::default();
        let page = api::list::run(&self.memory, &self.ctx()?, request).await?;
        list::table(&page.records, self.door)
    }

    async fn derive(&mut self, source: &Id) -> Result<Id, Error> {
        self.say("A short-term note is derived from the first record, and keeps a link to it.")?;
        let draft = Draft {
            namespace: Some(Namespace::ShortTerm),
            derived_from: vec![source.clone()],
            ..Draft::note("Buy green tea for Ann's visit")
        };
        let receipt = self.add(vec![draft], None).await?;
        let Some(item) = receipt.items.into_iter().next() else {
            return Err(Error::Internal("nothing was stored".to_owned()));
        };
        self.door
            .out
            .line(format!("   stored {} (kept for 14 days)", item.id))?;
        Ok(item.id)
    }

    async fn change(&mut self, id: &Id) -> Result<(), Error> {
        self.say("Ann changes her mind; the old version stays in the history.")?;
        let records = self.memory.records();
        let Some(mut record) = records.find(&self.ctx()?, id).await? else {
            return Err(Error::Missing(vec![id.clone()]));
        };
        record.content = "Ann prefers oolong tea in the afternoon".to_owned();
        let receipt = records.update(&self.ctx()?, record).await?;
        self.changes(receipt.commit).await
    }

    async fn changes(&mut self, commit: Option<u64>) -> Result<(), Error> {
        let asked = Changes {
            commit,
            ..Changes::all_of_tenant(api::history::LIMIT)
        };
        let page = api::history::run(&self.memory, &self.ctx()?, asked).await?;
        history::commits(&page.changes, self.door)
    }

    async fn forget(&mut self, id: &Id, derived: &Id) -> Result<(), Error> {
        self.say("The record is deleted, and with it the note derived from it.")?;
        let request = api::forget::Request {
            ids: vec![id.clone()],
            ..api::forget::Request::default()
        };
        let done = api::forget::run(&self.memory, &self.ctx()?, request).await?;
        self.door.out.line(format!("   forgotten {id}"))?;
        if done.receipt.cascaded.contains(derived) {
            self.door.out.line(format!("   forgotten {derived}"))?;
        }
        Ok(())
    }

    async fn undo(&mut self) -> Result<(), Error> {
        self.say("That was a mistake: undo restores both.")?;
        let request = api::undo::Request::default();
        let done = api::undo::run(&self.memory, &self.ctx()?, request).await?;
        history::commits(&done.changes, self.door)
    }

    async fn retry(&mut self) -> Result<(), Error> {
        self.say("The same note is sent twice with one key; it is stored once.")?;
        for attempt in ["first", "second"] {
            let draft = Draft::note("Bob is allergic to nuts");
            let receipt = self.add(vec![draft], Some("demo-retry")).await?;
            for item in receipt.items {
                if let Fate::Stored { .. } = item.fate {
                    self.door
                        .out
                        .line(format!("   the {attempt} answer: stored {}", item.id))?;
                }
            }
        }
        Ok(())
    }

    async fn look_back(&mut self, id: &Id) -> Result<(), Error> {
        self.say("The history of the first record.")?;
        let asked = Changes {
            id: Some(id.clone()),
            ..Changes::all_of_tenant(api::history::LIMIT)
        };
        let page = api::history::run(&self.memory, &self.ctx()?, asked).await?;
        history::commits(&page.changes, self.door)
    }

    fn examine(&mut self) -> Result<(), Error> {
        self.say("The store is checked for damage.")?;
        let found = api::doctor::run(&self.config, false)?;
        for finding in &found.examination.findings {
            let state = finding.state();
            let detail = text::one_line(&finding.detail);
            self.door
                .out
                .line(format!("   {} {state}: {detail}", finding.check))?;
        }
        Ok(())
    }
}
