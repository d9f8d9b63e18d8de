//! Take the saved states of a session away.

use mnemon_core::Ctx;
use mnemon_engine::session::{Session, SessionId, Sessions};
use serde::{Deserialize, Serialize};

use crate::Error;

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    pub session: SessionId,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Response {
    /// What is gone.
    pub deleted: SessionId,
}

pub async fn run(place: &dyn Sessions, ctx: &Ctx, request: Request) -> Result<Response, Error> {
    let session = Session::new(request.session.clone(), place);
    session.delete_or_fail(ctx).await?;
    Ok(Response {
        deleted: request.session,
    })
}
