//! ReMe: personal memories by workspace (up to 0.3), or jobs over one workspace (from 0.4).

use async_trait::async_trait;
use mnemon_core::external::ExternalHit;
use mnemon_core::longterm::{LongTermError, RemoteReport};
use serde_json::{Value, json};

use super::Protocol;
use super::client::{RemoteClient, Request};
use super::subject::{Said, Subject};

/// The answer of both: `{answer, success, metadata}`.
struct Flow {
    answer: String,
    metadata: Value,
}

async fn run(client: &RemoteClient, path: &str, body: Value) -> Result<Flow, LongTermError> {
    let reply = client.send(Request::post(path, body)).await?;
    let Some(success) = reply.body.get("success").and_then(Value::as_bool) else {
        return Err(client.unreadable("`success` is not true or false"));
    };
    let answer = match reply.body.get("answer") {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(answer)) => answer.clone(),
        Some(_) => return Err(client.unreadable("`answer` is not a text")),
    };
    match success {
        true => Ok(Flow {
            answer,
            metadata: reply.body.get("metadata").cloned().unwrap_or_default(),
        }),
        false => {
            let what = answer.lines().next().unwrap_or_default();
            Err(client.rejected(format!("{path} did not succeed: {what}")))
        }
    }
}

fn messages(said: &[Said]) -> Vec<Value> {
    said.iter().map(Said::json).collect()
}

/// A text that stands for the whole answer.
fn whole(answer: String) -> Vec<ExternalHit> {
    vec![hit(answer)]
}

/// A text without a name, named by its digest.
fn hit(text: String) -> ExternalHit {
    let digest = blake3::hash(text.as_bytes()).to_hex();
    ExternalHit {
        id: digest.chars().take(16).collect(),
        text,
        ..ExternalHit::default()
    }
}

/// ReMe up to 0.3: each user has a workspace.
pub(super) struct Reme {
    client: RemoteClient,
}

impl Reme {
    pub(super) fn new(client: RemoteClient) -> Self {
        Self { client }
    }

    /// A workspace is a collection of a vector store, whose names are short and plain.
    fn workspace(subject: &Subject) -> String {
        let name = match &subject.agent {
            None => subject.user.clone(),
            Some(agent) => format!("{}:{agent}", subject.user),
        };
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        // A name that looks like a digest must not lead into the workspace of that digest.
        let is_digest = name.starts_with("mnemon_");
        if !is_digest && name.len() <= 63 && name.chars().all(is_plain) {
            return name;
        }
        let digest = blake3::hash(name.as_bytes()).to_hex();
        let digest: String = digest.chars().take(32).collect();
        format!("mnemon_{digest}")
    }
}

#[async_trait]
impl Protocol for Reme {
    async fn record(&self, subject: &Subject, said: &[Said]) -> Result<(), LongTermError> {
        let body = json!({
            "workspace_id": Self::workspace(subject),
            "trajectories": [{"messages": messages(said), "score": 1.0}],
        });
        run(&self.client, "/summary_personal_memory", body).await?;
        Ok(())
    }

    async fn find(
        &self,
        subject: &Subject,
        query: &str,
        limit: usize,
    ) -> Result<Vec<ExternalHit>, LongTermError> {
        let body = json!({
            "workspace_id": Self::workspace(subject),
            "query": query,
            "top_k": limit,
        });
        let flow = run(&self.client, "/retrieve_personal_memory", body).await?;
        let listed = flow.metadata.get("memory_list").and_then(Value::as_array);
        let Some(listed) = listed.filter(|listed| !listed.is_empty()) else {
            return Ok(whole(flow.answer));
        };
        let found = listed.iter().map(|memory| {
            Ok(ExternalHit {
                id: self.client.text(memory, "memory_id")?,
                text: self.client.text(memory, "content")?,
                ..ExternalHit::default()
            })
        });
        found.collect()
    }

    async fn check(&self) -> Result<RemoteReport, LongTermError> {
        report(
            &self.client,
            "ReMe 0.3",
            &["/summary_personal_memory", "/retrieve_personal_memory"],
        )
        .await
    }
}

/// ReMe from 0.4: one workspace of files, so one user.
pub(super) struct RemeJobs {
    client: RemoteClient,
    /// Whose workspace it is; without one nobody's conversations are kept there.
    user: Option<String>,
}

impl RemeJobs {
    pub(super) fn new(client: RemoteClient, user: Option<String>) -> Self {
        Self { client, user }
    }

    /// Refuses other users: the service would show their words to this one.
    fn check_user(&self, subject: &Subject) -> Result<(), LongTermError> {
        if self.user.as_deref() == Some(subject.user.as_str()) {
            return Ok(());
        }
        let what = "it keeps the memory of one user, which the URL names as `?user=NAME`; \
                    this is another user";
        Err(self.client.rejected(what))
    }
}

#[async_trait]
impl Protocol for RemeJobs {
    async fn record(&self, subject: &Subject, said: &[Said]) -> Result<(), LongTermError> {
        self.check_user(subject)?;
        let body = json!({"messages": messages(said), "session_id": subject.conversation()});
        run(&self.client, "/auto_memory", body).await?;
        Ok(())
    }

    async fn find(
        &self,
        subject: &Subject,
        query: &str,
        limit: usize,
    ) -> Result<Vec<ExternalHit>, LongTermError> {
        self.check_user(subject)?;
        let body = json!({"query": query, "limit": limit});
        let flow = run(&self.client, "/search", body).await?;
        let listed = flow.metadata.get("results").and_then(Value::as_array);
        let Some(listed) = listed else {
            return Ok(whole(flow.answer));
        };
        let found = listed.iter().map(|chunk| {
            let text = self.client.text(chunk, "text")?;
            Ok(ExternalHit {
                source: chunk.get("path").and_then(Value::as_str).map(str::to_owned),
                ..hit(text)
            })
        });
        found.collect()
    }

    async fn check(&self) -> Result<RemoteReport, LongTermError> {
        let mut found = report(&self.client, "ReMe 0.4", &["/auto_memory", "/search"]).await?;
        if self.user.is_none() {
            let what = "Without `?user=NAME` in the URL nothing is recorded or retrieved.";
            found.remarks.push(what.to_owned());
        }
        Ok(found)
    }
}

/// Both are FastAPI servers, which list their paths.
async fn report(
    client: &RemoteClient,
    protocol: &str,
    paths: &[&str],
) -> Result<RemoteReport, LongTermError> {
    let reply = client.send(Request::get("/openapi.json")).await?;
    let Some(known) = reply.body.get("paths").and_then(Value::as_object) else {
        return Err(client.unreadable("`paths` is not an object"));
    };
    if let Some(missing) = paths.iter().find(|path| !known.contains_key(**path)) {
        return Err(client.unreadable(format!(
            "it has no {missing}; this is not a server of {protocol}"
        )));
    }
    Ok(RemoteReport {
        service: client.service().to_owned(),
        protocol: protocol.to_owned(),
        capabilities: ["record", "retrieve", "search"].map(str::to_owned).to_vec(),
        remarks: Vec::new(),
    })
}
