//! What is said, as lines of the frozen log of its session.

use mnemon_core::{Block, Ctx, Invalid, Message, Receipt, Role, Time, limits};
use serde_json::{Value, json};

use super::Window;
use crate::conversation::session::SessionId;
use crate::conversation::tiers::{Line, Said, after_purge, log_path};
use crate::records::Error;

impl Window<'_> {
    /// Notes where the log lies, before anything is written to it.
    pub(super) async fn mark_log(&self, ctx: &Ctx) -> Result<(), Error> {
        let session = self.owner.session.as_deref().unwrap_or_default();
        match &self.frozen_root {
            Some(root) => self.records.mark_root(ctx, session, root).await,
            None => Ok(()),
        }
    }

    /// Writes the messages to the log, if there is one. They are in the store already; with the
    /// call's key a retry writes them once more here, and the lines name their message.
    pub(super) async fn freeze(
        &self,
        ctx: &Ctx,
        messages: &[Message],
        receipt: &Receipt,
    ) -> Result<(), Error> {
        let Some(log) = &self.frozen else {
            return Ok(());
        };
        let session = self.owner.session.as_deref().unwrap_or_default();
        let session: SessionId = session.parse()?;
        let purged = self.records.purged_at(ctx, session.as_str()).await?;
        let at = after_purge(ctx.now, purged);
        let mut bytes = Vec::new();
        for (message, item) in messages.iter().zip(&receipt.items) {
            // A message without a name of its own has that of its record.
            let id = match message.id.is_empty() {
                true => item.id.as_str(),
                false => &message.id,
            };
            for line in lines(message, id, at)? {
                bytes.extend(line);
            }
        }
        log.append(&log_path(&session), &bytes).await?;
        Ok(())
    }
}

fn lines(message: &Message, id: &str, at: Time) -> Result<Vec<Vec<u8>>, Invalid> {
    let mut said: Vec<Said> = message
        .content
        .iter()
        .map(|b| of(message.role, b))
        .collect();
    if said.is_empty() {
        said.push(text(message.role, String::new()));
    }
    let lines = said.into_iter().map(|said| {
        let line = Line::new(said, at).to_bytes_of(id)?;
        match line.len() > limits::LOG_LINE_BYTES {
            true => {
                let most = limits::LOG_LINE_BYTES;
                let what = format!("has {} bytes, a line of a log at most {most}", line.len());
                Err(Invalid::new("message", what))
            }
            false => Ok(line),
        }
    });
    lines.collect()
}

fn text(role: Role, content: String) -> Said {
    match role {
        Role::User => Said::User { content },
        Role::Assistant | Role::System => Said::Thought { content },
        Role::Tool => Said::Observation {
            result: Value::String(content),
        },
    }
}

fn of(role: Role, block: &Block) -> Said {
    match block {
        Block::Text { text: said } => text(role, said.clone()),
        Block::Thinking { thinking, .. } => Said::Thought {
            content: thinking.clone(),
        },
        Block::Image { .. } => text(role, "[image]".to_owned()),
        Block::Audio { .. } => text(role, "[sound]".to_owned()),
        Block::Video { .. } => text(role, "[video]".to_owned()),
        Block::ToolUse { name, input, .. } => Said::Action {
            tool: name.clone(),
            params: Value::Object(input.clone()),
        },
        Block::ToolResult { output, .. } => Said::Observation {
            result: match output.as_slice() {
                [Block::Text { text }] => json!(text),
                blocks => json!(blocks),
            },
        },
    }
}
