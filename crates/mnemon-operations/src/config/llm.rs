//! `[llm]`: the language model that writes summaries, its key, and what it may cost.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};

use super::risk::{ProjectRule, SENDS};
use super::{
    ConfigError, Environment, Key, Layers, Risk, Secret, Sourced, address, beside, file_key, keys,
};
use crate::env_vars;

keys! {
    PROVIDER = file_key("llm.provider", SENDS);
    URL = file_key("llm.url", SENDS);
    MODEL = file_key("llm.model", SENDS);
    KEY_ENV = file_key("llm.key_env", SENDS);
    KEY_FILE = file_key("llm.key_file", SENDS);
    /// Variables that a trusted project's `llm.key_env` may name, with commas between them. Which they
    /// are is not for the project to say.
    ALLOWED_KEY_ENV = file_key("llm.allowed_key_env", ProjectRule::Never(Risk::Sends));
    TIMEOUT = file_key("llm.timeout_s", SENDS);
    ATTEMPTS = file_key("llm.attempts", SENDS);
    CONCURRENT = file_key("llm.concurrent", SENDS);
    TOKENS = file_key("llm.tokens_per_day", SENDS);
    TASK_TOKENS = file_key("llm.task_tokens_per_day", SENDS);
    COST = file_key("llm.cost_per_day", SENDS);
    INPUT_PRICE = file_key("llm.input_price", SENDS);
    OUTPUT_PRICE = file_key("llm.output_price", SENDS);
}

/// Where a model is and which key it gets: all of it is read from one file.
pub(super) const ENDPOINT: &[&Key] = &[&PROVIDER, &URL, &KEY_ENV, &KEY_FILE];

/// A key file is one line; a larger one is a mistake.
const KEY_FILE_BYTES: u64 = 16 * 1024;

/// Whose language the endpoint speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LlmProvider {
    /// Everything works without a model.
    None,
    /// Any endpoint that speaks OpenAI's `/chat/completions`.
    OpenAi,
    /// Anthropic's `/v1/messages`.
    Anthropic,
}

/// An amount of money, or a price for a million tokens, in billionths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Money(pub u64);

/// What is said under `[llm]`.
#[derive(Debug, Clone)]
pub struct LlmSettings {
    pub provider: Sourced<LlmProvider>,
    pub url: Sourced<String>,
    pub model: Sourced<Option<String>>,
    /// The variable that holds the key.
    pub key_env: Sourced<String>,
    /// Variables that a trusted project may name as `key_env`.
    pub allowed_key_env: Sourced<Vec<String>>,
    /// The file that holds the key, if it is not in the environment.
    pub key_file: Sourced<Option<PathBuf>>,
    pub timeout_s: Sourced<u64>,
    pub attempts: Sourced<u64>,
    pub concurrent: Sourced<u64>,
    pub tokens_per_day: Sourced<Option<u64>>,
    pub task_tokens_per_day: Sourced<Option<u64>>,
    pub cost_per_day: Sourced<Option<Money>>,
    /// For a million tokens.
    pub input_price: Sourced<Money>,
    pub output_price: Sourced<Money>,
    /// What the variable holds, unless it may not be read.
    key: Result<Option<Secret>, String>,
    /// The file that keeps the accounts, if there is a folder for data.
    pub accounts: Option<PathBuf>,
}

impl Default for LlmSettings {
    fn default() -> Self {
        Self {
            provider: Sourced::default(LlmProvider::None),
            url: Sourced::default(String::new()),
            model: Sourced::default(None),
            key_env: Sourced::default(env_vars::MNEMON_LLM_KEY.name.to_owned()),
            allowed_key_env: Sourced::default(Vec::new()),
            key_file: Sourced::default(None),
            timeout_s: Sourced::default(60),
            attempts: Sourced::default(3),
            concurrent: Sourced::default(4),
            tokens_per_day: Sourced::default(None),
            task_tokens_per_day: Sourced::default(None),
            cost_per_day: Sourced::default(None),
            input_price: Sourced::default(Money(0)),
            output_price: Sourced::default(Money(0)),
            key: Ok(None),
            accounts: None,
        }
    }
}

