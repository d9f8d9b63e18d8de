use std::collections::HashMap;
use std::sync::Mutex;

use async_trait::async_trait;
use mnemon_core::longterm::{LongTerm, LongTermError};
use mnemon_core::{Ctx, Message, Owner, Tenant};

/// A long-term memory that keeps every line, and tells those that share a word with the message.
#[derive(Debug, Default)]
pub struct KeptTalk(Mutex<HashMap<(Tenant, Owner), Vec<String>>>);

fn words(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !c.is_alphanumeric());
    words
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect()
}

#[async_trait]
impl LongTerm for KeptTalk {
    async fn record(
        &self,
        ctx: &Ctx,
        owner: &Owner,
        messages: &[Message],
    ) -> Result<(), LongTermError> {
        let mut kept = self.0.lock().unwrap();
        let lines = kept.entry((ctx.tenant.clone(), owner.clone()));
        let texts = messages.iter().map(Message::text_content);
        lines
            .or_default()
            .extend(texts.filter(|text| !text.trim().is_empty()));
        Ok(())
    }

    async fn retrieve(
        &self,
        ctx: &Ctx,
        owner: &Owner,
        message: &Message,
    ) -> Result<String, LongTermError> {
        let wanted = words(&message.text_content());
        let kept = self.0.lock().unwrap();
        let lines = kept.get(&(ctx.tenant.clone(), owner.clone()));
        let known: Vec<&str> = lines
            .into_iter()
            .flatten()
            .filter(|line| words(line).iter().any(|word| wanted.contains(word)))
            .map(String::as_str)
            .collect();
        Ok(known.join("\n"))
    }
}
