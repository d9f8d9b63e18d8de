//! Notices: what a call that succeeded did not do.

use std::sync::{Arc, Mutex, PoisonError};

use crate::model::limits;
use crate::secrets;

/// Sentences about a call that succeeded with less than it should have had: an embedder that
/// failed, a list that was cut, a secret that was taken out.
///
/// All clones of a [`crate::model::Ctx`] share one list, and so do the grants made from it: no layer
/// between the failure and the door can drop a notice. The door takes them and prints them.
#[derive(Debug, Clone, Default)]
pub struct Notices(Arc<Mutex<Vec<String>>>);

impl Notices {
    /// Adds a sentence, with secrets masked. A sentence that is already in the list is not
    /// repeated; a full list ends with a sentence that says so.
    pub fn add(&self, sentence: impl Into<String>) {
        let sentence = sentence.into();
        let sentence = secrets::mask(&sentence, &secrets::find(&sentence));
        let mut list = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if list.contains(&sentence) {
            return;
        }
        match list.len() {
            length if length + 1 < limits::NOTICES => list.push(sentence),
            length if length < limits::NOTICES => list.push("There were more notices.".to_owned()),
            _ => {}
        }
    }

    /// Adds several sentences.
    pub fn extend(&self, sentences: impl IntoIterator<Item = String>) {
        sentences
            .into_iter()
            .for_each(|sentence| self.add(sentence));
    }

    /// All sentences so far, the oldest first. The list is empty afterwards.
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The sentences so far; they stay in the list.
    pub fn list(&self) -> Vec<String> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_share_one_bounded_list_without_repeats() {
        let notices = Notices::default();
        notices.clone().add("The embedder failed.");
        notices.add("The embedder failed.");
        assert_eq!(notices.list(), ["The embedder failed."]);
        notices.extend((0..100).map(|n| format!("Notice {n}.")));
        let taken = notices.take();
        assert_eq!(taken.len(), limits::NOTICES);
        assert_eq!(taken.last().unwrap(), "There were more notices.");
        assert!(notices.take().is_empty());
    }

    #[test]
    fn no_notice_repeats_a_secret() {
        let token = format!("gh{}_a8Kd03LmQx7Zt5Rv1Yb9Nc2Ws4Ej6Hu0Pg8Fi3", "p");
        let notices = Notices::default();
        notices.add(format!("The embedder refused the key {token}."));
        assert!(!notices.take().concat().contains(&token));
    }
}
