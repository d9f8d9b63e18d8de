//! Acontext: sessions of messages, from which a learning space makes skills.
//!
//! Acontext searches nothing by itself, so skills are chosen here, by the words that their names and
//! descriptions share with the query.

use async_trait::async_trait;
use mnemon_core::external::ExternalHit;
use mnemon_core::longterm::{LongTermError, RemoteReport};
use mnemon_core::text;
use serde_json::{Value, json};

use super::Protocol;
use super::client::{RemoteClient, Request, escape};
use super::subject::{Said, Subject};

/// Skills of a learning space that are looked at.
const SKILLS: usize = 200;
/// Skills whose instructions are read for one query: each takes a request.
const READ: usize = 5;
/// Characters of a skill's instructions that are used.
const SKILL_CHARS: usize = 8_000;
/// The file of a skill that holds its instructions.
const SKILL_FILE: &str = "SKILL.md";

pub(super) struct Acontext {
    client: RemoteClient,
    /// Where skills are learnt and read; without one sessions are stored only.
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
        let mut body = self.client.send(request).await?.body;
        if body.is_null() {
            return Ok(Value::Null);
        }
        let code = body.get("code").and_then(Value::as_u64);
        let Some(code) = code else {
            return Err(self.client.unreadable("`code` is not a number"));
        };
        if code >= 400 && !expected.iter().any(|one| u64::from(*one) == code) {
            let said = body.get("msg").and_then(Value::as_str).unwrap_or_default();
            return Err(self.client.rejected(format!("code {code}: {said}")));
        }
        let data = body.get_mut("data").map(Value::take);
        Ok(data.unwrap_or_default())
    }

    async fn skills(&self, space: &str, query: &str) -> Result<Vec<Listed>, LongTermError> {
        let path = format!("/learning_spaces/{}/skills", escape(space));
        let data = self.call(Request::get(path)).await?;
        let words = text::query_terms(query);
        let listed = self.client.list(&data, "")?.iter().take(SKILLS);
        let mut skills = Vec::new();
        for item in listed {
            let name = self.client.text(item, "name")?;
            let description = self.client.text(item, "description")?;
            let own = text::index_terms(&format!("{name} {description}"));
            let shared = words.iter().filter(|word| !word.stop);
            let shared = shared.filter(|word| own.iter().any(|term| term.text == word.text));
            let updated = item.get("updated_at").and_then(Value::as_str);
            skills.push(Listed {
                id: self.client.text(item, "id")?,
                shared: shared.count(),
                updated: updated.map(str::to_owned),
                name,
                description,
            });
        }
        skills.retain(|skill| skill.shared > 0);
        skills.sort_by(|one, other| other.shared.cmp(&one.shared));
        Ok(skills)
    }

    /// The instructions of a skill; empty if they are not a text.
    async fn instructions(&self, id: &str) -> Result<String, LongTermError> {
        let request = Request {
            query: vec![("file_path", SKILL_FILE.to_owned())],
            expected: &[404],
            ..Request::get(format!("/agent_skills/{}/file", escape(id)))
        };
        let data = self.call(request).await?;
        let raw = data.pointer("/content/raw").and_then(Value::as_str);
        Ok(raw.unwrap_or_default().chars().take(SKILL_CHARS).collect())
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
        let create = Request {
            // The session exists already.
            expected: &[409],
            ..Request::post(
                "/session",
                json!({"user": subject.user, "use_uuid": session}),
            )
        };
        self.call(create).await?;
        for one in said {
            let body = json!({"format": "openai", "blob": one.json()});
            let path = format!("/session/{session}/messages");
            self.call(Request::post(path, body)).await?;
        }
        if let Some(space) = &self.space {
            let learn = Request {
                // The space learns from this session already.
                expected: &[409],
                ..Request::post(
                    format!("/learning_spaces/{}/learn", escape(space)),
                    json!({ "session_id": session }),
                )
            };
            self.call(learn).await?;
        }
        Ok(())
    }

    async fn find(
        &self,
        _subject: &Subject,
        query: &str,
        limit: usize,
    ) -> Result<Vec<ExternalHit>, LongTermError> {
        let Some(space) = &self.space else {
            return Ok(Vec::new());
        };
        let mut found = Vec::new();
        let skills = self.skills(space, query).await?;
        for skill in skills.into_iter().take(limit.min(READ)) {
            let instructions = self.instructions(&skill.id).await?;
            let text = format!("{}: {}\n{instructions}", skill.name, skill.description);
            found.push(ExternalHit {
                id: skill.id,
                text: text.trim_end().to_owned(),
                title: Some(skill.name),
                source: None,
                created: skill.updated.and_then(|at| at.parse().ok()),
            });
        }
        Ok(found)
    }

    async fn check(&self) -> Result<RemoteReport, LongTermError> {
        // `/ping` needs no key; a list does.
        let request = Request {
            query: vec![("limit", "1".to_owned())],
            ..Request::get("/session")
        };
        let data = self.call(request).await?;
        self.client.list(&data, "/items")?;
        let mut capabilities = vec!["record".to_owned()];
        let mut remarks = Vec::new();
        match &self.space {
            Some(space) => {
                let path = format!("/learning_spaces/{}/skills", escape(space));
                let data = self.call(Request::get(path)).await?;
                let count = self.client.list(&data, "")?.len();
                capabilities.extend(["retrieve", "skills", "search"].map(str::to_owned));
                remarks.push(format!("The learning space has {count} skills."));
            }
            None => {
                let what = "Without `?space=UUID` nothing is learnt and nothing is retrieved.";
                remarks.push(what.to_owned());
            }
        }
        Ok(RemoteReport {
            service: self.client.service().to_owned(),
            protocol: "Acontext API v1".to_owned(),
            capabilities,
            remarks,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_has_a_uuid_of_its_own() {
        let uuid = uuid_of("0123456789abcdef0123456789abcdef");
        assert_eq!(uuid, "01234567-89ab-8def-a123-456789abcdef");
    }
}
