//! Which files there are.

use std::collections::HashMap;
use std::fs::{self, Metadata};
use std::io;
use std::path::{Path, PathBuf};

use ignore::WalkBuilder;
use ignore::overrides::{Override, OverrideBuilder};
use mnemon_core::chunk::language;
use mnemon_core::{Invalid, Time, limits};

use super::{DEPTH, FILES, FileProblem};

/// Extensions of files that hold text, besides those of source code.
const TEXT: &[&str] = &[
    "md", "markdown", "mdx", "txt", "text", "rst", "html", "htm", "pdf",
];

/// A file that may hold a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundFile {
    /// As the caller would write it.
    pub path: PathBuf,
    /// Absolute, with links resolved: the same file always has the same one.
    pub uri: String,
    pub bytes: u64,
    pub modified: Time,
    /// Whether the caller named it, as opposed to a folder it is in.
    pub named: bool,
}

/// A path that was not taken in, and why.
#[derive(Debug)]
pub struct NotTaken {
    pub path: PathBuf,
    pub why: FileProblem,
    /// Whether the caller named it.
    pub named: bool,
}

/// What is below the named paths.
#[derive(Debug, Default)]
pub struct Found {
    /// Each once, in the order of the paths, then by name.
    pub files: Vec<FoundFile>,
    pub not_taken: Vec<NotTaken>,
    /// The named folders, as they begin the `uri`s of the files in them.
    pub folders: Vec<String>,
    /// Where a file of this uri stands in `files`.
    places: HashMap<String, usize>,
}

/// Finds the files at and below the paths. Hidden ones, and those that a `.gitignore` or `.ignore`
/// below the named folder leaves out, are passed over, and so are those that match `exclude`:
/// globs as in a `.gitignore`. A named file is always meant.
pub fn find(paths: &[PathBuf], exclude: &[String]) -> Result<Found, Invalid> {
    let mut found = Found::default();
    for path in paths {
        if let Err(why) = found.named(path, exclude)? {
            found.leave_out(path.clone(), why, true);
        }
    }
    Ok(found)
}

/// Whether nothing stands there any more. A path that cannot be looked at is not gone.
pub fn is_gone(path: &str) -> bool {
    let gone = [io::ErrorKind::NotFound, io::ErrorKind::NotADirectory];
    fs::symlink_metadata(path).is_err_and(|error| gone.contains(&error.kind()))
}

impl Found {
    /// A path that the caller named; the inner error is about this path alone.
    fn named(
        &mut self,
        path: &Path,
        exclude: &[String],
    ) -> Result<Result<(), FileProblem>, Invalid> {
        // Globs are read even where there is nothing to leave out: a typo is told.
        let overrides = excluding(path, exclude)?;
        let resolved = match fs::canonicalize(path) {
            Ok(resolved) => resolved,
            Err(error) => return Ok(Err(FileProblem::of_io(error))),
        };
        let metadata = match fs::metadata(&resolved) {
            Ok(metadata) => metadata,
            Err(error) => return Ok(Err(FileProblem::of_io(error))),
        };
        if metadata.is_dir() {
            self.folders.extend(resolved.to_str().map(str::to_owned));
            return Ok(self.folder(path, &resolved, overrides));
        }
        Ok(self.take(path.to_owned(), &resolved, &metadata, true))
    }

