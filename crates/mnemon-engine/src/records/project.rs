//! Which project a record of a file belongs to.

use mnemon_core::{Origin, Record};

/// What marks all entries of a project's files.
pub fn project_tag(project: &str) -> String {
    format!("{PROJECT_TAG}{}", short_digest(&[project]))
}

const PROJECT_TAG: &str = "agent-files:";

/// Whether the record is an entry of a file of another project.
pub(crate) fn is_of_other_project(record: &Record, own_tag: &str) -> bool {
    let mut tags = record.tags.iter();
    record.origin == Origin::File
        && tags.any(|tag| tag.starts_with(PROJECT_TAG) && tag.as_str() != own_tag)
}

/// Sixteen hexadecimal digits that stand for these parts.
pub(crate) fn short_digest(parts: &[&str]) -> String {
    let digest = blake3::hash(parts.join("\0").as_bytes()).to_hex();
    digest.chars().take(16).collect()
}
