//! Names that are made, not drawn: ids of records of which there is one of a sort, and the tags
//! by which the index finds steps and skills.

use mnemon_core::{Id, Invalid, limits};

/// The id of the only record of this sort for these names. The same names give the same id in
/// every process, so that it is found without looking.
pub(crate) fn fixed_id(sort: &str, names: &[Option<&str>]) -> Id {
    let mut digest = [0; 16];
    digest_of(sort, names).fill(&mut digest);
    Id::from_digest(digest)
}

/// The same in sixteen hexadecimal digits, for ids that people and models copy.
pub(crate) fn short_id(sort: &str, names: &[Option<&str>]) -> Result<Id, Invalid> {
    let mut digest = [0; 8];
    digest_of(sort, names).fill(&mut digest);
    format!("{:016x}", u64::from_be_bytes(digest)).parse()
}

fn digest_of(sort: &str, names: &[Option<&str>]) -> blake3::OutputReader {
    let mut hasher = blake3::Hasher::new();
    hasher.update(sort.as_bytes());
    for name in names {
        // Lengths and marks between them: no two lists of names may run into each other.
        match name {
            Some(name) => {
                hasher.update(&[1]);
                hasher.update(&(name.len() as u64).to_le_bytes());
                hasher.update(name.as_bytes());
            }
            None => {
                hasher.update(&[0]);
            }
        }
    }
    hasher.finalize_xof()
}

/// The tag `word:name`. Tags do not tell upper from lower case, names do: one that would be lost
/// in the other case carries a mark of its own.
pub(crate) fn tag(word: &str, name: &str) -> String {
    if name == name.to_lowercase() {
        return format!("{word}:{name}");
    }
    let digest = blake3::hash(name.as_bytes()).to_hex();
    let mark: String = digest.chars().take(8).collect();
    format!("{word}:{name}#{mark}")
}

/// A name that somebody must have given: one line, neither empty nor too long.
pub(crate) fn check_name(field: &str, name: &str, most: usize) -> Result<(), Invalid> {
    if name.trim().is_empty() {
        return Err(Invalid::new(field, "is empty; give it a value"));
    }
    let chars = name.chars().count();
    if chars > most {
        let what = format!("has {chars} characters, at most {most} are allowed");
        return Err(Invalid::new(field, what));
    }
    if name.chars().any(char::is_control) {
        let what = "holds a control character (a line break, tab or NUL); remove it";
        return Err(Invalid::new(field, what));
    }
    Ok(())
}

/// Whether Windows takes the name for a device instead of a file, whatever its ending.
pub(crate) fn is_device(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or_default();
    let stem = stem.trim_end().to_lowercase();
    let port = stem.strip_prefix("com").or(stem.strip_prefix("lpt"));
    let mut number = port.unwrap_or_default().chars();
    let is_port = match (number.next(), number.next()) {
        (Some(digit), None) => digit.is_ascii_digit() || "¹²³".contains(digit),
        _ => false,
    };
    is_port || ["con", "prn", "aux", "nul", "conin$", "conout$"].contains(&stem.as_str())
}

/// A type of task, if there is one: short enough to be part of a tag.
pub(crate) fn check_task_type(task_type: Option<&str>) -> Result<(), Invalid> {
    task_type.map_or(Ok(()), |name| {
        check_name("task_type", name, limits::TASK_TYPE_CHARS)
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn tags_tell_cases_apart_and_fit() {
        assert_eq!(tag("task", "build"), "task:build");
        let folded = |name: &str| tag("task", name).to_lowercase();
        assert_ne!(folded("Build"), folded("build"));
        assert_ne!(folded("BUILD"), folded("Build"));
        let longest = tag("cancelled", &"Ạ".repeat(limits::TASK_TYPE_CHARS));
        assert!(longest.chars().count() <= limits::TAG_CHARS);
    }

    #[test]
    fn names_that_differ_give_ids_that_differ() {
        let lists: [&[Option<&str>]; 7] = [
            &[],
            &[None],
            &[Some("")],
            &[Some("ab"), Some("c")],
            &[Some("a"), Some("bc")],
            &[Some("abc")],
            &[Some("abc"), None],
        ];
        let ids: HashSet<Id> = lists.iter().map(|names| fixed_id("x", names)).collect();
        assert_eq!(ids.len(), lists.len());
        assert_ne!(fixed_id("x", &[]), fixed_id("y", &[]));
        assert_eq!(fixed_id("x", lists[3]), fixed_id("x", lists[3]));
    }
}
