//! A store that holds the entries of some conversations.

use mnemon_core::budget::{Budget, Compiled, Counter, Form, Material, Section, compile};
use mnemon_core::rank::Recipe;
use mnemon_core::{Ctx, Filter, Id, Message, Notices, Origin, Owner, Role, Tenant, Time, Viewer};
use mnemon_engine::{Draft, Hit, Memory, Query};
use serde_json::{Map, Value};

use super::dataset::{Conversation, Entry, Question};
use super::measure::DEPTHS;
use super::{CopyStyle, SearchFilter, Setup, Stores};
use crate::config::{BUILTIN, Config, Keeping, Sourced};
use crate::{Error, wiring};

/// Records that are written at once.
const BATCH: usize = 500;
/// Hits from which the context of an answer is compiled.
const CONTEXT_HITS: usize = 100;
/// Words before a copy, in turn.
const ADDED_WORDS: [&str; 4] = [
    "By the way:",
    "As I said before,",
    "Just so you know:",
    "One more time:",
];

/// A store that is filled, instead of one in memory.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) store: &'a str,
    /// The index in a search server, instead of the store's own.
    pub(super) index: Option<&'a str>,
    /// The number of the tenant.
    pub(super) number: usize,
}

pub(super) struct FilledStore<'a> {
    memory: Memory,
    setup: Setup,
    conversations: &'a [Conversation],
    notices: Notices,
    tenant: Tenant,
}

impl<'a> FilledStore<'a> {
    /// A store in memory, or a new tenant of the store at this place. Its records do not expire: a
    /// question may be asked years later.
    pub(super) fn open(
        config: &Config,
        ctx: &Ctx,
        setup: Setup,
        conversations: &'a [Conversation],
        place: Option<Place<'_>>,
    ) -> Result<Self, Error> {
        let forever = Keeping {
            ttl_days: Sourced::default(None),
            max_entries: Sourced::default(None),
        };
        let index = place.and_then(|place| place.index).unwrap_or(BUILTIN);
        let config = Config {
            embedder: config.embedder.clone(),
            embedder_key: config.embedder_key.clone(),
            reranker: config.reranker.clone(),
            onnxruntime: config.onnxruntime.clone(),
            short_term: forever.clone(),
            long_term: forever,
            index: config.index.of_url(index),
            ..Config::for_store(place.map_or("ram:", |place| place.store))
        };
        let tenant = match place {
            None => Tenant::default(),
            Some(Place { number, .. }) => format!("eval-{}-{number}", ctx.now.millis()).parse()?,
        };
        let wired = wiring::open(&config)?;
        ctx.notices.extend(wired.notices);
        Ok(Self {
            memory: wired.memory,
            setup,
            conversations,
            notices: ctx.notices.clone(),
            tenant,
        })
    }

    pub(super) async fn fill(&self, progress: &mut impl FnMut(usize)) -> Result<(), Error> {
        let ends = self.conversations.iter().map(end);
        let ctx = self.ctx(ends.max().unwrap_or(Time::EPOCH));
        let mut batch = Vec::new();
        for (number, conversation) in self.conversations.iter().enumerate() {
            for copy in 0..self.setup.copies {
                for (index, entry) in conversation.entries.iter().enumerate() {
                    let place = EntryId {
                        conversation: number,
                        entry: index,
                        copy,
                    };
                    batch.push(self.draft(place, entry, &conversation.name)?);
                    if batch.len() == BATCH {
                        self.write(&ctx, &mut batch, progress).await?;
                    }
                }
            }
        }
        self.write(&ctx, &mut batch, progress).await?;
        // An index in a search server is brought up to the store, so that no search waits for it.
        Ok(self.memory.records().warm(&ctx).await?)
    }

    async fn write(
        &self,
        ctx: &Ctx,
        batch: &mut Vec<Draft>,
        progress: &mut impl FnMut(usize),
    ) -> Result<(), Error> {
        let count = batch.len();
        if count > 0 {
            let drafts = std::mem::take(batch);
            self.memory.records().add(ctx, drafts, None).await?;
            progress(count);
        }
        Ok(())
    }