impl LlmSettings {
    pub(super) fn read(layers: &Layers<'_>, env: &Environment) -> Result<Self, ConfigError> {
        let plain = Self::default();
        let text = |text: &str| Ok(text.to_owned());
        let provider = layers.read(&PROVIDER, LlmProvider::None, parse_provider)?;
        let url = provider.value.usual_url().to_owned();
        let key_env = layers.read(&KEY_ENV, plain.key_env.value, text)?;
        let allowed_key_env = layers.read(&ALLOWED_KEY_ENV, Vec::new(), parse_names)?;
        let may_be_read = !layers.is_projects(&key_env.origin)
            || may_project_name(&key_env.value, &allowed_key_env.value);
        let key = match may_be_read {
            true => Ok(env.get_named(&key_env.value).map(Secret::new)),
            false => Err(refused_key_env(&key_env)),
        };
        let limit = |key: &Key| layers.read(key, None, |text| super::parse_limit(text, "tokens"));
        let price = |key: &Key| layers.read(key, Money(0), parse_money);
        let some = |text: &str| Ok(Some(text.to_owned()));
        Ok(Self {
            url: layers.read(&URL, url, |text| {
                address::check(text).map(|()| text.to_owned())
            })?,
            model: layers.read(&MODEL, None, some)?,
            key_file: layers.key_file()?,
            timeout_s: layers.read(&TIMEOUT, plain.timeout_s.value, |t| between(t, 3600))?,
            attempts: layers.read(&ATTEMPTS, plain.attempts.value, |t| between(t, 10))?,
            concurrent: layers.read(&CONCURRENT, plain.concurrent.value, |t| between(t, 256))?,
            tokens_per_day: limit(&TOKENS)?,
            task_tokens_per_day: limit(&TASK_TOKENS)?,
            cost_per_day: layers.read(&COST, None, |text| match text {
                super::NONE => Ok(None),
                _ => parse_money(text).map(Some),
            })?,
            input_price: price(&INPUT_PRICE)?,
            output_price: price(&OUTPUT_PRICE)?,
            key,
            allowed_key_env,
            accounts: env.data().map(|folder| folder.join("llm-usage.json")),
            key_env,
            provider,
        })
    }

    /// The key, from the variable or else from the file.
    pub fn key(&self) -> Result<Option<Secret>, String> {
        match (self.key.clone()?, &self.key_file.value) {
            (Some(key), _) => Ok(Some(key)),
            (None, Some(path)) => read_key(path).map(Some),
            (None, None) => Ok(None),
        }
    }

    /// What keeps the model from being used, as far as it can be told without asking it.
    pub fn problem(&self) -> Option<String> {
        let key = match self.key() {
            Ok(key) => key,
            Err(problem) => return Some(problem),
        };
        let host = host(&self.url.value);
        let is_here = matches!(host, "localhost" | "127.0.0.1" | "[::1]");
        let is_open = self.url.value.starts_with("http://");
        let needs_key = self.provider.value == LlmProvider::Anthropic || host == "api.openai.com";
        let (env, url) = (&self.key_env.value, &self.url.value);
        if self.model.value.is_none() {
            return Some("llm.model names no model".to_owned());
        }
        if key.is_none() && needs_key && !is_here {
            return Some(format!(
                "{url} needs a key: set the variable {env}, or name a file in llm.key_file"
            ));
        }
        if key.is_some() && is_open && !is_here {
            return Some(format!("the key would go to {url} unencrypted; use https"));
        }
        let is_free = self.input_price.value == Money(0) && self.output_price.value == Money(0);
        if self.cost_per_day.value.is_some() && is_free {
            let what = "llm.cost_per_day needs llm.input_price and llm.output_price";
            return Some(format!("{what}: without them the cost is unknown"));
        }
        None
    }
}

impl LlmProvider {
    /// Where the provider itself is.
    fn usual_url(self) -> &'static str {
        match self {
            Self::None => "",
            Self::OpenAi => "https://api.openai.com/v1",
            Self::Anthropic => "https://api.anthropic.com",
        }
    }
}

impl Layers<'_> {
    /// A file is found like a store: beside the file that names it.
    fn key_file(&self) -> Result<Sourced<Option<PathBuf>>, ConfigError> {
        let path = |text: &str| Ok(Some(PathBuf::from(text)));
        self.read_settled(&KEY_FILE, None, path, |file, origin| {
            *file = file
                .take()
                .map(|path| self.env.settle_path(&path, beside(origin)));
        })
    }
}

fn read_key(path: &Path) -> Result<Secret, String> {
    let shown = path.display();
    let text = match std::fs::metadata(path) {
        Ok(meta) if meta.len() > KEY_FILE_BYTES => {
            return Err(format!(
                "{shown} has more than {KEY_FILE_BYTES} bytes: is it a key?"
            ));
        }
        Ok(_) => std::fs::read_to_string(path),
        Err(error) => Err(error),
    };
    let text = text.map_err(|error| format!("the key in {shown} cannot be read: {error}"))?;
    match text.trim() {
        "" => Err(format!("{shown} holds no key")),
        key => Ok(Secret::new(key)),
    }
}

