//! `mnemon demo`

use mnemon_core::{Changes, Ctx, Fate, Filter, Id, Invalid, Namespace, Owner, Receipt, Scan};
use mnemon_engine::{ContextQuery, Draft, Memory, MemoryQuery, Query};

use super::door::Door;
use super::{history, list, text};
use mnemon_operations::config::Config;
use mnemon_operations::{Error, api, wiring};

/// Show the main features step by step, in a temporary folder
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  mnemon demo")]
pub(super) struct Args {}

pub(super) async fn run(_args: Args, door: &mut Door) -> Result<(), Error> {
    if door.out.json {
        let what = "is not available for the demo, which prints text; leave it out";
        return Err(Invalid::new("--json", what).into());
    }
    let folder = tempfile::tempdir().map_err(Error::file("used", &std::env::temp_dir()))?;
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
    folder.close().map_err(Error::file("removed", &path))?;
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
        say!(self.door, "{}. {what}", self.step)
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
            say!(self.door, "   stored {id}")?;
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
            let search = Query::new(query, Filter::all_of_tenant());
            let hits = self.memory.search(&self.ctx()?, &search).await?;
            let hit = hits.first().map(|hit| hit.record.content.as_str());
            let hit = text::one_line(hit.unwrap_or("nothing"));
            say!(self.door, "   {query} → {hit}")?;
        }
        Ok(())
    }

    async fn context(&mut self) -> Result<(), Error> {
        self.say("The context for a prompt is built within a token budget.")?;
        let about = MemoryQuery {
            query: Some("what does Ann drink?".to_owned()),
            ..MemoryQuery::new("ann", "demo", "cli", &[])
        };
        let query = ContextQuery::new(about, 120);
        let found = api::context::run(&self.memory, &self.ctx()?, query, None).await?;
        for line in found.context.compiled.text.lines() {
            let line = format!("   {}", text::clean(line));
            self.door.out.line(line.trim_end())?;
        }
        Ok(())
    }

    async fn look(&mut self) -> Result<(), Error> {
        self.say("All records are listed, newest first.")?;
        let scan = Scan::new(Filter::all_of_tenant(), api::list::LIMIT);
        let page = api::list::run(&self.memory, &self.ctx()?, scan).await?;
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
        say!(self.door, "   stored {} (kept for 14 days)", item.id)?;
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
        let all = Changes::all_of_tenant(api::history::LIMIT);
        let commit = receipt.commit;
        self.changes(Changes { commit, ..all }).await
    }

    async fn changes(&mut self, asked: Changes) -> Result<(), Error> {
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
        say!(self.door, "   forgotten {id}")?;
        if done.receipt.cascaded.contains(derived) {
            say!(self.door, "   forgotten {derived}")?;
        }
        Ok(())
    }

    async fn undo(&mut self) -> Result<(), Error> {
        self.say("That was a mistake: undo restores both.")?;
        let done = api::undo::run(&self.memory, &self.ctx()?, None, None).await?;
        history::commits(&done.changes, self.door)
    }

    async fn retry(&mut self) -> Result<(), Error> {
        self.say("The same note is sent twice with one key; it is stored once.")?;
        for attempt in ["first", "second"] {
            let draft = Draft::note("Bob is allergic to nuts");
            let receipt = self.add(vec![draft], Some("demo-retry")).await?;
            for item in receipt.items {
                if let Fate::Stored { .. } = item.fate {
                    say!(self.door, "   the {attempt} answer: stored {}", item.id)?;
                }
            }
        }
        Ok(())
    }

    async fn look_back(&mut self, id: &Id) -> Result<(), Error> {
        self.say("The history of the first record.")?;
        let all = Changes::all_of_tenant(api::history::LIMIT);
        let id = Some(id.clone());
        self.changes(Changes { id, ..all }).await
    }

    fn examine(&mut self) -> Result<(), Error> {
        self.say("The store is checked for damage.")?;
        let found = api::doctor::run(&self.config, false)?;
        for finding in &found.examination.findings {
            let state = finding.state();
            let detail = text::one_line(&finding.detail);
            say!(self.door, "   {} {state}: {detail}", finding.check)?;
        }
        Ok(())
    }
}
