use std::collections::BTreeMap;
use std::sync::Mutex;

use async_trait::async_trait;
use mnemon_core::files::{File, Files, FilesError, Listed, Stamp};

use super::fnv;
use crate::make::at;

/// Files in memory. Its clock goes on by a millisecond with every write.
#[derive(Debug, Default)]
pub struct FilesInRam(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    files: BTreeMap<String, File>,
    writes: i64,
}

fn inside(path: &str) -> Result<(), FilesError> {
    let leads_out = |part: &str| part.is_empty() || part == "." || part == "..";
    if !path.contains('\\') && !path.split('/').any(leads_out) {
        return Ok(());
    }
    Err(FilesError::Outside {
        path: path.to_owned(),
        what: "every part must have a name".to_owned(),
    })
}

impl FilesInRam {
    fn below(&self, folder: &str) -> Vec<Listed> {
        let state = self.0.lock().unwrap();
        let files = state.files.iter().filter(|(path, _)| {
            let rest = path.strip_prefix(folder);
            folder.is_empty() || rest.is_some_and(|rest| rest.starts_with('/'))
        });
        files
            .map(|(path, file)| Listed {
                path: path.clone(),
                bytes: file.bytes.len() as u64,
                modified: file.stamp.modified,
            })
            .collect()
    }
}

#[async_trait]
impl Files for FilesInRam {
    async fn read(&self, path: &str) -> Result<Option<File>, FilesError> {
        inside(path)?;
        Ok(self.0.lock().unwrap().files.get(path).cloned())
    }

    async fn write(
        &self,
        path: &str,
        bytes: &[u8],
        unchanged_since: Option<&Stamp>,
    ) -> Result<Stamp, FilesError> {
        inside(path)?;
        let mut state = self.0.lock().unwrap();
        let there = state.files.get(path).map(|file| &file.stamp);
        if there != unchanged_since {
            let path = path.to_owned();
            return Err(FilesError::Conflict { path });
        }
        state.writes += 1;
        let stamp = Stamp {
            digest: format!("{:016x}", fnv(bytes)),
            modified: at(state.writes),
        };
        let file = File {
            bytes: bytes.to_vec(),
            stamp: stamp.clone(),
        };
        state.files.insert(path.to_owned(), file);
        Ok(stamp)
    }

    async fn list(&self, folder: &str) -> Result<Vec<Listed>, FilesError> {
        if !folder.is_empty() {
            inside(folder)?;
        }
        Ok(self.below(folder))
    }

    async fn changed(&self, folder: &str, known: &[Listed]) -> Result<Vec<String>, FilesError> {
        let now = self.list(folder).await?;
        let differs = |a: &&Listed, b: &[Listed]| !b.contains(a);
        let new = now.iter().filter(|file| differs(file, known));
        let old = known.iter().filter(|file| differs(file, &now));
        let mut paths: Vec<String> = new.chain(old).map(|file| file.path.clone()).collect();
        paths.sort();
        paths.dedup();
        Ok(paths)
    }
}
