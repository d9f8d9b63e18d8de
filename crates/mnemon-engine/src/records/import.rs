//! Bringing in records that were exported elsewhere.

use std::collections::HashMap;

use mnemon_core::{
    Batch, Ctx, Expect, Fate, Id, Invalid, Op, Outcome, Receipt, Record, Right, secrets,
};
use serde::{Deserialize, Serialize};

use crate::records::safety::TakenOut;
use crate::records::{Error, Records};

/// What to do with a record whose id is taken by a different one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnConflict {
    /// Stop, and import nothing of this batch.
    #[default]
    Fail,
    /// Keep the one that is there.
    Skip,
    /// Take the imported one; the one that was there stays in the history.
    Replace,
}

impl Records {
    /// Writes the records under the ids, times and links they come with, into the caller's tenant.
    /// One that is already there unchanged is a duplicate, so an import can be run again. Secrets
    /// are kept out, as of anything that comes in.
    pub async fn import(
        &self,
        ctx: &Ctx,
        records: Vec<Record>,
        on_conflict: OnConflict,
    ) -> Result<Receipt, Error> {
        let grant = self.policy.check(ctx, Right::Write)?;
        let mut taken = TakenOut::default();
        let mut there = self.there(ctx, &records).await?;
        let mut outcomes: Vec<Option<Outcome>> = Vec::with_capacity(records.len());
        let mut ops = Vec::new();
        for mut record in records {
            if record.tenant.is_system() {
                let what = "belongs to the reserved tenant; it cannot be imported";
                return Err(blame(&record, &Invalid::new("tenant", what)).into());
            }
            record.tenant = ctx.tenant.clone();
            // Numbers of the store it comes from; this one gives out its own.
            (record.seq, record.version) = (0, 0);
            // What is there just so does not come in again.
            if there.get(&record.id).is_none_or(|it| !same(&record, it)) {
                let named = self.safety.check_identifier("id", record.id.as_str());
                let screened =
                    named.and_then(|()| self.safety.screen_record(&mut record, &mut taken));
                screened.map_err(|wrong| blame(&record, &wrong))?;
            }
            let (outcome, op) = decide(&record, &there, on_conflict);
            if op.is_some() {
                // The same id may come again further down.
                there.insert(record.id.clone(), record);
            }
            outcomes.push(outcome);
            ops.extend(op);
        }
        let mut receipt = self.apply(ctx, &grant, Batch::from(ops)).await?;
        let mut applied = std::mem::take(&mut receipt.items).into_iter();
        receipt.items = outcomes
            .into_iter()
            .filter_map(|decided| decided.or_else(|| applied.next()))
            .collect();
        ctx.notices.extend(taken.sentences());
        Ok(receipt)
    }

    async fn there(&self, ctx: &Ctx, records: &[Record]) -> Result<HashMap<Id, Record>, Error> {
        let ids: Vec<Id> = records.iter().map(|record| record.id.clone()).collect();
        let there = self.get_all(ctx, &ids).await?.into_iter().flatten();
        Ok(there.map(|record| (record.id.clone(), record)).collect())
    }
}

/// Either the outcome is clear already, or there is something to do.
fn decide(
    record: &Record,
    there: &HashMap<Id, Record>,
    on_conflict: OnConflict,
) -> (Option<Outcome>, Option<Op>) {
    let Some(current) = there.get(&record.id) else {
        return (None, Some(Op::append(record.clone())));
    };
    let id = record.id.clone();
    if same(record, current) {
        let fate = Fate::Duplicate { of: id.clone() };
        return (Some(Outcome { id, fate }), None);
    }
    match on_conflict {
        OnConflict::Fail => (None, Some(Op::append(record.clone()))),
        OnConflict::Replace => {
            let expect = match current.version {
                // It came earlier in this very import.
                0 => Expect::Anything,
                version => Expect::Version(version),
            };
            (None, Some(Op::put_if(record.clone(), expect)))
        }
        OnConflict::Skip => {
            let why = "another record of this id is already there".to_owned();
            let fate = Fate::Rejected { why };
            (Some(Outcome { id, fate }), None)
        }
    }
}

/// The error with the record's id, unless the id itself holds the secret.
fn blame(record: &Record, wrong: &Invalid) -> Invalid {
    let what = format!("{} {}", wrong.field, wrong.what);
    match secrets::find_in_identifier(record.id.as_str()) {
        None => Invalid::new(format!("record {}", record.id), what),
        Some(_) => Invalid::new("record", what),
    }
}

/// Equal but for the numbers that each store gives out itself.
fn same(one: &Record, other: &Record) -> bool {
    let plain = |record: &Record| Record {
        seq: 0,
        version: 0,
        ..record.clone()
    };
    plain(one) == plain(other)
}
