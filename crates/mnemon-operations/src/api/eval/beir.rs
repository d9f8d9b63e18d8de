//! BEIR: a collection of documents with queries and judgements.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

use super::dataset::{
    Conversation, Dataset, Entry, Evidence, Keys, Question, lines, malformed, malformed_line,
    read_text, undated,
};
use crate::Error;

#[derive(Deserialize)]
struct Document {
    #[serde(rename = "_id")]
    id: String,
    #[serde(default)]
    title: Option<String>,
    text: String,
}

#[derive(Deserialize)]
struct Query {
    #[serde(rename = "_id")]
    id: String,
    text: String,
}

/// Reads a folder with `corpus.jsonl`, `queries.jsonl` and `qrels/SPLIT.tsv`.
pub fn read(folder: &Path, split: &str) -> Result<Dataset, Error> {
    let mut keys = Keys::default();
    let mut conversation = Conversation {
        name: folder.file_name().map_or_else(
            || "beir".to_owned(),
            |name| name.to_string_lossy().into_owned(),
        ),
        ..Conversation::default()
    };
    each::<Document>(&folder.join("corpus.jsonl"), |document| {
        let content = match document.title.as_deref().map(str::trim) {
            None | Some("") => document.text,
            Some(title) => format!("{title}\n{}", document.text),
        };
        if content.trim().is_empty() {
            return Ok(());
        }
        if !keys.add(&document.id, conversation.entries.len()) {
            return Err(format!("there is another document `{}`", document.id));
        }
        let entry = Entry::note(content, undated());
        conversation.entries.push(entry);
        Ok(())
    })?;
    let judged = judgements(&folder.join("qrels").join(format!("{split}.tsv")), &keys)?;
    each::<Query>(&folder.join("queries.jsonl"), |query| {
        if let Some(expected) = judged.get(&query.id) {
            conversation.ask(Question {
                text: query.text,
                expected: expected.clone(),
                id: query.id,
                ..Question::default()
            });
        }
        Ok(())
    })?;
    Ok(Dataset {
        format: "beir",
        conversations: vec![conversation],
        is_recall_capped: false,
    })
}

/// Reads each line of a file of JSON lines.
fn each<T: for<'a> Deserialize<'a>>(
    path: &Path,
    mut add: impl FnMut(T) -> Result<(), String>,
) -> Result<(), Error> {
    for (n, line) in lines(&read_text(path)?) {
        let read = serde_json::from_str(line).map_err(|error| error.to_string());
        let added = read.and_then(&mut add);
        added.map_err(|what| malformed_line(path, n, what))?;
    }
    Ok(())
}

/// Lines with query, document and relevance between tabs; the first may be a header. Documents of
/// no relevance are not evidence.
fn judgements(path: &Path, keys: &Keys) -> Result<BTreeMap<String, Vec<Evidence>>, Error> {
    let mut judged: BTreeMap<String, Vec<Evidence>> = BTreeMap::new();
    for (n, line) in lines(&read_text(path)?) {
        let cells: Vec<&str> = line.split('\t').map(str::trim).collect();
        let (query, document, score) = match cells.as_slice() {
            [query, document, score] => (query, document, score),
            // As TREC writes it, with a column that means nothing.
            [query, _, document, score] => (query, document, score),
            _ => {
                let what = "is not a query, a document and a score with tabs between them";
                return Err(malformed_line(path, n, what));
            }
        };
        let score: f64 = match score.parse() {
            Ok(score) if f64::is_finite(score) => score,
            Err(_) if n == 1 => continue,
            _ => {
                let what = format!("`{}` is not a score", score.escape_debug());
                return Err(malformed_line(path, n, what));
            }
        };
        let expected = judged.entry((*query).to_owned()).or_default();
        if score > 0.0 {
            let found = keys.evidence([(*document).to_owned()]).into_iter();
            let new = found.filter(|one| !expected.iter().any(|e| e.entries == one.entries));
            let new: Vec<Evidence> = new.map(|one| Evidence { gain: score, ..one }).collect();
            expected.extend(new);
        }
    }
    match judged.is_empty() {
        true => Err(malformed(path, "has no judgements")),
        false => Ok(judged),
    }
}
