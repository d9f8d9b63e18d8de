//! Enter this server into the configuration of an MCP client.

mod client;
mod edit;

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use mnemon_core::Invalid;
use serde::Serialize;

use crate::Error;
pub use client::{Client, Level};

/// The name of the entry unless somebody says otherwise.
pub const NAME: &str = "mnemon";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    pub client: Client,
    pub level: Level,
    /// What the entry is called.
    pub name: String,
    /// The program to start.
    pub command: String,
    /// Arguments after `mcp`.
    pub args: Vec<String>,
    /// The project, for its level.
    pub project: PathBuf,
    /// The user's folder, for the user's level.
    pub home: Option<PathBuf>,
    /// The user's folder for configurations, where that is not `.config` below their own.
    pub config_home: Option<PathBuf>,
}

/// The file as it is and as it would be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Response {
    pub path: PathBuf,
    /// Nothing if there is no such file yet.
    pub before: Option<String>,
    pub after: String,
}

impl Response {
    /// Whether the entry is there already.
    pub fn is_done(&self) -> bool {
        self.before.as_ref() == Some(&self.after)
    }
}

/// Says what would be written.
pub fn run(request: &Request) -> Result<Response, Error> {
    let place = client::place(request)?;
    let path = resolved(&place.path);
    let before = match fs::read_to_string(&path) {
        Ok(text) => Some(text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(Error::file("read", &path)(error)),
    };
    let entry = client::entry(request);
    let text = before.as_deref().unwrap_or_default();
    let text = text.trim_start_matches('\u{feff}');
    let after = match place.is_toml {
        true => edit::toml(text, place.section, &request.name, &entry),
        false => edit::json(text, place.section, &request.name, &entry),
    };
    let after = after.map_err(|what| Invalid::new(path.display().to_string(), what))?;
    Ok(Response {
        path,
        before,
        after,
    })
}

/// Writes it, unless somebody else has changed the file since.
pub fn write(planned: &Response) -> Result<(), Error> {
    let path = &planned.path;
    let failed = Error::file("written", path);
    let now = fs::read_to_string(path).ok();
    if now != planned.before {
        let what = "was changed meanwhile; nothing was written, try again";
        return Err(Invalid::new(path.display().to_string(), what).into());
    }
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder).map_err(failed)?;
    // All of it or nothing: a client may be reading.
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(failed)?;
    file.write_all(planned.after.as_bytes()).map_err(failed)?;
    if let Ok(there) = fs::metadata(path) {
        let _ = fs::set_permissions(file.path(), there.permissions());
    } else {
        let _ = open_to_all(file.path());
    }
    file.as_file().sync_all().map_err(failed)?;
    file.persist(path).map_err(|error| failed(error.error))?;
    Ok(())
}

/// A temporary file is for its maker only; a new configuration is as readable as others are.
#[cfg(unix)]
fn open_to_all(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(0o644))
}

#[cfg(not(unix))]
fn open_to_all(_path: &Path) -> io::Result<()> {
    Ok(())
}

/// What the path leads to: a configuration that is a link stays one.
fn resolved(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

#[cfg(test)]
mod tests;
