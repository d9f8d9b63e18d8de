//! `[server]`: quotas, tokens, webhooks and the audit log. `[server.quota]` is for every tenant, and
//! `[server.tenants.NAME.quota]` for one; a tenant's table overrides single values.

use std::collections::BTreeMap;
use std::path::PathBuf;

use mnemon_core::{Invalid, Tenant};
use mnemon_engine::access::{ClaimNames, Quota};
use serde::Serialize;

use super::file::{File, Free, TENANTS, nearest};
use super::risk::{OPENS, SENDS, WEAKENS};
use super::{
    ConfigError, Environment, Key, Layers, NONE, Origin, Sourced, address, beside, file_key, key,
    keys, parse_limit,
};
use crate::env_vars;

keys! {
    AUDIT = file_key("server.audit", OPENS);
    TLS_CERT = key("server.tls_cert", env_vars::MNEMON_TLS_CERT, OPENS);
    TLS_KEY = key("server.tls_key", env_vars::MNEMON_TLS_KEY, OPENS);
    RECORDS = file_key("server.quota.records", WEAKENS);
    BYTES = file_key("server.quota.bytes", WEAKENS);
    REQUESTS = file_key("server.quota.requests_per_minute", WEAKENS);
    MODEL_TOKENS = file_key("server.quota.model_tokens_per_day", WEAKENS);
    /// With commas between them.
    WEBHOOK_HOSTS = file_key("server.webhook_hosts", SENDS);
    ISSUER = file_key("server.jwt.issuer", WEAKENS);
    AUDIENCE = file_key("server.jwt.audience", WEAKENS);
    JWKS = file_key("server.jwt.jwks", OPENS);
    LEEWAY = file_key("server.jwt.leeway_s", WEAKENS);
    TENANT_CLAIM = file_key("server.jwt.tenant_claim", WEAKENS);
    USER_CLAIM = file_key("server.jwt.user_claim", WEAKENS);
    AGENT_CLAIM = file_key("server.jwt.agent_claim", WEAKENS);
    RIGHTS_CLAIM = file_key("server.jwt.rights_claim", WEAKENS);
}

/// How far clocks may differ, in seconds.
const USUAL_LEEWAY_S: u32 = 60;
const MOST_LEEWAY_S: u32 = 600;

#[derive(Debug, Clone, Default)]
pub struct AccessSettings {
    /// The file of the audit log; `None` if there is none.
    pub audit: Option<PathBuf>,
    /// The certificate of the server and its private key.
    pub tls_cert: Option<PathBuf>,
    pub tls_key: Option<PathBuf>,
    pub quota: Quota,
    /// Tenants with their own quotas.
    pub tenants: BTreeMap<Tenant, Quota>,
    /// Hosts that webhooks may reach although their addresses are not public.
    pub webhook_hosts: Vec<String>,
    /// Tokens that are accepted besides keys; `None` if none are.
    pub tokens: Option<TokenSettings>,
}

/// JSON Web Tokens that a server accepts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenSettings {
    pub issuer: String,
    pub audience: String,
    /// Where the keys are that sign them.
    pub jwks: JwksPlace,
    pub leeway_s: u32,
    pub claims: ClaimNames,
}

/// A file, or an address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum JwksPlace {
    File(PathBuf),
    Url(String),
}

impl AccessSettings {
    pub(super) fn read(layers: &Layers<'_>, env: &Environment) -> Result<Self, ConfigError> {
        let limit = |key: &Key, unit| {
            let read = layers.read(key, None, |text| parse_limit(text, unit));
            read.map(|read| read.value)
        };
        let quota = Quota {
            records: limit(&RECORDS, "records")?,
            bytes: limit(&BYTES, "bytes")?,
            requests_per_minute: limit(&REQUESTS, "requests")?,
            model_tokens_per_day: limit(&MODEL_TOKENS, "tokens")?,
        };
        let hosts = layers.read(&WEBHOOK_HOSTS, Vec::new(), |text| {
            let hosts = text.split(',').map(str::trim);
            let hosts = hosts.filter(|host| !host.is_empty() && *host != NONE);
            Ok(hosts.map(str::to_owned).collect())
        });
        let usual = env.data().map(|folder| folder.join("audit.jsonl"));
        Ok(Self {
            audit: layers.path(&AUDIT, usual)?.value,
            tls_cert: layers.path(&TLS_CERT, None)?.value,
            tls_key: layers.path(&TLS_KEY, None)?.value,
            tenants: tenants(&layers.files, quota)?,
            webhook_hosts: hosts?.value,
            tokens: TokenSettings::read(layers)?,
            quota,
        })
    }
}