    fn folder(
        &mut self,
        shown: &Path,
        root: &Path,
        overrides: Override,
    ) -> Result<(), FileProblem> {
        let walk = WalkBuilder::new(root)
            .overrides(overrides)
            .follow_links(false)
            .parents(false)
            .git_global(false)
            .git_exclude(false)
            .require_git(false)
            .max_depth(Some(DEPTH))
            .sort_by_file_name(Ord::cmp)
            .build();
        for entry in walk {
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) => {
                    self.unreadable(shown, root, error);
                    continue;
                }
            };
            let below = entry.path().strip_prefix(root).unwrap_or(entry.path());
            let path = shown.join(below);
            let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
            let taken = if is_folder && entry.depth() < DEPTH {
                continue;
            } else if is_folder {
                Err(FileProblem::TooDeep)
            } else if entry.path_is_symlink() {
                Err(FileProblem::Link)
            } else if !is_text(below) {
                Err(FileProblem::UnknownKind)
            } else {
                let metadata = fs::symlink_metadata(entry.path());
                let metadata = metadata.map_err(FileProblem::of_io);
                metadata.and_then(|found| self.take(path.clone(), entry.path(), &found, false))
            };
            if let Err(why) = taken {
                self.leave_out(path, why, false);
            }
            if self.files.len() > FILES || self.not_taken.len() > FILES {
                return Err(FileProblem::TooMany);
            }
        }
        Ok(())
    }

    /// A folder that cannot be looked into; the rest is still walked.
    fn unreadable(&mut self, shown: &Path, root: &Path, error: ignore::Error) {
        let place = place_of(&error).map(Path::to_owned);
        let below = place.as_deref().and_then(|at| at.strip_prefix(root).ok());
        let path = below.map_or_else(|| shown.to_owned(), |below| shown.join(below));
        let said = error.to_string();
        let error = error.into_io_error();
        let error = error.unwrap_or_else(|| io::Error::other(said));
        self.leave_out(path, FileProblem::of_io(error), false);
    }

    fn leave_out(&mut self, path: PathBuf, why: FileProblem, named: bool) {
        self.not_taken.push(NotTaken { path, why, named });
    }

    fn take(
        &mut self,
        path: PathBuf,
        resolved: &Path,
        metadata: &Metadata,
        named: bool,
    ) -> Result<(), FileProblem> {
        if !metadata.is_file() {
            return Err(FileProblem::NotAFile);
        }
        let uri = resolved.to_str().filter(|uri| {
            let chars = uri.chars();
            chars.clone().count() <= limits::SOURCE_CHARS && !chars.clone().any(char::is_control)
        });
        let uri = uri.ok_or(FileProblem::BadName)?.to_owned();
        if let Some(known) = self.places.get(&uri) {
            // Named as well as found in a folder that is named.
            if let Some(known) = self.files.get_mut(*known) {
                known.named |= named;
            }
            return Ok(());
        }
        self.places.insert(uri.clone(), self.files.len());
        self.files.push(FoundFile {
            path,
            uri,
            bytes: metadata.len(),
            modified: modified(metadata),
            named,
        });
        Ok(())
    }
}

/// When the file was last written; the beginning of time where nobody knows.
pub(crate) fn modified(metadata: &Metadata) -> Time {
    let since = metadata.modified().ok();
    let since = since.and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
    let millis = since.and_then(|since| i64::try_from(since.as_millis()).ok());
    millis
        .and_then(|ms| Time::from_millis(ms).ok())
        .unwrap_or(Time::EPOCH)
}

fn excluding(root: &Path, exclude: &[String]) -> Result<Override, Invalid> {
    let root = fs::canonicalize(root).unwrap_or_else(|_| root.to_owned());
    let mut builder = OverrideBuilder::new(root);
    let wrong = |glob: &str, error: ignore::Error| {
        let what = format!("`{}` is not a glob: {error}", glob.escape_debug());
        Invalid::new("exclude", what)
    };
    for glob in exclude {
        let glob = glob.trim();
        if glob.is_empty() {
            let what = "is empty; write a glob such as *.lock or drafts/**";
            return Err(Invalid::new("exclude", what));
        }
        // What an override names is meant, unless it begins so.
        builder
            .add(&format!("!{glob}"))
            .map_err(|error| wrong(glob, error))?;
    }
    builder.build().map_err(|error| wrong("", error))
}

/// Whether a file met in a folder may be text, by its name alone. One without an extension may
/// be (README, LICENSE): its content decides.
fn is_text(path: &Path) -> bool {
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
        // Its name is told to be wrong later.
        return true;
    };
    let Some((_, extension)) = name.rsplit_once('.') else {
        return true;
    };
    TEXT.contains(&extension.to_lowercase().as_str()) || language(name).is_some()
}

fn place_of(error: &ignore::Error) -> Option<&Path> {
    match error {
        ignore::Error::WithPath { path, .. } => Some(path),
        ignore::Error::WithDepth { err, .. } | ignore::Error::WithLineNumber { err, .. } => {
            place_of(err)
        }
        _ => None,
    }
}
