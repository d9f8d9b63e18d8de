//! Read one note, with its content if that is asked for.

use mnemon_core::{Ctx, Id, Viewer, limits};
use mnemon_engine::Memory;
use mnemon_engine::notes::{NoteText, NoteView};
use serde::{Deserialize, Serialize};

use crate::Error;

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    pub id: Id,
    /// Who reads it; a note that they may not see is not there.
    pub viewer: Viewer,
    /// The content itself, not only what describes the note.
    #[serde(default)]
    pub content: bool,
    /// Where in the content to begin, in UTF-16 units.
    #[serde(default)]
    pub offset: usize,
    /// At most so many units of it; all when nobody says.
    #[serde(default)]
    pub length: Option<usize>,
    /// Without `content`: whether to show its beginning; unset is what the configuration says.
    #[serde(default)]
    pub include_content: Option<bool>,
}

impl Request {
    /// What describes this note.
    #[must_use]
    pub fn new(id: Id, viewer: Viewer) -> Self {
        Self {
            id,
            viewer,
            content: false,
            offset: 0,
            length: None,
            include_content: None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Response {
    Text(NoteText),
    View(NoteView),
}

/// A note that is not there is an error.
pub async fn run(memory: &Memory, ctx: &Ctx, request: Request) -> Result<Response, Error> {
    let (notes, viewer, id) = (memory.notes(), &request.viewer, &request.id);
    let found = if request.content {
        let most = request.length.unwrap_or(limits::CONTENT_BYTES);
        let text = notes.text(ctx, viewer, id, request.offset, most).await?;
        text.map(Response::Text)
    } else {
        let view = notes.get(ctx, viewer, id, request.include_content).await?;
        view.map(Response::View)
    };
    found.ok_or_else(|| Error::Missing(vec![request.id]))
}
