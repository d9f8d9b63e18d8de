//! Who used how much, and whether there is enough left: by day, tenant and task.
//!
//! A call is paid for before it is made: its upper bound is held, and what it did not use is given
//! back when its cost is known. If that never becomes known (it timed out, the process was killed)
//! the hold stays, so that a budget is never exceeded. In a file the accounts outlive the process
//! and are shared with others; a lock beside it makes changes one after the other.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use fs4::fs_std::FileExt;
use mnemon_core::limits;
use mnemon_core::llm::Account as Charged;
use serde::{Deserialize, Serialize};

use crate::private;

/// What one day may cost. `None` is no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Budgets {
    /// For all tasks of a tenant together.
    pub tokens_per_day: Option<u64>,
    /// For each task of a tenant.
    pub task_tokens_per_day: Option<u64>,
    /// For all tasks of a tenant together, in billionths of the currency.
    pub nanos_per_day: Option<u64>,
}

/// What a token costs, in billionths of the currency: a price of 1 for a million is 1000.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Prices {
    pub input_nanos: u64,
    pub output_nanos: u64,
}

impl Prices {
    fn of(self, input: u64, output: u64) -> u64 {
        let input = input.saturating_mul(self.input_nanos);
        input.saturating_add(output.saturating_mul(self.output_nanos))
    }
}

/// What was used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    pub calls: u64,
    pub input_tokens: u64,
    pub output_tokens: u64,
    /// In billionths of the currency.
    pub nanos: u64,
    /// Held for calls that are under way, or whose cost never became known.
    pub held_tokens: u64,
    pub held_nanos: u64,
}

impl Usage {
    fn tokens(&self) -> u64 {
        let used = self.input_tokens.saturating_add(self.output_tokens);
        used.saturating_add(self.held_tokens)
    }

    fn cost(&self) -> u64 {
        self.nanos.saturating_add(self.held_nanos)
    }
}

/// One line of the accounts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Account {
    pub day: String,
    pub tenant: String,
    pub task: String,
    #[serde(flatten)]
    pub usage: Usage,
}

/// Why the accounts cannot be kept, or a call not be paid for.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    #[error("the budget is used up")]
    Spent(String),
    #[error("the accounts in {} cannot be read or written: {what}", path.display())]
    File { path: PathBuf, what: String },
    #[error("there are more than {} accounts on one day", limits::LLM_ACCOUNTS)]
    TooMany,
}

type Day = BTreeMap<String, BTreeMap<String, Usage>>;

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Books {
    version: u32,
    days: BTreeMap<String, Day>,
}

const VERSION: u32 = 1;

/// The accounts, in memory or in a file.
#[derive(Debug)]
pub struct Ledger {
    file: Option<PathBuf>,
    books: Mutex<Books>,
    budgets: Budgets,
    /// Tenants with another `tokens_per_day`.
    tenants: BTreeMap<String, Option<u64>>,
    prices: Prices,
}

/// What is kept back for one call.
#[derive(Debug)]
pub(super) struct Hold {
    day: String,
    tenant: String,
    task: String,
    tokens: u64,
    nanos: u64,
}

impl Ledger {
    /// Accounts that end with the process.
    pub fn in_memory(budgets: Budgets, prices: Prices) -> Self {
        Self {
            file: None,
            books: Mutex::default(),
            budgets,
            tenants: BTreeMap::new(),
            prices,
        }
    }

    /// Gives these tenants other tokens per day, in all tasks together; `None` removes the limit.
    #[must_use]
    pub fn with_tenants(mut self, tokens_per_day: BTreeMap<String, Option<u64>>) -> Self {
        self.tenants = tokens_per_day;
        self
    }

    /// Accounts in this file, which is made with the first call.
    pub fn in_file(path: impl Into<PathBuf>, budgets: Budgets, prices: Prices) -> Self {
        Self {
            file: Some(path.into()),
            ..Self::in_memory(budgets, prices)
        }
    }

