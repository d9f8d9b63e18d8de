use std::collections::BTreeMap;
use std::sync::Mutex;

use async_trait::async_trait;
use mnemon_core::files::{File, Files, FilesError, Listed, Stamp, check_path};
use mnemon_core::log::{Log, Piece};

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

impl State {
    fn expect(&self, path: &str, stamp: Option<&Stamp>) -> Result<(), FilesError> {
        let digest = |stamp: &Stamp| stamp.digest.clone();
        let there = self.files.get(path).map(|file| digest(&file.stamp));
        if there != stamp.map(digest) {
            let path = path.to_owned();
            return Err(FilesError::Conflict { path });
        }
        Ok(())
    }

    fn put(&mut self, path: &str, bytes: Vec<u8>) -> Stamp {
        self.writes += 1;
        let stamp = Stamp {
            digest: format!("{:016x}", fnv(&bytes)),
            modified: at(self.writes),
        };
        let file = File {
            bytes,
            stamp: stamp.clone(),
        };
        self.files.insert(path.to_owned(), file);
        stamp
    }
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
        check_path(path)?;
        Ok(self.0.lock().unwrap().files.get(path).cloned())
    }

    async fn write(
        &self,
        path: &str,
        bytes: &[u8],
        unchanged_since: Option<&Stamp>,
    ) -> Result<Stamp, FilesError> {
        check_path(path)?;
        let mut state = self.0.lock().unwrap();
        state.expect(path, unchanged_since)?;
        Ok(state.put(path, bytes.to_vec()))
    }

    async fn remove(&self, path: &str, unchanged_since: &Stamp) -> Result<(), FilesError> {
        check_path(path)?;
        let mut state = self.0.lock().unwrap();
        state.expect(path, Some(unchanged_since))?;
        state.files.remove(path);
        Ok(())
    }

    async fn list(&self, folder: &str) -> Result<Vec<Listed>, FilesError> {
        if !folder.is_empty() {
            check_path(folder)?;
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

#[async_trait]
impl Log for FilesInRam {
    async fn append(&self, path: &str, bytes: &[u8]) -> Result<u64, FilesError> {
        check_path(path)?;
        let mut state = self.0.lock().unwrap();
        let mut whole = match state.files.get(path) {
            Some(file) => file.bytes.clone(),
            None => Vec::new(),
        };
        if whole.last().is_some_and(|last| *last != b'\n') {
            whole.push(b'\n');
        }
        whole.extend_from_slice(bytes);
        let length = whole.len() as u64;
        state.put(path, whole);
        Ok(length)
    }

    async fn read_before(
        &self,
        path: &str,
        end: Option<u64>,
        most: usize,
    ) -> Result<Option<Piece>, FilesError> {
        check_path(path)?;
        let state = self.0.lock().unwrap();
        Ok(state.files.get(path).map(|file| {
            let length = file.bytes.len();
            let end = end.map_or(length, |end| length.min(end as usize));
            let start = end.saturating_sub(most);
            Piece {
                start: start as u64,
                bytes: file.bytes[start..end].to_vec(),
            }
        }))
    }

    async fn erase(&self, path: &str) -> Result<bool, FilesError> {
        check_path(path)?;
        Ok(self.0.lock().unwrap().files.remove(path).is_some())
    }
}
