//! Summaries: extracted at once, and written anew by a model when nobody waits.

use std::collections::HashSet;
use std::sync::Arc;

use mnemon_core::llm::{Account, LlmError};
use mnemon_core::window::{
    Ask, Change, CompressionEvent, Extract, Reading, Strategy, chars, is_compressed,
    message_tokens, tokens,
};
use mnemon_core::{
    Ctx, Filter, Id, Kind, Message, Record, Role, Scan, Scope, StoreError, Time, Viewer, limits,
};
use serde::Serialize;
use serde_json::json;

use super::Window;
use super::stored::{Entry, Offload, PENDING};
use crate::memory::Memory;
use crate::memory::scopes::message_of;
use crate::records::Error;

/// Who wrote a summary, as events and answers say it.
pub(super) const EXTRACTIVE: &str = "extractive";
pub(super) const MODEL_PENDING: &str = "extractive, model pending";
/// So often a model is asked for one summary before the extracted one stays.
const ATTEMPTS: u64 = 3;

/// What a model did about summaries that were waiting for it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Refined {
    /// Summaries that the model wrote.
    pub written: u64,
    /// Why a summary was not written by the model, the last reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// Summaries that still wait for the model.
    pub pending: u64,
}

impl Memory {
    /// Lets the language model write at most so many of the summaries that wait for it, in every
    /// conversation. Upkeep does this, so that no append waits for a model.
    pub async fn refine_summaries(&self, ctx: &Ctx, limit: usize) -> Result<Refined, Error> {
        let mut done = Refined::default();
        if self.llm().is_none() {
            return Ok(done);
        }
        let filter = Filter {
            kinds: vec![Kind::Summary],
            tags: vec![PENDING.to_owned()],
            ..Filter::seen_by(Viewer::Tenant)
        };
        let records = self.records_of(Scope::Dialog);
        let page = limit.min(records.limits().page).max(1);
        let found = records.list(ctx, &Scan::new(filter, page)).await?;
        for record in found.records {
            let window = self.window_of(record.owner.clone());
            window.refine(ctx, record, &mut done).await?;
        }
        done.pending += u64::from(found.next.is_some());
        Ok(done)
    }
}

