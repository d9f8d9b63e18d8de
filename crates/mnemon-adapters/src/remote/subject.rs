//! Whose memory is meant, in the names of a service, and what was said.

use mnemon_core::{Block, Ctx, Message, Owner, Role, Tenant, Time};
use serde_json::{Value, json};

/// Whose memory is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Subject {
    /// The name at the service. No two users of any tenants share one.
    pub(super) user: String,
    pub(super) agent: Option<String>,
    pub(super) session: Option<String>,
}

impl Subject {
    pub(super) fn of(ctx: &Ctx, owner: &Owner) -> Self {
        Self {
            user: user_name(&ctx.tenant, owner.user.as_deref()),
            agent: owner.agent.clone(),
            session: owner.session.clone(),
        }
    }

    /// A name of this conversation that no other conversation of any user has: 32 hexadecimal digits.
    pub(super) fn conversation(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        for part in [Some(&self.user), self.agent.as_ref(), self.session.as_ref()] {
            let bytes = part.map_or(&[][..], |part| part.as_bytes());
            hasher.update(&[u8::from(part.is_some())]);
            hasher.update(&(bytes.len() as u64).to_le_bytes());
            hasher.update(bytes);
        }
        let digest = hasher.finalize().to_hex();
        digest.chars().take(32).collect()
    }
}

/// Users of the default tenant keep their names. Names of other tenants, and those with a colon, come
/// after the tenant's name and a colon, which no tenant's name contains. Records without a user have
/// the tenant's name and a colon.
fn user_name(tenant: &Tenant, user: Option<&str>) -> String {
    match user {
        Some(user) if *tenant == Tenant::default() && !user.contains(':') => user.to_owned(),
        user => format!("{tenant}:{}", user.unwrap_or_default()),
    }
}

/// Words of a user or an assistant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Said {
    pub(super) role: &'static str,
    pub(super) text: String,
    /// When it was said, if the message has the time in the form of RFC 3339.
    pub(super) at: Option<Time>,
}

impl Said {
    /// Tool calls, their results and system messages are not for a memory.
    pub(super) fn of(message: &Message) -> Option<Self> {
        let is_call =
            |block: &Block| matches!(block, Block::ToolUse { .. } | Block::ToolResult { .. });
        let role = match message.role {
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::System | Role::Tool => return None,
        };
        let text = message.text_content();
        let is_wanted = !text.trim().is_empty() && !message.content.iter().any(is_call);
        let at = message.timestamp.as_deref();
        let at = at.and_then(|at| at.parse().ok());
        is_wanted.then_some(Self { role, text, at })
    }

    /// The form that most services take.
    pub(super) fn json(&self) -> Value {
        json!({"role": self.role, "content": self.text})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_conversations_share_a_name() {
        let subject = |user: &str, agent: Option<&str>, session: Option<&str>| Subject {
            user: user.to_owned(),
            agent: agent.map(str::to_owned),
            session: session.map(str::to_owned),
        };
        let names = [
            subject("ann", None, None),
            subject("ann", Some("x"), None),
            subject("ann", None, Some("x")),
            subject("ann", Some(""), Some("x")),
            subject("annx", None, None),
        ]
        .map(|subject| subject.conversation());
        for (place, name) in names.iter().enumerate() {
            assert!(name.len() == 32 && !names[..place].contains(name), "{name}");
        }
    }

    #[test]
    fn no_two_users_share_a_name() {
        let (own, other): (Tenant, Tenant) = (Tenant::default(), "acme".parse().unwrap());
        let names = [
            user_name(&own, Some("ann")),
            user_name(&own, Some("acme:ann")),
            user_name(&own, Some("shared")),
            user_name(&own, None),
            user_name(&other, Some("ann")),
            user_name(&other, None),
        ];
        assert_eq!(names[0], "ann");
        for (place, name) in names.iter().enumerate() {
            let first = names.iter().position(|other| other == name);
            assert_eq!(first, Some(place), "{name}");
        }
    }
}
