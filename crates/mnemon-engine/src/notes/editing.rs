//! Changing a note, by the rules for new notes.

use mnemon_core::{Ctx, Id, Invalid, Viewer, note};
use serde_json::Value;

use super::adding::{check_metadata, check_tags};
use super::{Notes, is_note};
use crate::records::{Edit, Edited, Error};

impl Notes {
    /// Changes a note, or another record, in one commit. A note keeps the limits of a new one; a
    /// content that is too long is refused and not cut.
    pub async fn edit(
        &self,
        ctx: &Ctx,
        viewer: &Viewer,
        id: &Id,
        edit: Edit,
    ) -> Result<Edited, Error> {
        for records in self.records.on_all_stores() {
            let found = records.get_seen_by(ctx, viewer, std::slice::from_ref(id));
            let Some(record) = found.await?.into_iter().flatten().next() else {
                continue;
            };
            if is_note(&record) {
                check_tags(edit.tags.as_deref().unwrap_or_default())?;
                let mut metadata = record.metadata.clone();
                let kept = edit.metadata.clone().into_iter();
                metadata.extend(kept.filter(|(_, value)| *value != Value::Null));
                check_metadata(&metadata)?;
                let namespace = edit.namespace.unwrap_or(record.namespace);
                let most = self.config.of(namespace).max_content_chars;
                let chars = edit.content.as_deref().map_or(0, note::length);
                if chars > most {
                    let what =
                        format!("has {chars} characters; a {namespace} note may have {most}");
                    return Err(Invalid::new("content", what).into());
                }
            }
            return records.edit(ctx, viewer, id, edit).await;
        }
        Err(Error::NoRecord(id.clone()))
    }
}
