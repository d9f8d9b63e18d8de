//! What goes into the prompt, within a budget of tokens.

use std::collections::BTreeMap;

use mnemon_core::budget::{Counter, Family, Form, Section, Why};
use mnemon_core::{Ctx, limits};
use mnemon_engine::{Context, ContextQuery, Memory, MemoryQuery};
use serde::{Deserialize, Serialize};

use crate::{Error, wiring};

/// Tokens of a context when nobody says.
pub const BUDGET: usize = 2000;

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    pub user: String,
    pub session: String,
    pub agent: String,
    #[serde(default)]
    pub flow: Option<String>,
    #[serde(default)]
    pub node: Option<String>,
    /// What facts, documents and skills are searched for.
    #[serde(default)]
    pub query: Option<String>,
    #[serde(default)]
    pub task_type: Option<String>,
    /// From 1 to [`mnemon_core::limits::CONTEXT_TOKENS`]; never exceeded.
    #[serde(default = "budget")]
    pub budget: usize,
    /// The model that will read it. One that is not known is counted by the bound.
    #[serde(default)]
    pub model: Option<String>,
    #[serde(default = "markdown")]
    pub form: Form,
    /// Tokens that a section is sure of, instead of the usual floor.
    #[serde(default)]
    pub floors: BTreeMap<Section, usize>,
    /// Tokens that a section may have; where the policy has a lower cap, that holds.
    #[serde(default)]
    pub ceilings: BTreeMap<Section, usize>,
    /// Whether the text may end with what was left out.
    #[serde(default = "yes")]
    pub also_known: bool,
}

fn budget() -> usize {
    BUDGET
}

fn markdown() -> Form {
    Form::Markdown
}

fn yes() -> bool {
    true
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Response {
    #[serde(flatten)]
    pub context: Context,
    /// Whether the model's name was known, if one was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_known: Option<bool>,
    /// Where nothing fits, the smallest budget that holds something.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub needs: Option<usize>,
}

pub async fn run(memory: &Memory, ctx: &Ctx, request: Request) -> Result<Response, Error> {
    let named = request.model.as_deref().map(Family::of);
    let family = named.map_or(Family::Any, |named| named.family);
    let about = MemoryQuery {
        flow_id: request.flow,
        node_id: request.node,
        query: request.query,
        task_type: request.task_type,
        ..MemoryQuery::new(request.user, request.session, request.agent, &[])
    };
    let query = ContextQuery {
        form: request.form,
        floors: request.floors,
        ceilings: request.ceilings,
        also_known: request.also_known,
        ..ContextQuery::new(about, request.budget)
    };
    let counter = wiring::counter(family);
    let context = memory.context(ctx, &query, counter.as_ref()).await?;
    let needs = match holds(&context) || !misses(&context) {
        true => None,
        false => least(memory, ctx, query, counter.as_ref()).await?,
    };
    Ok(Response {
        context,
        model_known: named.map(|named| named.known),
        needs,
    })
}

fn holds(context: &Context) -> bool {
    // As messages nothing is an empty list.
    !matches!(context.compiled.text.trim(), "" | "[]")
}

/// Whether something is left out that would be there with more room.
fn misses(context: &Context) -> bool {
    let mut left = context.compiled.left_out.iter();
    left.any(|left| !matches!(left.why, Why::Duplicate { .. } | Why::Empty))
}

/// The smallest budget that holds something: found by trying, as nobody asks for so little often.
async fn least(
    memory: &Memory,
    ctx: &Ctx,
    mut query: ContextQuery,
    counter: &dyn Counter,
) -> Result<Option<usize>, Error> {
    let most = limits::CONTEXT_TOKENS;
    let (mut too_small, mut enough) = (query.tokens, query.tokens);
    while too_small == enough {
        if enough >= most {
            return Ok(None);
        }
        query.tokens = enough.saturating_mul(2).min(most);
        enough = query.tokens;
        if !holds(&memory.context(ctx, &query, counter).await?) {
            too_small = enough;
        }
    }
    while too_small + 1 < enough {
        query.tokens = usize::midpoint(too_small, enough);
        match holds(&memory.context(ctx, &query, counter).await?) {
            true => enough = query.tokens,
            false => too_small = query.tokens,
        }
    }
    Ok(Some(enough))
}
