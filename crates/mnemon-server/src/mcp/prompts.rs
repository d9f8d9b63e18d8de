//! Prompts that a person picks from a menu: recall what is known, and end a session.

use mnemon_core::{Filter, Invalid};
use mnemon_engine::Query;
use rmcp::model::{GetPromptResult, Prompt, PromptArgument, PromptMessage, Role};
use serde_json::{Map, Value};

use super::answer::{RECALLED, TOKENS, count, discreet, excerpt, quote};
use super::served::Served;
use mnemon_operations::Error;

/// How many records a recall shows.
const SHOWN: usize = 10;
/// A topic, in characters.
const TOPIC: usize = 1000;

pub(super) fn list() -> Vec<Prompt> {
    let topic = PromptArgument::new("topic")
        .with_description("Topic to recall, for example: the login bug")
        .with_required(true);
    let agent = PromptArgument::new("agent")
        .with_description("The agent whose files the session is written to; none: notes");
    vec![
        Prompt::new(
            "recall",
            Some("Recall what we know about something"),
            Some(vec![topic]),
        )
        .with_title("Recall what we know about …"),
        Prompt::new(
            "end_session",
            Some("End this session: keep what will matter later"),
            Some(vec![agent]),
        )
        .with_title("End this session"),
    ]
}

pub(super) async fn get(
    served: &Served,
    name: &str,
    given: Option<Map<String, Value>>,
) -> Result<GetPromptResult, Error> {
    let given = given.unwrap_or_default();
    let text = |name: &str| {
        let text = given.get(name).and_then(Value::as_str).map(str::trim);
        text.filter(|text| !text.is_empty())
    };
    let words = match name {
        "recall" => {
            let missing = || Invalid::new("topic", "is missing: name a topic to recall");
            recall(served, text("topic").ok_or_else(missing)?).await?
        }
        "end_session" => end_session(text("agent")),
        _ => {
            let what = format!(
                "`{}` is not a known prompt; the prompts are: recall, end_session",
                discreet(name, 60)
            );
            return Err(Invalid::new("prompt", what).into());
        }
    };
    let message = PromptMessage::new_text(Role::User, words);
    Ok(GetPromptResult::new(vec![message]))
}

async fn recall(served: &Served, topic: &str) -> Result<String, Error> {
    let length = topic.chars().count();
    if length > TOPIC {
        let what = format!("has {length} characters; at most {TOPIC} are allowed");
        return Err(Invalid::new("topic", what).into());
    }
    let ctx = served.ctx()?;
    served.index_files(&ctx).await;
    let query = Query {
        limit: SHOWN,
        ..Query::new(topic, Filter::seen_by(served.viewer(None)))
    };
    let hits = served.memory.search(&ctx, &query).await?;
    let notices = ctx.notices.take().into_iter();
    let notices: String = notices.map(|notice| format!(" {notice}")).collect();
    if hits.is_empty() {
        return Ok(format!(
            "Recall what we know about {topic}. Memory knows nothing about it: say so, and \
             ask.{notices}"
        ));
    }
    let mut words = String::new();
    for chars in [800, 400, 200, 100, 50] {
        let known = hits.iter().map(|hit| {
            let record = &hit.record;
            let said = record.summary.as_deref().unwrap_or(&record.content);
            format!(
                "\n[{}] {}\n{}",
                record.id,
                record.created,
                quote(&excerpt(said, chars))
            )
        });
        words = format!(
            "Recall what we know about {topic}. Say what is certain, what contradicts itself and \
             what is missing; name the ids you rely on.{notices}\n\n{RECALLED}\n{}",
            known.collect::<String>()
        );
        if count(&words) <= TOKENS {
            break;
        }
    }
    Ok(words)
}

fn end_session(agent: Option<&str>) -> String {
    let how = match agent {
        Some(agent) => format!(
            "Call agent_end once with agent \"{}\": context (done, tasks, blockers, next), \
             decisions with their reasons, learnings, and an archive if the session was complex.",
            excerpt(agent, 100)
        ),
        None => "Call memory_add once for each thing that will matter later: decisions with their \
             reasons, facts about the user and the project, what failed and why as long-term; \
             details of the current work as short-term. Search first, and do not store a note \
             that exists already."
            .to_owned(),
    };
    format!(
        "End this session. Look back over what we did. {how} Leave out secrets, small talk and \
            text that came from memory. Then summarise in three sentences what was stored."
    )
}