impl TokenSettings {
    fn read(layers: &Layers<'_>) -> Result<Option<Self>, ConfigError> {
        let some = |text: &str| Ok(Some(text.to_owned()));
        let issuer = layers.read(&ISSUER, None, some)?.value;
        let audience = layers.read(&AUDIENCE, None, some)?.value;
        let jwks = layers.jwks()?.value;
        let leeway = layers.read(&LEEWAY, USUAL_LEEWAY_S, |text| match text.parse() {
            Ok(seconds) if seconds <= MOST_LEEWAY_S => Ok(seconds),
            _ => Err(format!(
                "`{}` is not a number of seconds from 0 to {MOST_LEEWAY_S}",
                text.escape_debug()
            )),
        });
        let usual = ClaimNames::default();
        let claim = |key: &Key, usual: String| {
            let read = layers.read(key, usual, |text| Ok(text.to_owned()));
            read.map(|read| read.value)
        };
        let claims = ClaimNames {
            tenant: claim(&TENANT_CLAIM, usual.tenant)?,
            user: claim(&USER_CLAIM, usual.user)?,
            agent: claim(&AGENT_CLAIM, usual.agent)?,
            rights: claim(&RIGHTS_CLAIM, usual.rights)?,
        };
        let leeway_s = leeway?.value;
        match (issuer, audience, jwks) {
            (None, None, None) => Ok(None),
            (Some(issuer), Some(audience), Some(jwks)) => Ok(Some(Self {
                issuer,
                audience,
                jwks,
                leeway_s,
                claims,
            })),
            (issuer, audience, _) => {
                let key = match (issuer, audience) {
                    (None, _) => &ISSUER,
                    (_, None) => &AUDIENCE,
                    _ => &JWKS,
                };
                let mut set = [&ISSUER, &AUDIENCE, &JWKS].into_iter();
                let set = set.find_map(|key| layers.find(key).ok().flatten());
                let origin = set.map_or(Origin::Default, |(_, origin)| origin);
                let what = "is missing: issuer, audience and jwks must be set together".to_owned();
                let key = key.name;
                Err(ConfigError::Value { key, origin, what })
            }
        }
    }
}

impl Layers<'_> {
    fn jwks(&self) -> Result<Sourced<Option<JwksPlace>>, ConfigError> {
        let parse = |text: &str| match text {
            NONE => Ok(None),
            url if url.contains("://") => {
                address::check(url)?;
                Ok(Some(JwksPlace::Url(url.to_owned())))
            }
            path => Ok(Some(JwksPlace::File(PathBuf::from(path)))),
        };
        self.read_settled(&JWKS, None, parse, |place, origin| {
            if let Some(JwksPlace::File(path)) = place {
                *path = self.env.settle_path(path, beside(origin));
            }
        })
    }

    /// A path is found like a store: beside the file that names it. `none` stands for no file.
    fn path(
        &self,
        key: &Key,
        default: Option<PathBuf>,
    ) -> Result<Sourced<Option<PathBuf>>, ConfigError> {
        let parse = |text: &str| Ok((text != NONE).then(|| PathBuf::from(text)));
        self.read_settled(key, default, parse, |path, origin| {
            let found = path.take();
            *path = found.map(|path| self.env.settle_path(&path, beside(origin)));
        })
    }
}

/// The quotas of single tenants: those of the strongest file count.
fn tenants(files: &[File], default: Quota) -> Result<BTreeMap<Tenant, Quota>, ConfigError> {
    let mut tenants = BTreeMap::new();
    for file in files.iter().rev() {
        for free in file.under(TENANTS) {
            take(&mut tenants, default, free, file)?;
        }
    }
    Ok(tenants)
}

fn take(
    tenants: &mut BTreeMap<Tenant, Quota>,
    default: Quota,
    free: &Free,
    file: &File,
) -> Result<(), ConfigError> {
    let key = format!("{TENANTS}.{}", free.names.join("."));
    let wrong = |what: String| ConfigError::Syntax {
        path: file.path.clone(),
        line: free.line,
        what: format!("{key}: {what}"),
    };
    let [tenant, table, name] = free.names.as_slice() else {
        return Err(wrong(
            "write it as [server.tenants.NAME.quota] with one value per line".to_owned(),
        ));
    };
    let known = [&RECORDS, &BYTES, &REQUESTS, &MODEL_TOKENS];
    let known = known.map(|key| key.name.trim_start_matches("server.quota."));
    if table != "quota" || !known.contains(&name.as_str()) {
        return Err(ConfigError::UnknownKey {
            path: file.path.clone(),
            line: free.line,
            nearest: nearest(name, &known),
            key,
            known: known.join(", "),
        });
    }
    let tenant = tenant.parse::<Tenant>();
    let tenant = tenant.map_err(|invalid: Invalid| wrong(invalid.what))?;
    let limit = parse_limit(&free.value, name).map_err(wrong)?;
    let quota = tenants.entry(tenant).or_insert(default);
    match name.as_str() {
        "records" => quota.records = limit,
        "bytes" => quota.bytes = limit,
        "requests_per_minute" => quota.requests_per_minute = limit,
        _ => quota.model_tokens_per_day = limit,
    }
    Ok(())
}
