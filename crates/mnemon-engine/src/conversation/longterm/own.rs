//! Our own engine as a long-term memory.

use std::collections::HashSet;
use std::sync::Arc;

use async_trait::async_trait;
use mnemon_core::longterm::{LongTerm, LongTermError};
use mnemon_core::{
    Block, Ctx, Filter, Id, Kind, Message, Origin, Owner, Role, Scope, StoreError, Viewer, limits,
};
use serde_json::{Map, json};

use super::is_recalled;
use crate::memory::Memory;
use crate::records::naming::fixed_id;
use crate::records::{Draft, Error, Records};
use crate::search::Query;

/// Records what users and assistants said as knowledge of the user, and tells what a search finds.
pub struct OwnLongTerm {
    memory: Arc<Memory>,
    /// How many things are told for one message.
    pub top: usize,
}

/// Things that are told for one message unless somebody says otherwise.
const TOP: usize = 5;
/// Things that are found for each that is told, since some say the same.
const SPARE: usize = 3;

impl OwnLongTerm {
    /// The knowledge of this memory.
    pub fn new(memory: Arc<Memory>) -> Self {
        Self { memory, top: TOP }
    }

    fn records(&self) -> &Records {
        self.memory.records_of(Scope::Semantic)
    }
}

#[async_trait]
impl LongTerm for OwnLongTerm {
    /// The whole conversation may come again with every reply: what is there already is left out.
    async fn record(
        &self,
        ctx: &Ctx,
        owner: &Owner,
        messages: &[Message],
    ) -> Result<(), LongTermError> {
        let mut seen = HashSet::new();
        let drafts = messages.iter().filter(|message| is_worth_it(message));
        let drafts = drafts.map(|message| draft(owner, message));
        let drafts = drafts.filter(|draft| seen.insert(draft.id.clone()));
        let drafts: Vec<Draft> = drafts.collect();
        for chunk in drafts.chunks(self.records().limits().commit_ops) {
            add_new(self.records(), ctx, chunk).await.map_err(failed)?;
        }
        Ok(())
    }

    async fn retrieve(
        &self,
        ctx: &Ctx,
        owner: &Owner,
        message: &Message,
    ) -> Result<String, LongTermError> {
        let text = message.text_content();
        let most = text.floor_char_boundary(limits::QUERY_BYTES);
        let asked = text.get(..most).unwrap_or_default().trim();
        if asked.is_empty() {
            return Ok(String::new());
        }
        // What was said in any session counts, so that only who it is about is asked for.
        let filter = Filter {
            owner: Owner {
                user: owner.user.clone(),
                agent: owner.agent.clone(),
                ..Owner::default()
            },
            scopes: vec![Scope::Semantic],
            ..Filter::seen_by(Viewer::person(owner.user.clone(), owner.agent.clone()))
        };
        let query = Query {
            limit: self.top * SPARE + 1,
            ..Query::new(asked, filter)
        };
        let hits = self.records().search(ctx, &query).await.map_err(failed)?;
        // The question itself, asked before, is no answer.
        let known = hits.into_iter().map(|hit| hit.record.content);
        // A line that was recorded twice is told once.
        let mut told = HashSet::new();
        let known = known
            .filter(|content| content.trim() != asked && told.insert(content.trim().to_owned()));
        let known: Vec<String> = known.take(self.top).collect();
        Ok(known.join("\n"))
    }
}

/// Plain words of a user or an assistant; calls of tools and what was recalled are not.
pub(super) fn is_worth_it(message: &Message) -> bool {
    let calls = |block: &Block| matches!(block, Block::ToolUse { .. } | Block::ToolResult { .. });
    let text = message.text_content();
    let fits = !text.trim().is_empty() && text.len() <= limits::CONTENT_BYTES;
    let speaks = matches!(message.role, Role::User | Role::Assistant);
    speaks
        && fits
        && !text.contains('\0')
        && !message.content.iter().any(calls)
        && !is_recalled(message)
}

fn draft(owner: &Owner, message: &Message) -> Draft {
    let text = message.text_content();
    let (origin, role) = match message.role {
        Role::User => (Origin::User, "user"),
        _ => (Origin::Agent, "assistant"),
    };
    let names = [
        owner.user.as_deref(),
        owner.agent.as_deref(),
        owner.session.as_deref(),
        Some(message.id.as_str()),
        Some(role),
        Some(text.as_str()),
    ];
    Draft {
        id: Some(fixed_id("recorded", &names)),
        owner: owner.clone(),
        scope: Some(Scope::Semantic),
        kind: Some(Kind::Note),
        origin: Some(origin),
        metadata: Map::from_iter([("role".to_owned(), json!(role))]),
        content: text,
        ..Draft::default()
    }
}

/// Adds those that are not there yet. Somebody else may add the same at the same moment: then it
/// is looked again.
async fn add_new(records: &Records, ctx: &Ctx, drafts: &[Draft]) -> Result<(), Error> {
    let ids: Vec<Id> = drafts.iter().filter_map(|draft| draft.id.clone()).collect();
    let mut tries = 0;
    loop {
        let there = records.get(ctx, &ids).await?;
        let new = drafts
            .iter()
            .zip(there)
            .filter(|(_, there)| there.is_none());
        let new: Vec<Draft> = new.map(|(draft, _)| draft.clone()).collect();
        if new.is_empty() {
            return Ok(());
        }
        tries += 1;
        match records.add(ctx, new, None).await {
            Err(Error::Store(StoreError::Conflict { .. })) if tries < limits::CHANGE_TRIES => {}
            done => return done.map(|_| ()),
        }
    }
}

pub(super) fn failed(error: Error) -> LongTermError {
    match error {
        Error::Store(error) => error.into(),
        other => LongTermError::Refused {
            service: "mnemon".to_owned(),
            what: other.to_string(),
        },
    }
}