impl Window<'_> {
    /// Lets the language model write the summaries of this conversation that wait for it.
    pub async fn refine_pending(&self, ctx: &Ctx) -> Result<Refined, Error> {
        let mut done = Refined::default();
        if self.llm.is_none() {
            return Ok(done);
        }
        let filter = Filter {
            tags: vec![PENDING.to_owned()],
            ..self.within(Kind::Summary)
        };
        let scan = Scan::new(filter, self.records.limits().page);
        for record in self.records.list(ctx, &scan).await?.records {
            self.refine(ctx, record, &mut done).await?;
        }
        Ok(done)
    }

    /// Asks the model for one summary and puts it in the place of the extracted one, under the same
    /// uuid. A model that gave no usable summary is not asked for others: somebody may be waiting.
    async fn refine(&self, ctx: &Ctx, record: Record, done: &mut Refined) -> Result<(), Error> {
        if done.refused.is_some() {
            done.pending += 1;
            return Ok(());
        }
        let Some(mut offload) = Offload::of(&record) else {
            return Ok(());
        };
        if offload.event.page().is_some() && self.project.is_none() {
            ctx.notices.add(
                "A page waits for the language model: `mnemon chat compress SESSION --files ROOT \
                 --wait` lets it write the page's summary.",
            );
            done.pending += 1;
            return Ok(());
        }
        let written = self.write_anew(ctx, &record.id, &mut offload).await?;
        let attempts = offload.event.number("attempts").unwrap_or(0) + 1;
        let metadata = &mut offload.event.metadata;
        let is_settled = match written {
            Ok(()) => {
                metadata.remove("refused");
                metadata.remove("attempts");
                done.written += 1;
                true
            }
            Err(why) => {
                extracted(ctx, &why.text);
                metadata.insert("refused".to_owned(), json!(why.text));
                metadata.insert("attempts".to_owned(), json!(attempts));
                done.refused = Some(why.text);
                let is_settled = why.is_final || attempts >= ATTEMPTS;
                if is_settled {
                    metadata.insert("summariser".to_owned(), json!(EXTRACTIVE));
                }
                is_settled
            }
        };
        done.pending += u64::from(!is_settled);
        self.replace_offload(ctx, record, &offload, is_settled)
            .await
    }

    /// Writes an offload anew. Somebody who changed or forgot it meanwhile goes first.
    async fn replace_offload(
        &self,
        ctx: &Ctx,
        mut record: Record,
        offload: &Offload,
        is_settled: bool,
    ) -> Result<(), Error> {
        record.content = offload.message.text_content();
        record.body = Some(offload.to_json()?);
        if is_settled {
            record.tags.retain(|tag| tag != PENDING);
        }
        match self.records.update(ctx, record).await {
            Ok(_) | Err(Error::Store(StoreError::Conflict { .. })) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Replaces the message of an offload by what the model says of the original messages.
    async fn write_anew(
        &self,
        ctx: &Ctx,
        uuid: &Id,
        offload: &mut Offload,
    ) -> Result<Result<(), Refusal>, Error> {
        let Ok(strategy) = offload.event.event_type.parse::<Strategy>() else {
            return Ok(Err(Refusal::last("its strategy is not known")));
        };
        let originals = self.originals(ctx, &offload.entries).await?;
        let replaced = usize::from(strategy == Strategy::PreviousRounds);
        let originals_chars: usize = originals.iter().map(chars).sum();
        let change = Change {
            strategy,
            replaced: replaced..originals.len(),
            offloaded: 0..originals.len(),
            original_chars: originals_chars,
            summary_chars: chars(&offload.message),
            room_chars: chars(&offload.message),
            part: 1.0,
        };
        let summary = match self.ask(ctx, &change, &originals).await {
            Ok(summary) => summary,
            Err(refusal) => return Ok(Err(refusal)),
        };
        if let Some(page) = offload.event.page() {
            let page = (page.to_owned(), uuid);
            self.rewrite_page(ctx, page, &offload.entries, &originals, &summary.text)
                .await?;
            record_model(&mut offload.event, &summary);
            return Ok(Ok(()));
        }
        let text = headed(&change, &offload.entries, uuid, &summary.text);
        let message = change.replacement(&originals, &text, uuid, &self.settings);
        let after = message_tokens(&message, self.measure);
        let before = offload.event.number("tokenBefore").unwrap_or(u64::MAX);
        if after as u64 >= before {
            return Ok(Err(Refusal::last("the summary was not smaller")));
        }
        offload.message = message;
        let tokens_after = json!(after);
        let metadata = &mut offload.event.metadata;
        metadata.insert("tokenAfter".to_owned(), tokens_after);
        record_model(&mut offload.event, &summary);
        Ok(Ok(()))
    }

    /// What the model says, if it can be used.
    async fn ask(
        &self,
        ctx: &Ctx,
        change: &Change,
        originals: &[Message],
    ) -> Result<Written, Refusal> {
        let Some(llm) = &self.llm else {
            return Err(Refusal::later("no language model is configured"));
        };
        let ask = Ask {
            prompts: &self.prompts,
            plan: self.plan.as_ref(),
        };
        let fitting = self.fitting(originals);
        let mut prompt = change.summary_prompt(&fitting, ask);
        prompt.account = Account::of(ctx, "window");
        let answer = llm.complete(&prompt).await.map_err(|error| Refusal {
            is_final: matches!(error, LlmError::BadAnswer { .. }),
            text: error.to_string(),
        })?;
        // A record holds no NUL.
        let text = answer.text.replace('\0', "");
        let text = text.trim();
        let count = text.chars().count();
        let most = change.original_chars.min(limits::SUMMARY_BYTES);
        if text.is_empty() {
            return Err(Refusal::last("the summary was empty"));
        }
        if count >= most {
            let what = format!("the summary had {count} characters, what it was made from {most}");
            return Err(Refusal::last(what));
        }
        Ok(Written {
            text: text.to_owned(),
            by: llm.model().to_owned(),
            input_tokens: answer.input_tokens,
            output_tokens: answer.output_tokens,
            took_ms: answer.took_ms,
        })
    }

    /// The originals, or of more than the model can read an extract of the older ones and the newer
    /// ones.
    fn fitting(&self, originals: &[Message]) -> Vec<Message> {
        let most = self.settings.max_token / 2;
        if tokens(originals, self.measure) <= most {
            return originals.to_vec();
        }
        let mut newer = 0;
        let mut left = most;
        for message in originals.iter().rev() {
            let size = message_tokens(message, self.measure);
            if size > left {
                break;
            }
            left -= size;
            newer += 1;
        }
        let (older, newer) = originals.split_at(originals.len() - newer);
        let text = Extract::of(older, newer).text(most);
        let mut fitting = vec![Message::text("earlier", Role::Assistant, text)];
        fitting.extend_from_slice(newer);
        fitting
    }

    /// The statements that matter in these messages; what follows them in the window may answer or
    /// correct them.
    pub(super) fn by_extract(
        &self,
        change: &Change,
        originals: &[Message],
        messages: &[Message],
    ) -> Extract {
        let originals = change.to_summarise(originals);
        let readings = originals
            .iter()
            .map(|message| Arc::new(Reading::of(message)));
        Extract::from_readings(&readings.collect::<Vec<_>>(), &following(change, messages))
    }

    /// The same for the messages that were said where these entries stand, and how many characters
    /// they have.
    pub(super) async fn extract_originals(
        &self,
        ctx: &Ctx,
        change: &Change,
        entries: &[Entry],
        messages: &[Message],
    ) -> Result<(Extract, usize), Error> {
        if change.strategy == Strategy::CurrentLarge {
            let originals = self.originals(ctx, entries).await?;
            let extract = self.by_extract(change, &originals, messages);
            return Ok((extract, originals.iter().map(chars).sum()));
        }
        let records = self.original_records(ctx, entries).await?;
        let known = &self.records.readings;
        let readings = records.iter().map(|record| known.of(record, message_of));
        let readings: Vec<Arc<Reading>> = readings.collect();
        let chars = readings.iter().map(|reading| reading.chars()).sum();
        let extract = Extract::from_readings(&readings, &following(change, messages));
        Ok((extract, chars))
    }

    /// The messages that were said where these entries stand.
    pub(super) async fn originals(
        &self,
        ctx: &Ctx,
        entries: &[Entry],
    ) -> Result<Vec<Message>, Error> {
        let records = self.original_records(ctx, entries).await?;
        Ok(records.iter().map(message_of).collect())
    }

    /// Their records: where a replacement stands for others, those. At most the newest
    /// [`limits::WINDOW_ORIGINALS`].
    async fn original_records(&self, ctx: &Ctx, entries: &[Entry]) -> Result<Vec<Record>, Error> {
        let mut entries = entries.to_vec();
        // Each pass opens one layer of replacements; they are no deeper than there were folds.
        while entries.iter().any(|entry| entry.replaced) {
            let mut opened = Vec::with_capacity(entries.len());
            for entry in entries {
                match entry.replaced {
                    true => opened.extend(self.opened(ctx, &entry).await?),
                    false => opened.push(entry),
                }
            }
            entries = opened;
        }
        // The question of a round stands in the window and in its offload.
        let mut seen = HashSet::new();
        entries.retain(|entry| seen.insert(entry.of.clone()));
        let newest = entries.len().saturating_sub(limits::WINDOW_ORIGINALS);
        let ids: Vec<Id> = entries.drain(newest..).map(|entry| entry.of).collect();
        let records = self.records.get_all(ctx, &ids).await?;
        Ok(records.into_iter().flatten().collect())
    }

    /// The entries that a replacement stands for.
    async fn opened(&self, ctx: &Ctx, entry: &Entry) -> Result<Vec<Entry>, Error> {
        match self.offload_of(ctx, entry).await? {
            Some(offload) => Ok(offload.entries),
            None => {
                let said = self.between(ctx, entry).await?;
                Ok(said.into_iter().map(|(entry, _)| entry).collect())
            }
        }
    }
}

/// Readings of what follows a change in the window.
fn following(change: &Change, messages: &[Message]) -> Vec<Arc<Reading>> {
    let following = messages.get(change.replaced.end..).unwrap_or_default();
    let following = following.iter().filter(|message| !is_compressed(message));
    following.map(|m| Arc::new(Reading::of(m))).collect()
}

/// What a model wrote.
struct Written {
    text: String,
    by: String,
    input_tokens: u64,
    output_tokens: u64,
    took_ms: u64,
}

/// Notes in the event which model wrote the summary, and what that took.
fn record_model(event: &mut CompressionEvent, summary: &Written) {
    let seconds = summary.took_ms as f64 / 1000.0;
    for (name, value) in [
        ("inputToken", json!(summary.input_tokens)),
        ("outputToken", json!(summary.output_tokens)),
        ("time", json!(seconds)),
        ("summariser", json!(summary.by)),
    ] {
        event.metadata.insert(name.to_owned(), value);
    }
}

/// Why a model's summary is not used, and whether asking again would not help.
struct Refusal {
    text: String,
    is_final: bool,
}

impl Refusal {
    fn last(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            is_final: true,
        }
    }

    fn later(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            is_final: false,
        }
    }
}

/// Reports that the extracted summary stays, since the model's could not be used.
fn extracted(ctx: &Ctx, why: &str) {
    ctx.notices.add(format!(
        "The summary was extracted from the text, not written by the language model: {why}."
    ));
}

/// The summary, with a first line that says what it stands for. A single large message keeps its
/// own form.
pub(super) fn headed(change: &Change, entries: &[Entry], uuid: &Id, summary: &str) -> String {
    if change.strategy == Strategy::CurrentLarge {
        return summary.to_owned();
    }
    let from = entries.iter().map(|entry| entry.first.created).min();
    let to = entries.iter().map(|entry| entry.last.created).max();
    let minute = |millis: Option<i64>| {
        let time = Time::from_millis(millis.unwrap_or_default()).unwrap_or(Time::EPOCH);
        let text = time.to_string().replace('T', " ");
        text.get(..16).unwrap_or(&text).to_owned()
    };
    let count: u64 = entries.iter().map(|entry| entry.covers).sum();
    let (from, to) = (minute(from), minute(to));
    let period = match from == to {
        true => from,
        false => format!("{from} to {to}"),
    };
    format!("[{count} earlier messages, {period}; reload: {uuid}]\n{summary}")
}