    /// The record of an entry. A copy of a session is a session of its own, so that the messages
    /// around a message are the same in each.
    fn draft(&self, place: EntryId, entry: &Entry, conversation: &str) -> Result<Draft, Error> {
        let id: Id = place.to_string().parse()?;
        let content = match (self.setup.copy_style, place.copy) {
            (_, 0) | (CopyStyle::Exact, _) => entry.content.clone(),
            (CopyStyle::Words, copy) => {
                let mut words = ADDED_WORDS.iter().cycle().skip(place.entry + copy);
                let words = words.next().copied().unwrap_or_default();
                format!("{words} {}", entry.content)
            }
        };
        let session = entry.session.as_ref().map(|session| match place.copy {
            0 => session.clone(),
            copy => format!("{session}, copy {copy}"),
        });
        // In one store the sessions of all conversations have names of their own.
        let session = session.map(|session| match self.setup.stores {
            Stores::Separate => session,
            Stores::One => format!("{conversation}: {session}"),
        });
        let mut metadata = Map::new();
        let mut add = |name: &str, value: Option<&str>| {
            let value = value.map(|value| (name.to_owned(), Value::from(value)));
            metadata.extend(value);
        };
        add("speaker", entry.speaker.as_deref());
        add("role", entry.role.map(Role::word));
        let body = entry.role.map(|role| Message {
            name: entry.speaker.clone(),
            timestamp: Some(entry.created.to_string()),
            ..Message::text(id.as_str(), role, content.as_str())
        });
        let body = body.map(serde_json::to_value).transpose();
        let body = body.map_err(|error| Error::Internal(format!("a message: {error}")))?;
        let user = entry.user.as_deref().or_else(|| self.user(conversation));
        Ok(Draft {
            id: Some(id),
            kind: Some(entry.kind),
            owner: Owner::of(user, session.as_deref()),
            origin: entry.role.map(|role| match role {
                Role::User => Origin::User,
                Role::Assistant | Role::System => Origin::Agent,
                Role::Tool => Origin::Tool,
            }),
            created: Some(entry.created),
            metadata,
            body,
            ..Draft::note(content)
        })
    }

    /// The user to whom the conversation belongs, if conversations belong to users.
    fn user<'b>(&self, conversation: &'b str) -> Option<&'b str> {
        let has_users = self.setup.stores == Stores::One || self.setup.filter == SearchFilter::User;
        has_users.then_some(conversation)
    }

    /// The hits of searches for each depth, as indices of entries of the conversation. Copies make
    /// a search depend on how much is asked for; without copies the deepest one is cut.
    pub(super) async fn search(
        &self,
        number: usize,
        question: &Question,
        recipe: Recipe,
    ) -> Result<[Vec<Option<usize>>; 3], Error> {
        let [_, _, deepest] = DEPTHS;
        if self.setup.copies == 1 {
            let all = self.hits(number, question, recipe, deepest).await?;
            return Ok(DEPTHS.map(|depth| all.iter().take(depth).copied().collect()));
        }
        let mut found = DEPTHS.map(|_| Vec::new());
        for (hits, depth) in found.iter_mut().zip(DEPTHS) {
            *hits = self.hits(number, question, recipe, depth).await?;
        }
        Ok(found)
    }

    async fn hits(
        &self,
        number: usize,
        question: &Question,
        recipe: Recipe,
        limit: usize,
    ) -> Result<Vec<Option<usize>>, Error> {
        let hits = self.find(number, question, recipe, limit).await?;
        let places = hits.iter().map(|hit| hit.record.id.as_str().parse().ok());
        let entry = |place: Option<EntryId>| {
            let place = place.filter(|place| place.conversation == number);
            place.map(|place| place.entry)
        };
        Ok(places.map(entry).collect())
    }

    async fn find(
        &self,
        number: usize,
        question: &Question,
        recipe: Recipe,
        limit: usize,
    ) -> Result<Vec<Hit>, Error> {
        let query = Query {
            recipe,
            limit,
            min_score: Some(0.0),
            steps: self.setup.steps,
            ..Query::new(question.text.as_str(), self.filter(number, question))
        };
        let ctx = self.ctx(self.asked(number, question));
        Ok(self.memory.search(&ctx, &query).await?)
    }

    /// The text from which a question is answered: the best hits, as `mnemon context` writes them.
    pub(super) async fn context(
        &self,
        number: usize,
        question: &Question,
        recipe: Recipe,
        (tokens, counter): (usize, &dyn Counter),
    ) -> Result<Compiled, Error> {
        let hits = self.find(number, question, recipe, CONTEXT_HITS).await?;
        let best = hits
            .first()
            .map_or(1.0, |hit| hit.score)
            .max(f64::MIN_POSITIVE);
        let materials = hits.iter().map(|hit| Material {
            value: hit.score / best,
            order: hit.record.created.millis(),
            ..Material::new(Section::Facts, hit.record.id.clone(), dated(hit))
        });
        let materials: Vec<Material> = materials.collect();
        let budget = Budget {
            also_known: false,
            ..Budget::of(tokens)
        };
        Ok(compile(&materials, &budget, Form::Markdown, counter)?)
    }

    /// The filter of `mnemon search --user NAME`, or none.
    fn filter(&self, number: usize, question: &Question) -> Filter {
        if self.setup.filter == SearchFilter::None {
            return Filter::all_of_tenant();
        }
        let conversation = self.conversations.get(number);
        let conversation = conversation.map(|conversation| conversation.name.clone());
        let user = question.user.clone().or(conversation);
        Filter {
            owner: Owner::of(user.as_deref(), None),
            ..Filter::seen_by(Viewer::of_caller(user, None))
        }
    }

    /// A question is asked at its own time, or a day after the last entry of the conversation.
    pub(super) fn asked(&self, number: usize, question: &Question) -> Time {
        let after = self.conversations.get(number).map_or(Time::EPOCH, end);
        question.asked.unwrap_or(after)
    }

    fn ctx(&self, now: Time) -> Ctx {
        Ctx {
            notices: self.notices.clone(),
            ..Ctx::new(self.tenant.clone(), "eval", now)
        }
    }
}