    /// Every account, the newest day first.
    pub fn accounts(&self) -> Result<Vec<Account>, LedgerError> {
        self.with(false, |books| {
            let days = books.days.iter().rev();
            let lines = days.flat_map(|(day, tenants)| {
                let tenants = tenants.iter();
                tenants.flat_map(move |(tenant, tasks)| {
                    tasks.iter().map(move |(task, usage)| Account {
                        day: day.clone(),
                        tenant: tenant.clone(),
                        task: task.clone(),
                        usage: *usage,
                    })
                })
            });
            Ok(lines.collect())
        })
    }

    /// Keeps back what a call can cost at the most, if there is that much.
    pub(super) fn hold(
        &self,
        charged: &Charged,
        input: u64,
        output: u64,
    ) -> Result<Hold, LedgerError> {
        let hold = Hold {
            day: day_of(charged),
            tenant: charged.tenant.to_string(),
            task: charged.task.clone(),
            tokens: input.saturating_add(output),
            nanos: self.prices.of(input, output),
        };
        self.with(true, |books| {
            self.check(books.days.get(&hold.day), &hold)?;
            let usage = books.usage(&hold)?;
            usage.held_tokens = usage.held_tokens.saturating_add(hold.tokens);
            usage.held_nanos = usage.held_nanos.saturating_add(hold.nanos);
            Ok(())
        })?;
        Ok(hold)
    }

    fn check(&self, day: Option<&Day>, hold: &Hold) -> Result<(), LedgerError> {
        let tasks = day.and_then(|tenants| tenants.get(&hold.tenant));
        let all = |part: fn(&Usage) -> u64| -> u64 {
            let usages = tasks.into_iter().flat_map(BTreeMap::values);
            usages.map(part).fold(0, u64::saturating_add)
        };
        let own = tasks.and_then(|tasks| tasks.get(&hold.task)).copied();
        let own = own.unwrap_or_default().tokens();
        let Hold { tenant, task, .. } = hold;
        let tenant_of = || format!("the tenant {tenant}");
        let task_of = || format!("the task {task} of the tenant {tenant}");
        let tokens = |count: u64| format!("{count} tokens");
        let over = |limit: Option<u64>, used: &dyn Fn() -> u64, need: u64| {
            let limit = limit?;
            let used = used();
            (used.saturating_add(need) > limit).then_some((limit, used, need))
        };
        let spent = |whose: String, sizes: (u64, u64, u64), words: &dyn Fn(u64) -> String| {
            let (limit, used, need) = (words(sizes.0), words(sizes.1), words(sizes.2));
            Err(LedgerError::Spent(format!(
                "{whose} on {} ({limit}, of which {used} are used or held; \
                 this call may need {need})",
                hold.day
            )))
        };
        let budgets = &self.budgets;
        let per_day = self.tenants.get(tenant).copied();
        let per_day = per_day.unwrap_or(budgets.tokens_per_day);
        if let Some(sizes) = over(per_day, &|| all(Usage::tokens), hold.tokens) {
            return spent(tenant_of(), sizes, &tokens);
        }
        if let Some(sizes) = over(budgets.nanos_per_day, &|| all(Usage::cost), hold.nanos) {
            return spent(tenant_of(), sizes, &money);
        }
        if let Some(sizes) = over(budgets.task_tokens_per_day, &|| own, hold.tokens) {
            return spent(task_of(), sizes, &tokens);
        }
        Ok(())
    }

    /// The call was made and cost this.
    pub(super) fn settle(&self, hold: &Hold, input: u64, output: u64) -> Result<(), LedgerError> {
        let nanos = self.prices.of(input, output);
        self.with(true, |books| {
            let usage = books.usage(hold)?;
            usage.give_back(hold);
            usage.calls += 1;
            usage.input_tokens = usage.input_tokens.saturating_add(input);
            usage.output_tokens = usage.output_tokens.saturating_add(output);
            usage.nanos = usage.nanos.saturating_add(nanos);
            Ok(())
        })
    }

