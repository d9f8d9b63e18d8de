//! Acontext: sessions of messages, from which learning spaces make skills.
//!
//! Each user has a learning space, so that skills hold the words of their user only. A space that the
//! URL names is read for all users, and no conversation is learnt there. Acontext does not search
//! skills, so they are chosen here, by the words that their names and descriptions share with the query.

use async_trait::async_trait;
use futures::future::try_join_all;
use mnemon_core::external::ExternalHit;
use mnemon_core::longterm::{LongTermError, RemoteReport};
use mnemon_core::markdown::without_front_matter;
use mnemon_core::text;
use serde_json::{Value, json};

use super::Protocol;
use super::address::is_uuid;
use super::client::{RemoteClient, Request};
use super::subject::{Said, Subject};

/// Skills of a learning space that are looked at.
const SKILLS: usize = 200;
/// Skills whose instructions are read for one query: each takes a request.
const READ: usize = 5;
/// Characters of a skill's instructions that are used.
const SKILL_CHARS: usize = 8_000;
/// The file of a skill that holds its instructions.
const SKILL_FILE: &str = "SKILL.md";
/// Marks the learning spaces that were made here.
const MARK: &str = r#"{"source":"mnemon"}"#;
/// The session or the learning exists already.
const EXISTS: &[u16] = &[409];

pub(super) struct Acontext {
    client: RemoteClient,
    /// The space whose skills all users read.
    space: Option<String>,
}

/// A skill as a learning space lists it.
struct Listed {
    id: String,
    name: String,
    description: String,
    /// Words of the query that it has.
    shared: usize,
    updated: Option<String>,
}

impl Acontext {
    pub(super) fn new(client: RemoteClient, space: Option<String>) -> Self {
        Self { client, space }
    }

    /// Sends a request and opens the envelope `{code, data, msg, error}`. Status 200 with a code of
    /// 400 or more is an error, too.
    async fn call(&self, request: Request<'_>) -> Result<Value, LongTermError> {
        let expected = request.expected;
        let mut reply = self.client.send(request).await?;
        if expected.contains(&reply.status) {
            return Ok(Value::Null);
        }
        let code = reply.body.get("code").and_then(Value::as_u64);
        let code = code.and_then(|code| u16::try_from(code).ok());
        let Some(code) = code else {
            return Err(self.client.unreadable("`code` is not a number"));
        };
        if expected.contains(&code) {
            return Ok(Value::Null);
        }
        if code >= 400 {
            let said = reply.body.get("msg").and_then(Value::as_str);
            let said = said.unwrap_or_default();
            return Err(self.client.status_error(code, said, None));
        }
        let data = reply.body.get_mut("data").map(Value::take);
        Ok(data.unwrap_or_default())
    }

    /// A UUID that is safe in a path.
    fn uuid(&self, item: &Value) -> Result<String, LongTermError> {
        let id = self.client.text(item, "id")?;
        match is_uuid(&id) {
            true => Ok(id),
            false => Err(self.client.unreadable("`id` is not a UUID")),
        }
    }

    /// The learning space of a user that was made here first.
    async fn own_space(&self, user: &str) -> Result<Option<String>, LongTermError> {
        let request = Request {
            query: vec![
                ("user", user.to_owned()),
                ("limit", "1".to_owned()),
                ("filter_by_meta", MARK.to_owned()),
            ],
            ..Request::get("/learning_spaces")
        };
        let data = self.call(request).await?;
        let first = self.client.list(&data, "/items")?.first();
        first.map(|space| self.uuid(space)).transpose()
    }

    /// Lets the user's learning space learn from a session.
    async fn learn(&self, user: &str, session: &str) -> Result<(), LongTermError> {
        let space = match self.own_space(user).await? {
            Some(space) => space,
            None => {
                let body = json!({"user": user, "meta": {"source": "mnemon"}});
                let data = self.call(Request::post("/learning_spaces", body)).await?;
                self.uuid(&data)?
            }
        };
        let path = format!("/learning_spaces/{space}/learn");
        let request = Request {
            expected: EXISTS,
            ..Request::post(path, json!({ "session_id": session }))
        };
        self.call(request).await.map(drop)
    }