/// The content with its date and its author.
fn dated(hit: &Hit) -> String {
    let record = &hit.record;
    let created = record.created.to_string();
    let day = created.split('T').next().unwrap_or_default();
    let role = record.metadata.get("role").and_then(Value::as_str);
    match record.speaker().or(role) {
        Some(author) => format!("{day}, {author}: {}", record.content),
        None => format!("{day}: {}", record.content),
    }
}

/// A day after the last entry.
fn end(conversation: &Conversation) -> Time {
    let times = conversation.entries.iter().map(|entry| entry.created);
    times.max().unwrap_or(Time::EPOCH).plus_days(1)
}

/// Where a record comes from; its id says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct EntryId {
    conversation: usize,
    entry: usize,
    copy: usize,
}

impl std::fmt::Display for EntryId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Ids in the order of the entries: equal hits come in this order.
        let Self {
            conversation,
            entry,
            copy,
        } = self;
        write!(f, "{conversation:04}-{entry:08}-{copy}")
    }
}

impl std::str::FromStr for EntryId {
    type Err = std::num::ParseIntError;

    fn from_str(id: &str) -> Result<Self, Self::Err> {
        let mut parts = id.split('-');
        let mut part = || parts.next().unwrap_or_default().parse();
        Ok(Self {
            conversation: part()?,
            entry: part()?,
            copy: part()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use mnemon_core::{Kind, Record, Scan};

    use super::*;

    fn said(content: &str, created: Time) -> Entry {
        Entry {
            kind: Kind::Message,
            role: Some(Role::User),
            session: Some("monday".to_owned()),
            ..Entry::note(content.to_owned(), created)
        }
    }

    async fn records(setup: Setup, conversation: &[Conversation]) -> (Memory, Vec<Record>) {
        let config = Config::for_store("ram:");
        let ctx = Ctx::new(Tenant::default(), "test", Time::EPOCH);
        let store = FilledStore::open(&config, &ctx, setup, conversation, None).unwrap();
        store.fill(&mut |_| {}).await.unwrap();
        let scan = Scan::new(Filter::all_of_tenant(), 100);
        let page = store.memory.records().list(&ctx, &scan).await.unwrap();
        (store.memory, page.records)
    }

    fn one(entries: Vec<Entry>) -> [Conversation; 1] {
        [Conversation {
            name: "chat".to_owned(),
            entries,
            ..Conversation::default()
        }]
    }

    #[tokio::test]
    async fn messages_are_stored_as_a_conversation_stores_them() {
        let conversation = one(vec![said("hello", Time::EPOCH)]);
        let (memory, records) = records(Setup::default(), &conversation).await;
        let mine = &records[0];
        assert_eq!(mine.metadata["role"], "user");
        assert_eq!(mine.speaker(), None);
        assert_eq!(mine.expires, None);

        let ctx = Ctx::new(Tenant::default(), "test", Time::EPOCH.plus_days(1));
        let window = memory.window("ann", "tuesday").unwrap();
        let message = Message::text("m", Role::User, "hello");
        let receipt = window
            .add_messages(&ctx, vec![message], None)
            .await
            .unwrap();
        let ids = [receipt.items[0].id.clone()];
        let theirs = memory.records().get(&ctx, &ids).await.unwrap();
        let theirs = theirs[0].clone().unwrap();
        let form = |record: &Record| {
            let body = record.body.clone().unwrap_or_default();
            let said = (
                body["role"].clone(),
                body["content"].clone(),
                body["name"].clone(),
            );
            (
                record.kind,
                record.scope,
                record.namespace,
                record.origin,
                said,
            )
        };
        assert_eq!(form(mine), form(&theirs));
    }

    #[tokio::test]
    async fn copies_have_their_own_sessions_and_one_store_has_users() {
        let setup = Setup {
            stores: Stores::One,
            copies: 2,
            copy_style: CopyStyle::Words,
            ..Setup::default()
        };
        let (_, mut records) = records(setup, &one(vec![said("hello", Time::EPOCH)])).await;
        records.sort_by(|one, other| one.id.cmp(&other.id));
        let sessions: Vec<_> = records.iter().map(|r| r.owner.session.clone()).collect();
        let named = ["chat: monday", "chat: monday, copy 1"].map(|name| Some(name.to_owned()));
        assert_eq!(sessions, named);
        assert!(
            records
                .iter()
                .all(|r| r.owner.user.as_deref() == Some("chat"))
        );
        assert_eq!(records[0].content, "hello");
        assert!(
            records[1].content.ends_with(" hello"),
            "{}",
            records[1].content
        );
    }

    #[test]
    fn ids_say_where_a_record_comes_from() {
        let place = EntryId {
            conversation: 12,
            entry: 345,
            copy: 2,
        };
        assert_eq!(place.to_string().parse(), Ok(place));
        assert!("other".parse::<EntryId>().is_err());
    }
}
