//! The web page of the server: HTML made from the answers of the API.
//!
//! A [`Page`] calls operations through the port [`Api`], as any client of the API does, and renders
//! their JSON. It has no access of its own to the memory, so that rights, audit log and quotas apply
//! to it as they do to the API. Stored text is data: it is escaped, and characters that could change
//! how the page is read are shown as signs.
//!
//! Pages need no script to be read. The script `page.js` adds results as you type, the state of the
//! memory as it changes, and keys.

mod admin;
mod agents;
mod chart;
mod conversations;
mod demo;
mod graph;
mod history;
mod listing;
mod markdown;
mod overview;
mod provenance;
mod record;
mod search;
mod shell;
mod sign_in;
mod skills;
mod text;
mod webhooks;

use std::pin::Pin;
use std::sync::LazyLock;

use async_trait::async_trait;
use serde_json::{Map, Value, json};

pub use shell::failed;
pub use sign_in::sign_in;

/// The stylesheet, the script and the icon, with their media types.
pub const ASSETS: &[(&str, &str, &str)] = &[
    (STYLE, "text/css; charset=utf-8", include_str!("style.css")),
    (
        SCRIPT,
        "text/javascript; charset=utf-8",
        include_str!("page.js"),
    ),
    (ICON, "image/svg+xml", include_str!("icon.svg")),
];

const STYLE: &str = "/web/style.css";
const SCRIPT: &str = "/web/page.js";
const ICON: &str = "/web/icon.svg";

/// The address of an asset, with a hash of its content, so that browsers may keep it for ever.
fn versioned(path: &str) -> String {
    let asset = ASSETS.iter().find(|(known, ..)| *known == path);
    let text = asset.map_or("", |(.., text)| text);
    // FNV-1a.
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{path}?{hash:016x}")
}

static STYLE_PATH: LazyLock<String> = LazyLock::new(|| versioned(STYLE));
static SCRIPT_PATH: LazyLock<String> = LazyLock::new(|| versioned(SCRIPT));
static ICON_PATH: LazyLock<String> = LazyLock::new(|| versioned(ICON));

/// The Content-Security-Policy of every page.
pub const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
    connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// Where a key is asked for, and where it is given back.
pub const SIGN_IN: &str = "/sign-in";
pub const SIGN_OUT: &str = "/sign-out";

/// The tenant of the demonstration.
pub const DEMO_TENANT: &str = "demo";

/// Calls operations of the server in the name of the visitor.
#[async_trait]
pub trait Api: Send + Sync {
    /// Calls the operation of a route, such as `POST /v1/search`. Fields of the path, the query and
    /// the body are all in `fields`.
    async fn call(&self, route: &str, fields: Map<String, Value>) -> Result<Value, Failure>;

    /// A page of the audit log: `entries` of the visitor's tenant that are older than `before`, newest
    /// first, `next`, `unreadable`, and `is_kept`, which is false without a log.
    async fn audit(&self, before: Option<u64>, limit: usize) -> Result<Value, Failure>;

    /// Points in time with the number of changes up to each: `points` with `at` and `count`.
    async fn growth(&self) -> Result<Value, Failure>;

    /// The state of the server: `quota`, `uptime_seconds`, `routes`, `tenants`, `failures`, `model`.
    async fn server(&self) -> Result<Value, Failure>;
}

/// Why an operation was not carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The HTTP status.
    pub status: u16,
    pub code: String,
    pub detail: String,
    pub field: Option<String>,
    pub hint: Option<String>,
    /// Seconds after which the request may be repeated.
    pub retry_seconds: Option<u64>,
}

impl Failure {
    pub fn new(status: u16, code: &str, detail: &str) -> Self {
        Self {
            status,
            code: code.to_owned(),
            detail: detail.to_owned(),
            field: None,
            hint: None,
            retry_seconds: None,
        }
    }

    fn not_found(detail: &str) -> Self {
        Self::new(404, "not-found", detail)
    }
}

/// Who looks at a page.
#[derive(Debug, Clone)]
pub struct Visitor {
    /// The name of the key, or `local`.
    pub name: String,
    pub tenant: String,
    /// The user that the key is bound to.
    pub user: Option<String>,
    pub may_write: bool,
    pub is_admin: bool,
    /// Whether there is a session to end.
    pub is_signed_in: bool,
    pub demo: Demo,
    /// The token that every form must send.
    pub token: String,
}

impl Visitor {
    /// Whether the key may change a record: one that is bound to a user changes only that user's.
    fn may_change(&self, record: &Value) -> bool {
        let owner = record.pointer("/owner/user").and_then(Value::as_str);
        self.may_write && (self.user.is_none() || self.user.as_deref() == owner)
    }

    /// Whether the key may undo a commit of these changes: one that is bound to a user undoes its own
    /// commits, and those of which all records are that user's.
    fn may_undo(&self, changes: &[Value]) -> bool {
        let actor = format!("http:{}", self.name);
        let is_own = |change: &Value| {
            let mut versions = ["before", "after"]
                .iter()
                .filter_map(|name| change.get(name));
            change.get("actor").and_then(Value::as_str) == Some(actor.as_str())
                || versions.all(|version| version.is_null() || self.may_change(version))
        };
        self.may_write && (self.user.is_none() || changes.iter().all(is_own))
    }
}