    async fn skills(&self, space: &str, query: &str) -> Result<Vec<Listed>, LongTermError> {
        let path = format!("/learning_spaces/{space}/skills");
        let data = self.call(Request::get(path)).await?;
        let words = text::query_terms(query);
        let mut skills = Vec::new();
        for item in self.client.list(&data, "")?.iter().take(SKILLS) {
            let name = self.client.text(item, "name")?;
            let description = self.client.text(item, "description")?;
            let own = text::index_terms(&format!("{name} {description}"));
            let shared = words.iter().filter(|word| !word.stop);
            let shared = shared.filter(|word| own.iter().any(|term| term.text == word.text));
            let updated = item.get("updated_at").and_then(Value::as_str);
            skills.push(Listed {
                id: self.uuid(item)?,
                shared: shared.count(),
                updated: updated.map(str::to_owned),
                name,
                description,
            });
        }
        skills.retain(|skill| skill.shared > 0);
        skills.sort_by_key(|skill| std::cmp::Reverse(skill.shared));
        Ok(skills)
    }

    /// The instructions of a skill; empty if they are missing or not a text.
    async fn instructions(&self, id: &str) -> Result<String, LongTermError> {
        let request = Request {
            query: vec![("file_path", SKILL_FILE.to_owned())],
            expected: &[404],
            ..Request::get(format!("/agent_skills/{id}/file"))
        };
        let data = self.call(request).await?;
        let raw = data.pointer("/content/raw").and_then(Value::as_str);
        // Its front matter repeats the name and the description.
        let text = without_front_matter(raw.unwrap_or_default()).trim();
        Ok(text.chars().take(SKILL_CHARS).collect())
    }
}

/// The digest of a conversation in the form of a UUID.
fn uuid_of(digest: &str) -> String {
    let mut uuid = String::with_capacity(36);
    for (place, digit) in digest.chars().enumerate() {
        if matches!(place, 8 | 12 | 16 | 20) {
            uuid.push('-');
        }
        uuid.push(match place {
            // Version 8 is for digests; the other digit holds the variant.
            12 => '8',
            16 => 'a',
            _ => digit,
        });
    }
    uuid
}

#[async_trait]
impl Protocol for Acontext {
    async fn record(&self, subject: &Subject, said: &[Said]) -> Result<(), LongTermError> {
        let session = uuid_of(&subject.conversation());
        let body = json!({"user": subject.user, "use_uuid": session});
        let create = Request {
            expected: EXISTS,
            ..Request::post("/session", body)
        };
        self.call(create).await?;
        for one in said {
            let body = json!({"format": "openai", "blob": one.json()});
            let path = format!("/session/{session}/messages");
            self.call(Request::post(path, body)).await?;
        }
        match self.space {
            None => self.learn(&subject.user, &session).await,
            Some(_) => Ok(()),
        }
    }

    async fn find(
        &self,
        subject: &Subject,
        query: &str,
        limit: usize,
    ) -> Result<Vec<ExternalHit>, LongTermError> {
        let space = match &self.space {
            Some(space) => Some(space.clone()),
            None => self.own_space(&subject.user).await?,
        };
        let Some(space) = space else {
            return Ok(Vec::new());
        };
        let skills = self.skills(&space, query).await?;
        let read = skills
            .into_iter()
            .take(limit.min(READ))
            .map(|skill| async move {
                let instructions = self.instructions(&skill.id).await?;
                // The first line says when the skill is of use.
                let about = format!("{}: {}", skill.name, skill.description);
                let about: Vec<&str> = about.split_whitespace().collect();
                Ok(ExternalHit {
                    id: skill.id,
                    text: format!("{}\n{instructions}", about.join(" "))
                        .trim_end()
                        .to_owned(),
                    title: Some(skill.name),
                    source: None,
                    created: skill.updated.and_then(|at| at.parse().ok()),
                })
            });
        try_join_all(read).await
    }

    async fn check(&self) -> Result<RemoteReport, LongTermError> {
        // `/ping` needs no key; a list does.
        let request = Request {
            query: vec![("limit", "1".to_owned())],
            ..Request::get("/session")
        };
        let data = self.call(request).await?;
        self.client.list(&data, "/items")?;
        let mut remarks = Vec::new();
        if let Some(space) = &self.space {
            let path = format!("/learning_spaces/{space}/skills");
            let data = self.call(Request::get(path)).await?;
            let count = self.client.list(&data, "")?.len();
            remarks.push(format!(
                "The learning space has {count} skills. Conversations are stored and not learnt."
            ));
        }
        let capabilities = ["record", "retrieve", "search", "skills"];
        Ok(RemoteReport {
            service: self.client.service().to_owned(),
            protocol: "Acontext API v1".to_owned(),
            capabilities: capabilities.map(str::to_owned).to_vec(),
            remarks,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conversation_has_a_uuid() {
        let uuid = uuid_of("0123456789abcdef0123456789abcdef");
        assert_eq!(uuid, "01234567-89ab-8def-a123-456789abcdef");
        assert!(is_uuid(&uuid));
    }
}
