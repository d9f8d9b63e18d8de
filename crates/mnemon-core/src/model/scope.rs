//! What kind of thing a record is, how long it is kept, and where it came from.

use crate::error::words;

words! {
    /// What kind of memory it is.
    Scope, "scope" {
        /// What was said.
        Dialog = "dialog",
        /// Where a flow or a task stands.
        State = "state",
        /// What is known.
        Semantic = "semantic",
        /// How things are done.
        Procedural = "procedural",
        /// Who somebody is and what they like.
        Profile = "profile",
        /// What was tried and how it went.
        Experience = "experience",
    }
}

words! {
    /// What a record holds.
    Kind, "kind" {
        Note = "note",
        Message = "message",
        Event = "event",
        Summary = "summary",
        Fact = "fact",
        State = "state",
        Task = "task",
        Document = "document",
        Chunk = "chunk",
        Skill = "skill",
        Rule = "rule",
        Profile = "profile",
        Step = "step",
        Decision = "decision",
        Learning = "learning",
        Session = "session",
        Handoff = "handoff",
        Entity = "entity",
        Relation = "relation",
    }
}

impl Kind {
    /// The scope such a record belongs to unless it says otherwise.
    pub fn usual_scope(self) -> Scope {
        match self {
            Self::Message | Self::Event | Self::Summary | Self::Session => Scope::Dialog,
            Self::State | Self::Task | Self::Handoff => Scope::State,
            Self::Skill | Self::Rule | Self::Learning => Scope::Procedural,
            Self::Profile => Scope::Profile,
            Self::Step => Scope::Experience,
            Self::Note
            | Self::Fact
            | Self::Document
            | Self::Chunk
            | Self::Decision
            | Self::Entity
            | Self::Relation => Scope::Semantic,
        }
    }
}

words! {
    /// How long it is kept.
    Namespace, "namespace" {
        /// Weeks: the matter at hand.
        ShortTerm = "short-term",
        /// Years: what is worth knowing.
        LongTerm = "long-term",
    }
}

words! {
    /// Where a text came from. What was recalled from memory is never learnt again as new.
    Origin, "origin" {
        User = "user",
        Agent = "agent",
        Tool = "tool",
        File = "file",
        Web = "web",
        /// Made by Mnemon itself from other records.
        Derived = "derived",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_the_same_in_json_and_text() {
        for kind in Kind::ALL {
            let json = serde_json::to_string(kind).unwrap();
            assert_eq!(json, format!("\"{kind}\""));
            assert_eq!(kind.as_str().parse::<Kind>().unwrap(), *kind);
        }
    }

    #[test]
    fn an_unknown_word_names_the_known_ones() {
        let error = "middle-term".parse::<Namespace>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "namespace: `middle-term` is not one of: short-term, long-term"
        );
    }
}
