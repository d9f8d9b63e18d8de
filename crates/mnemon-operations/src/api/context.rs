//! What goes into the prompt, within a budget of tokens.

use mnemon_core::budget::{Counter, Family, Why};
use mnemon_core::{Ctx, limits};
use mnemon_engine::{Context, ContextQuery, Memory};
use serde::{Deserialize, Serialize};

use crate::{Error, wiring};

/// Tokens of a context when nobody says.
pub const BUDGET: usize = 2000;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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

/// `model` will read it; one that is not known is counted by the bound.
pub async fn run(
    memory: &Memory,
    ctx: &Ctx,
    query: ContextQuery,
    model: Option<&str>,
) -> Result<Response, Error> {
    let named = model.map(Family::of);
    let family = named.map_or(Family::Any, |named| named.family);
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
