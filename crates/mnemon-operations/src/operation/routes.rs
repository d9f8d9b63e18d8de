//! The route of each operation that another machine can ask for: the one table that the HTTP server,
//! its OpenAPI document and the remote command line are made from.

use std::pin::Pin;
use std::sync::Arc;

use mnemon_core::Ctx;
use mnemon_engine::Memory;
use mnemon_engine::access::{Amount, Caller, Rights};
use mnemon_engine::agentfiles::AgentFiles;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::*;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    Get,
    Post,
    Patch,
    Delete,
}

impl Method {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }

    /// Whether the fields are in a JSON body; otherwise they are in the query.
    pub fn has_body(self) -> bool {
        matches!(self, Self::Post | Self::Patch)
    }
}

#[derive(Debug, Clone, Copy)]
pub struct Route {
    pub method: Method,
    /// Fields in the path stand in braces.
    pub path: &'static str,
    pub right: Rights,
    pub reach: Reach,
    /// Whether it may take long, so that it can be watched.
    pub is_long: bool,
    /// Whether its answers are written as text directly: those of searches, which show no version of a
    /// record that a client could use.
    pub is_text: bool,
}

/// What a route concerns, and so whose keys may ask for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// The records that the caller may see.
    Caller,
    /// The whole tenant: a key of one user does not do.
    Tenant,
    /// All tenants: only a key of the tenant that the server is configured for does.
    Server,
}

/// An operation that another machine can ask for.
pub trait Routed<On = Arc<Memory>>: Operation<On, Answer: Serialize + DeserializeOwned> {
    const ROUTE: Route;

    /// The answer in the JSON that every interface uses, which `docs/json.md` describes.
    fn json(answer: &Self::Answer) -> Result<Value, Error> {
        serde_json::to_value(answer).map_err(Error::no_json)
    }

    /// The same as text.
    fn text(answer: &Self::Answer) -> Result<String, Error> {
        serde_json::to_string(answer).map_err(Error::no_json)
    }

    /// The answer that was sent as JSON.
    fn from_json(json: Value) -> serde_json::Result<Self::Answer> {
        serde_json::from_value(json)
    }
}

/// What a tenant's operations work on.
pub struct Seat {
    pub memory: Arc<Memory>,
    pub agents: AgentFiles,
    pub config: Config,
}

/// The part of a seat that an operation works on.
pub trait Target: Send + Sync + Sized + 'static {
    fn of(seat: &Seat) -> &Self;
}

impl Target for Arc<Memory> {
    fn of(seat: &Seat) -> &Self {
        &seat.memory
    }
}

impl Target for AgentFiles {
    fn of(seat: &Seat) -> &Self {
        &seat.agents
    }
}

impl Target for Config {
    fn of(seat: &Seat) -> &Self {
        &seat.config
    }
}

impl Target for Seat {
    fn of(seat: &Seat) -> &Self {
        seat
    }
}

/// An answer in JSON.
#[derive(Debug)]
pub enum Json {
    Value(Value),
    /// To be sent as it is, which takes less time.
    Text(String),
}

impl Json {
    pub fn into_value(self) -> Result<Value, Error> {
        match self {
            Self::Value(value) => Ok(value),
            Self::Text(text) => serde_json::from_str(&text).map_err(Error::no_json),
        }
    }
}

/// How the caller wants the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Value,
    /// As text, where the answer needs nothing added: no notice and no version of a record.
    Text,
}

type Answering<'a> = Pin<Box<dyn Future<Output = Result<Json, Error>> + Send + 'a>>;

/// A routed operation, without its type.
pub struct Endpoint {
    pub route: Route,
    pub command: &'static str,
    pub fields: Vec<Field>,
    pub run: for<'a> fn(&'a Seat, &'a Ctx, &'a Caller, Arguments, Watch<'a>, Form) -> Answering<'a>,
}

/// Routes that take records away, or bring earlier ones back.
const MAKE_ROOM: &[&str] = &[
    "/v1/undo",
    "/v1/forget",
    "/v1/notes/clear",
    "/v1/conversations/{session}/clear",
];
/// Fields whose items become a record each.
const MANY: &[&str] = &["content", "documents", "message", "skills"];

