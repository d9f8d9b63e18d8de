//! A tool: its name, when to use it, what it may be told, and the operation behind it.

use std::pin::Pin;
use std::sync::Arc;

use mnemon_core::Ctx;
use rmcp::model::{ProgressNotificationParam, ProgressToken, ToolAnnotations};
use rmcp::{Peer, RoleServer};
use serde_json::{Map, Value};

use super::answer::{Answer, MAX_TOKENS, MIN_TOKENS, noted_tokens};
use super::arguments::Arguments;
use super::field::{self, Field};
use super::profile::Profile;
use super::served::Served;
use mnemon_operations::operation::{self, Access, Interface, Operation};
use mnemon_operations::{Error, schema};

/// What a tool does to the memory, for whoever asks people before it is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Touch {
    Reads,
    /// Adds something; what is there stays.
    Adds,
    /// Changes what is there; doing it again changes nothing more.
    Changes,
    /// Changes what is there and adds to it.
    Edits,
    /// Takes something away.
    Removes,
}

/// What answers a call.
pub(super) type Running<'a> = Pin<Box<dyn Future<Output = Result<Answer, Error>> + Send + 'a>>;

/// A tool that a client can call.
pub(super) struct Tool {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    /// What it does and when to use it.
    pub(super) about: &'static str,
    pub(super) fields: Vec<Field>,
    pub(super) touch: Touch,
    /// The profiles it belongs to, beside `all`.
    pub(super) profiles: &'static [Profile],
    pub(super) run: for<'a> fn(&'a Served, Call) -> Running<'a>,
}

impl Tool {
    /// The tool of an operation.
    pub(super) fn of<O: Operation<On>, On>(
        touch: Touch,
        title: &'static str,
        about: &'static str,
        profiles: &'static [Profile],
        run: for<'a> fn(&'a Served, Call) -> Running<'a>,
    ) -> Self {
        let fields = O::fields().into_iter();
        Self {
            name: O::TOOL,
            title,
            about,
            fields: fields.filter(|field| field.is_on(Interface::Mcp)).collect(),
            touch,
            profiles,
            run,
        }
    }

    /// The same with a field by which a caller asks for a longer or shorter answer.
    pub(super) fn with_max_tokens(mut self) -> Self {
        self.fields.push(max_tokens());
        self
    }

    /// The same with another default of a field than the command has.
    pub(super) fn with_default(mut self, name: &str, value: &'static str) -> Self {
        let mut fields = self.fields.iter_mut();
        if let Some(field) = fields.find(|field| field.name == name) {
            field.default = Some(value);
        }
        self
    }

    /// The description with the schema of its structured content.
    pub(super) fn with_answer(&self, described: rmcp::model::Tool) -> rmcp::model::Tool {
        match schema::of_tool(self.name) {
            Some(schema) => described.with_raw_output_schema(Arc::new(schema)),
            None => described,
        }
    }

    /// As a client is told of it.
    pub(super) fn described(&self) -> rmcp::model::Tool {
        self.with_schema(field::schema(&self.fields))
            .with_title(self.title)
    }

    /// The same in as few tokens as possible.
    pub(super) fn described_briefly(&self) -> rmcp::model::Tool {
        self.with_schema(field::brief_schema(&self.fields))
    }

    /// Hints are left out where they say what a client assumes without them.
    fn with_schema(&self, schema: Map<String, Value>) -> rmcp::model::Tool {
        // Nothing outside this memory is asked or changed.
        let hints = ToolAnnotations::new().open_world(false);
        let hints = match self.touch {
            Touch::Reads => hints.read_only(true),
            Touch::Adds | Touch::Edits => hints.destructive(false),
            Touch::Changes => hints.destructive(false).idempotent(true),
            Touch::Removes => hints.destructive(true).idempotent(true),
        };
        rmcp::model::Tool::new(self.name, self.about, Arc::new(schema)).with_annotations(hints)
    }
}

/// One call of a tool.
pub(super) struct Call {
    pub(super) arguments: Arguments,
    pub(super) progress: Progress,
    /// Whose memory, and when. Its notices become part of the answer.
    pub(super) ctx: Ctx,
    /// Tokens that were asked for.
    pub(super) asked: usize,
    /// Whether the answer has structured content beside its text.
    pub(super) structured: bool,
    /// Whether the schema of the answer is published: then also a long text is repeated as data.
    pub(super) has_schema: bool,
}

impl Call {
    /// Runs the operation for the user that is named, or that the server is for.
    pub(super) async fn run<O: Operation>(&mut self, served: &Served) -> Result<O::Answer, Error> {
        let mut arguments = std::mem::take(&mut self.arguments);
        let user = served.owner(arguments.take_text("user")).user;
        let access = Access {
            memory: &served.memory,
            ctx: &self.ctx,
            config: &served.config,
            interface: Interface::Mcp,
            user: user.as_deref(),
            agent: None,
            own_only: served.is_bound(),
            watch: &operation::unwatched,
        };
        operation::call::<O, _>(&access, arguments).await
    }

    /// Tokens that the answer may have beside the notices so far.
    pub(super) fn tokens(&self) -> usize {
        self.asked - noted_tokens(&self.ctx.notices.list(), self.asked)
    }

    /// Tokens of the text of an answer whose data repeats the text, if it has data.
    pub(super) fn text_tokens(&self) -> usize {
        match self.has_schema {
            true => self.tokens() * 2 / 5,
            false => self.tokens(),
        }
    }
}

/// The field by which a caller asks for a longer or shorter answer.
pub(super) fn max_tokens() -> Field {
    let about = "Tokens the answer may have";
    let field = Field::whole("max_tokens", MIN_TOKENS as u64, MAX_TOKENS as u64, about);
    let aliases = &["budget", "token_limit", "token_budget"];
    field.default("2000").or(aliases).rare()
}

/// Tells the caller how far a long call is, if it asked for that.
pub(super) struct Progress(Option<(Peer<RoleServer>, ProgressToken)>);

impl Progress {
    pub(super) fn new(peer: Peer<RoleServer>, token: Option<ProgressToken>) -> Self {
        Self(token.map(|token| (peer, token)))
    }

    pub(super) async fn tell(&self, done: u32, total: u32, message: &str) {
        if let Some((peer, token)) = &self.0 {
            let told = ProgressNotificationParam::new(token.clone(), f64::from(done))
                .with_total(f64::from(total))
                .with_message(message);
            // Somebody who does not listen any more misses nothing but this.
            let _ = peer.notify_progress(told).await;
        }
    }
}
