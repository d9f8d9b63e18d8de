//! What text is in a file.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use mnemon_core::Time;
use mnemon_core::chunk::Syntax;

use super::find::{FoundFile, modified};
use super::{FileProblem, PDF_FILE_BYTES, TEXT_FILE_BYTES, html, pdf};

/// How often a file that changes under our eyes is read.
const ATTEMPTS: usize = 3;

/// The bytes of a file at one moment, and the way to its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileText {
    pub bytes: u64,
    pub modified: Time,
    /// Of the bytes.
    pub digest: String,
    raw: Vec<u8>,
    form: Form,
}

/// What the bytes are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Plain(Syntax),
    Html,
    Pdf,
}

impl Form {
    fn of(uri: &str) -> Self {
        let extension = uri.rsplit_once('.').map_or("", |(_, extension)| extension);
        match extension.to_ascii_lowercase().as_str() {
            "html" | "htm" => Self::Html,
            "pdf" => Self::Pdf,
            _ => Self::Plain(Syntax::of_name(uri)),
        }
    }

    fn most(self) -> u64 {
        match self {
            Self::Pdf => PDF_FILE_BYTES,
            Self::Plain(_) | Self::Html => TEXT_FILE_BYTES,
        }
    }
}

impl FoundFile {
    /// By which rules its text will be cut.
    pub fn syntax(&self) -> Syntax {
        match Form::of(&self.uri) {
            Form::Plain(syntax) => syntax,
            Form::Html => Syntax::Markdown,
            Form::Pdf => Syntax::Text,
        }
    }

    /// Whether its text is made from what is in it, so that line numbers mean nothing.
    pub fn is_converted(&self) -> bool {
        !matches!(Form::of(&self.uri), Form::Plain(_))
    }

    /// Reads the file, whole and at one moment.
    pub fn read(&self) -> Result<FileText, FileProblem> {
        let form = Form::of(&self.uri);
        let (raw, modified) = steady(Path::new(&self.uri), form.most(), || {})?;
        Ok(FileText {
            bytes: raw.len() as u64,
            modified,
            digest: blake3::hash(&raw).to_hex().to_string(),
            raw,
            form,
        })
    }
}

impl FileText {
    /// Its text: Markdown where it was HTML.
    pub fn into_text(self) -> Result<String, FileProblem> {
        let text = match self.form {
            Form::Pdf => pdf::text(self.raw)?,
            Form::Plain(_) => utf8(self.raw)?,
            Form::Html => {
                let page = utf8(self.raw)?;
                if html::is_too_deep(&page) {
                    return Err(FileProblem::Tangled);
                }
                html::markdown(&page)
            }
        };
        if text.trim().is_empty() {
            return Err(FileProblem::Empty);
        }
        let (bytes, most) = (text.len() as u64, TEXT_FILE_BYTES);
        if bytes > most {
            return Err(FileProblem::TooLarge { bytes, most });
        }
        Ok(text)
    }
}

fn utf8(raw: Vec<u8>) -> Result<String, FileProblem> {
    if raw.contains(&0) {
        return Err(FileProblem::Binary("it holds NUL bytes"));
    }
    let text = String::from_utf8(raw).map_err(|_| FileProblem::Binary("it is not UTF-8"))?;
    Ok(match text.strip_prefix('\u{feff}') {
        Some(rest) => rest.to_owned(),
        None => text,
    })
}

/// The bytes of a file that did not change while they were read. `during` runs in between, for
/// tests.
fn steady(
    path: &Path,
    most: u64,
    mut during: impl FnMut(),
) -> Result<(Vec<u8>, Time), FileProblem> {
    let look = || fs::metadata(path).map_err(FileProblem::of_io);
    for _ in 0..ATTEMPTS {
        let before = look()?;
        // Opening a pipe would wait for somebody to write.
        if !before.is_file() {
            return Err(FileProblem::NotAFile);
        }
        if before.len() > most {
            let bytes = before.len();
            return Err(FileProblem::TooLarge { bytes, most });
        }
        let mut raw = Vec::with_capacity(usize::try_from(before.len()).unwrap_or_default());
        let file = File::open(path).map_err(FileProblem::of_io)?;
        let read = file.take(most + 1).read_to_end(&mut raw);
        read.map_err(FileProblem::Unreadable)?;
        during();
        let after = look()?;
        let same = before.len() == after.len() && modified(&before) == modified(&after);
        if same && raw.len() as u64 == after.len() {
            return Ok((raw, modified(&after)));
        }
    }
    Err(FileProblem::Changed)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_file_that_changes_while_it_is_read_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.txt");
        fs::write(&path, "one\n").unwrap();
        let append = || {
            let mut file = File::options().append(true).open(&path).unwrap();
            file.write_all(b"more\n").unwrap();
        };
        let mut left = 1;
        let settled = steady(&path, 1000, || {
            if left > 0 {
                left -= 1;
                append();
            }
        });
        assert_eq!(settled.unwrap().0, b"one\nmore\n");
        let never = steady(&path, 1000, append);
        assert!(matches!(never, Err(FileProblem::Changed)));
    }

    #[test]
    fn a_file_that_vanishes_while_it_is_read_is_missing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("gone.txt");
        fs::write(&path, "one\n").unwrap();
        let gone = steady(&path, 1000, || fs::remove_file(&path).unwrap());
        assert!(matches!(gone, Err(FileProblem::Missing)));
    }

    #[test]
    fn a_mark_at_the_beginning_is_no_text() {
        assert_eq!(utf8("\u{feff}tea".into()).unwrap(), "tea");
        assert!(matches!(utf8(vec![b'a', 0]), Err(FileProblem::Binary(_))));
        assert!(matches!(
            utf8(vec![0xff, 0xfe]),
            Err(FileProblem::Binary(_))
        ));
    }
}