/// Whether a part of a path in braces is the field of this name. `id` stands for `ids`, too, as one
/// position of a path has one name.
pub fn is_in_path(part: &str, field: &str) -> bool {
    part == field || field.strip_suffix('s') == Some(part)
}

impl Endpoint {
    /// The command, or else the method and the path.
    pub fn name(&self) -> String {
        match self.command {
            "" => format!("{} {}", self.route.method.as_str(), self.route.path),
            command => command.to_owned(),
        }
    }

    /// How much this call may add to the memory, for the quotas of the tenant. What makes room, or
    /// manages the server, is never refused for a lack of room.
    pub fn added(&self, arguments: &Arguments, bytes: usize) -> Option<Amount> {
        let route = &self.route;
        let records = match route.method {
            Method::Post if !MAKE_ROOM.contains(&route.path) => {
                let items = MANY.iter().filter_map(|field| arguments.items(field));
                let data = arguments.object("data").into_iter().flatten();
                let inner = data.filter_map(|(_, value)| value.as_array().map(Vec::len));
                items.chain(inner).max().unwrap_or(1).max(1) as u64
            }
            Method::Patch => 0,
            _ => return None,
        };
        let bytes = bytes as u64;
        (route.right == Rights::Write).then_some(Amount { records, bytes })
    }

    /// The field that stands in the path under this name.
    pub fn in_path(&self, part: &str) -> Option<&Field> {
        let mut fields = self.fields.iter();
        fields.find(|field| is_in_path(part, field.name))
    }

    fn of<O: Routed<On>, On: Target>() -> Self {
        let fields = O::fields().into_iter();
        Self {
            route: O::ROUTE,
            command: O::COMMAND,
            fields: fields
                .filter(|field| field.is_on(Interface::Http))
                .collect(),
            run: |seat, ctx, caller, arguments, watch, form| {
                Box::pin(run::<O, On>(seat, ctx, caller, arguments, watch, form))
            },
        }
    }
}

async fn run<O: Routed<On>, On: Target>(
    seat: &Seat,
    ctx: &Ctx,
    caller: &Caller,
    arguments: Arguments,
    watch: Watch<'_>,
    form: Form,
) -> Result<Json, Error> {
    let access = Access {
        memory: On::of(seat),
        ctx,
        config: &seat.config,
        interface: Interface::Http,
        user: caller.user.as_deref(),
        agent: caller.agent.as_deref(),
        own_only: caller.user.is_some(),
        watch,
    };
    let answer = call::<O, On>(&access, arguments).await?;
    // Only some routes, as the code that writes an answer as text exists for each of them.
    if const { O::ROUTE.is_text } && form == Form::Text && ctx.notices.list().is_empty() {
        return Ok(Json::Text(O::text(&answer)?));
    }
    Ok(Json::Value(O::json(&answer)?))
}

/// Each row: the method and the path, the right that it needs, the operation; behind it the memory
/// that it works on, what it concerns, whether it may take long, whether its answer is written as
/// text, and the module that knows its JSON, where these are not the usual ones.
macro_rules! routes {
    ($($method:ident $path:literal $right:ident $operation:ty $(, on $on:ty)? $(, whole $reach:ident)? $(, takes $long:ident)? $(, sent as $text:ident)? $(, json $($json:ident)::+)?;)+) => {
        $(
            impl Routed $(<$on>)? for $operation {
                const ROUTE: Route = Route {
                    method: Method::$method,
                    path: $path,
                    right: Rights::$right,
                    reach: routes!(@reach $($reach)? $($on)?),
                    is_long: routes!(@is $($long)?),
                    is_text: routes!(@is $($text)?),
                };
                $(
                    fn json(answer: &Self::Answer) -> Result<Value, Error> {
                        $($json)::+::to_json(answer)
                    }

                    fn text(answer: &Self::Answer) -> Result<String, Error> {
                        Ok($($json)::+::to_json(answer)?.to_string())
                    }

                    fn from_json(json: Value) -> serde_json::Result<Self::Answer> {
                        $($json)::+::from_json(json)
                    }
                )?
            }
        )+

        /// All of them.
        pub fn endpoints() -> Vec<Endpoint> {
            vec![$(Endpoint::of::<$operation, routes!(@on $($on)?)>()),+]
        }
    };
    (@reach) => { Reach::Caller };
    (@reach server $($on:ty)?) => { Reach::Server };
    // Agents' and teams' files, and the configuration, belong to no user.
    (@reach $($tenant:tt)+) => { Reach::Tenant };
    (@is) => { false };
    (@is $it:ident) => { true };
    (@on) => { Arc<Memory> };
    (@on $on:ty) => { $on };
}