/// What the visitor may do with the demonstration memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Demo {
    /// Only administrators of the server's own tenant may load it.
    No,
    Offered,
    /// The pages show the demonstration memory.
    Shown,
}

/// A request for a page.
pub struct Visit<'a> {
    pub api: &'a dyn Api,
    pub visitor: &'a Visitor,
    /// Values of the fields in the path, decoded.
    pub path: Vec<(String, String)>,
    pub query: Vec<(String, String)>,
    pub form: Vec<(String, String)>,
}

impl Visit<'_> {
    fn in_path(&self, name: &str) -> &str {
        shell::unescaped_part(value(&self.path, name).unwrap_or_default())
    }

    /// A field of the query that is not empty.
    fn asked(&self, name: &str) -> Option<&str> {
        value(&self.query, name).filter(|value| !value.trim().is_empty())
    }

    /// A field of the form that is not empty.
    fn sent(&self, name: &str) -> Option<&str> {
        value(&self.form, name).filter(|value| !value.trim().is_empty())
    }

    /// Calls an operation; fields that are null are left out.
    async fn call(&self, route: &str, fields: Value) -> Result<Value, Failure> {
        let mut fields = match fields {
            Value::Object(fields) => fields,
            _ => Map::new(),
        };
        fields.retain(|_, value| !value.is_null());
        self.api.call(route, fields).await
    }

    /// The same for a secondary part of a page: the page shows the failure in its place.
    async fn aside(&self, route: &str, fields: Value) -> Value {
        self.call(route, fields)
            .await
            .unwrap_or_else(|failure| json!({ "failure": failure.detail, "notices": [] }))
    }
}

fn value<'a>(fields: &'a [(String, String)], name: &str) -> Option<&'a str> {
    let mut all = fields.iter().filter(|(known, _)| known == name);
    all.next().map(|(_, value)| value.as_str())
}

/// What a page answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    Html(String),
    /// The browser has the newest state.
    Unchanged,
    /// Go to another page.
    See(String),
    /// Go to another page, and show the demonstration memory from now on, or no longer.
    ShowDemo(bool, String),
}

impl From<maud::Markup> for Answer {
    fn from(page: maud::Markup) -> Self {
        Self::Html(page.into_string())
    }
}

type Answering<'a> = Pin<Box<dyn Future<Output = Result<Answer, Failure>> + Send + 'a>>;

/// A page or a form of the site.
pub struct Page {
    /// `GET` shows, `POST` changes.
    pub method: &'static str,
    /// Fields stand in braces.
    pub path: &'static str,
    pub run: for<'a> fn(&'a Visit<'a>) -> Answering<'a>,
}

macro_rules! pages {
    ($($method:literal $path:literal $run:path;)+) => {
        /// Every page and every form.
        pub const PAGES: &[Page] = &[$(Page {
            method: $method,
            path: $path,
            run: |visit| Box::pin($run(visit)),
        }),+];
    };
}

pages! {
    "GET" "/" overview::show;
    "GET" "/search" search::show;
    "GET" "/records" record::list;
    "GET" "/records/{id}" record::show;
    "GET" "/records/{id}/delete" record::confirm_delete;
    "POST" "/records/{id}/delete" record::delete;
    "GET" "/history" history::list;
    "GET" "/history/{commit}" history::show;
    "POST" "/history/{commit}/undo" history::undo;
    "GET" "/conversations" conversations::list;
    "GET" "/conversations/{session}" conversations::show;
    "POST" "/conversations/{session}/fork" conversations::fork;
    "POST" "/conversations/{session}/snapshots" conversations::snapshot;
    "GET" "/skills" skills::list;
    "GET" "/skills/{id}" skills::show;
    "POST" "/skills/{id}/state" skills::change;
    "GET" "/agents" agents::list;
    "GET" "/agents/{agent}" agents::show;
    "GET" "/teams/{team}" agents::team;
    "GET" "/admin" admin::show;
    "GET" "/admin/audit" admin::audit;
    "POST" "/admin/keys" admin::create_key;
    "GET" "/admin/keys/{prefix}/revoke" admin::confirm_revoke;
    "POST" "/admin/keys/{prefix}/revoke" admin::revoke;
    "GET" "/admin/keys/{prefix}/rotate" admin::confirm_rotate;
    "POST" "/admin/keys/{prefix}/rotate" admin::rotate;
    "POST" "/admin/webhooks" webhooks::create;
    "GET" "/admin/webhooks/{webhook}/delete" webhooks::confirm_delete;
    "POST" "/admin/webhooks/{webhook}/delete" webhooks::delete;
    "GET" "/admin/webhooks/{webhook}/failed" webhooks::failed_deliveries;
    "POST" "/admin/webhooks/{webhook}/redeliver" webhooks::redeliver;
    "POST" "/demo" demo::load;
    "POST" "/demo/leave" demo::leave;
    "GET" "/demo/remove" demo::confirm_remove;
    "POST" "/demo/remove" demo::remove;
}

#[cfg(test)]
mod tests;