    /// The call was not made, or not charged.
    pub(super) fn release(&self, hold: &Hold) -> Result<(), LedgerError> {
        self.with(true, |books| {
            books.usage(hold)?.give_back(hold);
            Ok(())
        })
    }

    /// Reads the books, changes them, and writes them back if they were to be changed.
    fn with<T>(
        &self,
        write: bool,
        change: impl FnOnce(&mut Books) -> Result<T, LedgerError>,
    ) -> Result<T, LedgerError> {
        // A panic in here cannot leave half a change: each is made at once.
        let mut books = self.books.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(path) = &self.file else {
            return change(&mut books);
        };
        let failed = |what: String| LedgerError::File {
            path: path.clone(),
            what,
        };
        if !write {
            return change(&mut read(path).map_err(failed)?);
        }
        let _lock = lock(path).map_err(|error| failed(error.to_string()))?;
        let mut books = read(path).map_err(failed)?;
        let done = change(&mut books)?;
        books.forget_old();
        replace(path, &books).map_err(|error| failed(error.to_string()))?;
        Ok(done)
    }
}

impl Books {
    fn usage(&mut self, hold: &Hold) -> Result<&mut Usage, LedgerError> {
        let day = self.days.entry(hold.day.clone()).or_default();
        let known = day
            .get(&hold.tenant)
            .is_some_and(|tasks| tasks.contains_key(&hold.task));
        if !known && day.values().map(BTreeMap::len).sum::<usize>() >= limits::LLM_ACCOUNTS {
            return Err(LedgerError::TooMany);
        }
        let tasks = day.entry(hold.tenant.clone()).or_default();
        Ok(tasks.entry(hold.task.clone()).or_default())
    }

    fn forget_old(&mut self) {
        self.version = VERSION;
        while self.days.len() > limits::LLM_ACCOUNT_DAYS {
            self.days.pop_first();
        }
    }
}

impl Usage {
    fn give_back(&mut self, hold: &Hold) {
        self.held_tokens = self.held_tokens.saturating_sub(hold.tokens);
        self.held_nanos = self.held_nanos.saturating_sub(hold.nanos);
    }
}

/// `2026-01-31`, in UTC.
fn day_of(charged: &Charged) -> String {
    let at = charged.at.to_string();
    at.split('T').next().unwrap_or_default().to_owned()
}

fn money(nanos: u64) -> String {
    format!(
        "{}.{:06}",
        nanos / 1_000_000_000,
        nanos % 1_000_000_000 / 1000
    )
}

fn read(path: &Path) -> Result<Books, String> {
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Books::default()),
        Err(error) => return Err(error.to_string()),
    };
    let books: Books = serde_json::from_slice(&bytes)
        .map_err(|error| format!("it does not hold accounts ({error}); move it away"))?;
    match books.version > VERSION {
        true => Err("it was written by a newer version of this program".to_owned()),
        false => Ok(books),
    }
}

/// Held until the file is dropped.
fn lock(path: &Path) -> std::io::Result<File> {
    if let Some(folder) = path.parent() {
        private::make_folder(folder)?;
    }
    let file = private::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(path.with_extension("lock"))?;
    FileExt::lock_exclusive(&file)?;
    Ok(file)
}

fn replace(path: &Path, books: &Books) -> std::io::Result<()> {
    let fresh = path.with_extension("new");
    let mut file = private::options()
        .write(true)
        .create(true)
        .truncate(true)
        .open(&fresh)?;
    file.write_all(&serde_json::to_vec(books)?)?;
    file.sync_all()?;
    private::keep_mode(&fresh, path)?;
    std::fs::rename(&fresh, path)
}

#[cfg(test)]
#[path = "ledger_tests.rs"]
mod tests;