routes! {
    Post "/v1/records" Write Add;
    Get "/v1/records" Read List;
    Get "/v1/records/{id}" Read Get;
    Patch "/v1/records/{id}" Write Update;
    Delete "/v1/records/{id}" Write ForgetOne;
    Post "/v1/search" Read Search, sent as text;
    Post "/v1/context" Read Context, sent as text;
    Get "/v1/history" Read History;
    Post "/v1/undo" Write Undo;

    Post "/v1/notes" Write NoteAdd, json notes::json;
    Get "/v1/notes" Read NoteList, json notes::json;
    Post "/v1/notes/search" Read NoteSearch, sent as text, json notes::json::hits;
    Get "/v1/notes/stats" Read NoteStats, json notes::json;
    Post "/v1/notes/clear" Write NoteClear, json notes::json;
    Post "/v1/notes/cleanup" Admin NoteCleanup, whole tenant, json notes::json;
    Get "/v1/notes/{id}" Read NoteGet, json notes::json;
    Delete "/v1/notes/{id}" Write NoteDelete, json notes::json;

    Post "/v1/documents" Write DocumentAdd, takes long;
    Post "/v1/documents/known" Read DocumentKnown;

    Post "/v1/conversations/{session}/messages" Write ChatAppend;
    Get "/v1/conversations/{session}/prepared" Read ChatRead;
    Post "/v1/conversations/{session}/record" Write ChatRecord;
    Get "/v1/conversations/{session}/replaced/{working_context_offload_uuid}" Read ChatReload;
    Post "/v1/conversations/query" Read ChatQuery;
    Get "/v1/conversations" Read ChatList;
    Delete "/v1/conversations/{session}" Write ChatDelete;
    Get "/v1/conversations/{session}/window" Read ChatShow;
    Get "/v1/conversations/{session}/messages" Read ChatTail;
    Get "/v1/conversations/{session}/compressions" Read ChatEvents;
    Post "/v1/conversations/{session}/compressions" Write ChatCompress;
    Post "/v1/conversations/{session}/compressions/preview" Read ChatCompressPreview;
    Post "/v1/conversations/{session}/fork" Write ChatFork;
    Post "/v1/conversations/{session}/snapshots" Write ChatSnapshot;
    Post "/v1/conversations/{session}/snapshots/{label}/restore" Write ChatRestore;
    Delete "/v1/conversations/{session}/snapshots/{label}" Write ChatDeleteSnapshot;
    Post "/v1/conversations/{session}/clear" Write ChatClear;

    Post "/v1/long-term/record" Write Record;
    Post "/v1/long-term/retrieve" Read Retrieve, sent as text;

    Post "/v1/read" Read Read, sent as text;
    Post "/v1/write" Write Write;
    Get "/v1/stats" Read Stats, whole tenant;
    Post "/v1/forget" Write Forget;
    Post "/v1/forget/preview" Read ForgetPreview;

    Get "/v1/policies" Read PolicyShow, on Config;
    Post "/v1/upkeep" Admin Upkeep, whole tenant, takes long;
    Post "/v1/reembed" Admin Reembed, whole tenant, takes long;
    Post "/v1/index/check" Admin IndexCheck, whole tenant, takes long;
    Post "/v1/index/rebuild" Admin IndexRebuild, whole server, takes long;
    Get "/v1/doctor" Admin Doctor, on Config, whole server, takes long;

    Get "/v1/sessions" Read SessionList;
    Get "/v1/sessions/{session}" Read SessionLoad;
    Post "/v1/sessions/{session}" Write SessionSave;
    Delete "/v1/sessions/{session}" Write SessionDelete;
    Post "/v1/sessions/{session}/fork" Write SessionFork;
    Post "/v1/sessions/{session}/snapshots" Write SessionSnapshot;
    Post "/v1/sessions/{session}/restore" Write SessionRestore;

    Post "/v1/experience" Write LogStep;
    Get "/v1/experience/failures" Read Failures;
    Get "/v1/experience/traces" Read Traces;

    Get "/v1/skills" Read SkillList;
    Post "/v1/skills/search" Read SkillSearch, sent as text;
    Get "/v1/skills/export" Read SkillExport;
    Post "/v1/skills/import" Write SkillImport;
    Get "/v1/skills/{id}" Read SkillShow;
    Post "/v1/skills/{id}/approve" Write SkillApprove, whole tenant;
    Post "/v1/skills/{id}/reject" Write SkillReject, whole tenant;
    Post "/v1/skills/{id}/retire" Write SkillRetire, whole tenant;
    Post "/v1/skills/{id}/pin" Write SkillPin, whole tenant;
    Post "/v1/skills/{id}/unpin" Write SkillUnpin, whole tenant;
    Post "/v1/skills/{id}/edit" Write SkillEdit, whole tenant;

    Post "/v1/keys" Admin KeyCreate;
    Get "/v1/keys" Admin KeyList;
    Delete "/v1/keys/{prefix}" Admin KeyRevoke;
    Post "/v1/keys/{prefix}/rotate" Admin KeyRotate;

    Post "/v1/webhooks" Admin WebhookCreate, whole tenant;
    Get "/v1/webhooks" Admin WebhookList, whole tenant;
    Get "/v1/webhooks/{webhook}/failed" Admin WebhookFailed, whole tenant;
    Post "/v1/webhooks/{webhook}/redeliver" Admin WebhookRedeliver, whole tenant;
    Delete "/v1/webhooks/{webhook}" Admin WebhookDelete, whole tenant;

    Post "/v1/learn" Write LearnRun, whole tenant, takes long;
    Get "/v1/learn" Read LearnState, whole tenant;
    Post "/v1/learn/preview" Read LearnDryRun, whole tenant;
    Post "/v1/learn/improve" Write LearnImprove, whole tenant, takes long;

    Get "/v1/agents" Read agents::List, on AgentFiles;
    Post "/v1/agents" Write agents::New, on AgentFiles;
    Get "/v1/agents/lint" Read agents::Lint, on AgentFiles;
    Post "/v1/agents/index" Write agents::Index, on Seat;
    Post "/v1/agents/{agent}/activate" Read agents::Activate, on AgentFiles;
    Post "/v1/agents/{agent}/context" Write agents::Context, on AgentFiles;
    Post "/v1/agents/{agent}/decisions" Write agents::Decide, on AgentFiles;
    Post "/v1/agents/{agent}/learnings" Write agents::Learn, on AgentFiles;
    Patch "/v1/agents/{agent}/entries" Write agents::Edit, on AgentFiles;
    Delete "/v1/agents/{agent}/entries" Write agents::Remove, on AgentFiles;
    Post "/v1/agents/{agent}/end" Write agents::End, on AgentFiles;
    Post "/v1/agents/{agent}/archive" Write agents::Archive, on AgentFiles;

    Get "/v1/teams" Read teams::List, on AgentFiles;
    Post "/v1/teams" Write teams::New, on AgentFiles;
    Get "/v1/teams/{team}" Read teams::Status, on AgentFiles;
    Post "/v1/teams/{team}/activate" Read teams::Activate, on AgentFiles;
    Post "/v1/teams/{team}/context" Write teams::Context, on AgentFiles;
    Post "/v1/teams/{team}/decisions" Write teams::Decide, on AgentFiles;
    Patch "/v1/teams/{team}/entries" Write teams::Edit, on AgentFiles;
    Delete "/v1/teams/{team}/entries" Write teams::Remove, on AgentFiles;
    Post "/v1/teams/{team}/handoffs" Write teams::Handoff, on AgentFiles;
    Post "/v1/teams/{team}/handoffs/accept" Write teams::Accept, on AgentFiles;
    Post "/v1/teams/{team}/handoffs/complete" Write teams::Complete, on AgentFiles;
    Post "/v1/teams/{team}/block" Write teams::Block, on AgentFiles;
}