fn host(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let rest = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let rest = rest.rsplit('@').next().unwrap_or_default();
    match rest.strip_prefix('[').and_then(|inner| inner.find(']')) {
        Some(end) => rest.get(..end + 2).unwrap_or(rest),
        None => rest.split(':').next().unwrap_or_default(),
    }
}

fn parse_provider(text: &str) -> Result<LlmProvider, String> {
    match text {
        "none" => Ok(LlmProvider::None),
        "openai" => Ok(LlmProvider::OpenAi),
        "anthropic" => Ok(LlmProvider::Anthropic),
        _ => Err(format!(
            "`{}` is not a provider; write `openai` (any compatible endpoint), `anthropic` or \
                `none`",
            text.escape_debug()
        )),
    }
}

fn parse_names(text: &str) -> Result<Vec<String>, String> {
    let names = text.split(',').map(str::trim);
    let names = names.filter(|name| !name.is_empty()).map(str::to_owned);
    Ok(names.collect())
}

/// Keys that belong to other services than the language model.
const OTHER_KEYS: [&str; 5] = [
    env_vars::MNEMON_EMBEDDER_KEY.name,
    env_vars::MNEMON_LONG_TERM_KEY.name,
    env_vars::MNEMON_INDEX_PASSWORD.name,
    env_vars::MNEMON_API_KEY.name,
    env_vars::MNEMON_API_KEY_FILE.name,
];

/// Whether a project may have this variable sent as a key: one that is meant for this program, or
/// that the user has allowed.
fn may_project_name(name: &str, allowed: &[String]) -> bool {
    let is_ours = name.starts_with("MNEMON_") && !OTHER_KEYS.contains(&name);
    is_ours || allowed.iter().any(|one| one == name)
}

fn refused_key_env(key_env: &Sourced<String>) -> String {
    let name = key_env.value.escape_debug();
    format!(
        "llm.key_env (from {}) names the variable {name}, which is not sent anywhere for a \
         project; call it MNEMON_…, or list it under llm.allowed_key_env in your own mnemon.toml",
        key_env.origin
    )
}

fn between(text: &str, most: u64) -> Result<u64, String> {
    match text.parse::<u64>() {
        Ok(number) if (1..=most).contains(&number) => Ok(number),
        _ => Err(format!(
            "`{}` must be a whole number between 1 and {most}",
            text.escape_debug()
        )),
    }
}

/// Decimal digits, at most nine of them after the point.
fn parse_money(text: &str) -> Result<Money, String> {
    let wrong = || {
        format!(
            "`{}` is not an amount; write it like 2.50",
            text.escape_debug()
        )
    };
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || !digits(part) || part.len() > 9 {
        return Err(wrong());
    }
    let nanos: u64 = format!("{part:0<9}").parse().map_err(|_| wrong())?;
    let whole: u64 = whole.parse().map_err(|_| wrong())?;
    let all = whole
        .checked_mul(1_000_000_000)
        .and_then(|all| all.checked_add(nanos));
    all.map(Money).ok_or_else(wrong)
}

impl Money {
    /// A price for a million as one for each, in billionths.
    pub fn of_one(self) -> u64 {
        self.0.div_ceil(1_000_000)
    }
}

impl fmt::Display for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, part) = (self.0 / 1_000_000_000, self.0 % 1_000_000_000);
        let part = format!("{part:09}");
        let part = part.trim_end_matches('0');
        match part.len() {
            0 | 1 => write!(f, "{whole}.{part:0<2}"),
            _ => write!(f, "{whole}.{part}"),
        }
    }
}

impl Serialize for Money {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_is_read_exactly() {
        for (text, nanos, shown) in [
            ("2.5", 2_500_000_000, "2.50"),
            ("10", 10_000_000_000, "10.00"),
            ("0.000001", 1000, "0.000001"),
        ] {
            let money = parse_money(text).unwrap();
            assert_eq!((money.0, money.to_string().as_str()), (nanos, shown));
        }
        assert_eq!(parse_money("2.50").unwrap().of_one(), 2500);
        for bad in [
            "",
            "-1",
            "1,5",
            "1e3",
            ".5",
            "1.",
            "0.0000000001",
            "99999999999999999999",
        ] {
            assert!(parse_money(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn hosts_are_found() {
        for (url, expected) in [
            ("https://api.openai.com/v1", "api.openai.com"),
            ("http://localhost:11434/v1", "localhost"),
            ("http://[::1]:8080", "[::1]"),
            ("http://127.0.0.1", "127.0.0.1"),
            ("http://localhost.evil.org/", "localhost.evil.org"),
        ] {
            assert_eq!(host(url), expected);
        }
    }
}
