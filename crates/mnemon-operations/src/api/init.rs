//! Give a project a memory of its own: `.mnemon/`, which is found from any folder below.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use mnemon_core::Invalid;
use serde::Serialize;

use crate::Error;
use crate::config::{Config, Origin, PROJECT, stays_inside};
use crate::wiring;

/// What keeps the memory out of a repository: it holds what people said.
const IGNORE: &str = "# The memory of this project. It is not for the repository.\n*\n";

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Response {
    /// The folder of the memory.
    pub folder: PathBuf,
    /// Its store, as a URL.
    pub store: String,
    /// Whether anything had to be made.
    #[serde(rename = "new")]
    pub created: bool,
    /// The store that was used here before and is out of sight now, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// The variable or flag that names another store, and goes before the project's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overruled_by: Option<&'static str>,
}

/// Makes what is not there yet in the project's folder, and leaves alone what is.
pub fn run(config: &Config, project: &Path) -> Result<Response, Error> {
    // Without the `.` of a folder that was named so.
    let folder: PathBuf = project.join(PROJECT).components().collect();
    let is_new = !folder.is_dir();
    if !is_new && !stays_inside(&folder) {
        let what = format!(
            "{} or the store in it is a link that leads out of the project; remove the link",
            folder.display()
        );
        return Err(Invalid::new("PATH", what).into());
    }
    wiring::make_private_folder(&folder).map_err(Error::file("made", &folder))?;
    let ignore = folder.join(".gitignore");
    let made = match fs::File::create_new(&ignore) {
        Ok(mut file) => file.write_all(IGNORE.as_bytes()).map(|()| true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    };
    let made = made.map_err(Error::file("made", &ignore))?;
    let store = folder.join("mnemon.db");
    let has_store = store.exists();
    let store = format!("sqlite:{}", store.display());
    let before = Some(&config.store.value).filter(|before| **before != store && is_there(before));
    let before = before.cloned();
    let overruled_by = match config.store.origin {
        Origin::Env(name) | Origin::Flag(name) if config.store.value != store => Some(name),
        _ => None,
    };
    let mut project = config.clone();
    project.store.value.clone_from(&store);
    wiring::open(&project)?;
    Ok(Response {
        folder,
        store,
        created: is_new || made || !has_store,
        before,
        overruled_by,
    })
}

/// Whether the store has a file already.
fn is_there(store: &str) -> bool {
    let path = store.strip_prefix("sqlite:");
    path.is_some_and(|path| Path::new(path).is_file())
}
