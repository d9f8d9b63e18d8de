//! Notes from files on a disk: nothing outside the root is ever read.

use mnemon_core::ErrorKind;
use mnemon_operations::Error;

use super::*;

struct Place {
    folder: tempfile::TempDir,
    memory: Memory,
}

fn place() -> Place {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("project");
    std::fs::create_dir_all(root.join("docs")).unwrap();
    std::fs::write(root.join("docs/a.md"), "Dùng SQLite cho mọi thứ").unwrap();
    std::fs::write(folder.path().join("secret.txt"), "outside").unwrap();
    let mut config = config("ram:");
    config.notes.root = Sourced::default(root);
    Place {
        memory: open(&config),
        folder,
    }
}

impl Place {
    fn try_add(&self, path: &str) -> Result<Added, Error> {
        let note = NewNote {
            content_path: Some(path.to_owned()),
            ..NewNote::default()
        };
        Ok(wait(self.memory.notes().add(&now(), note, None))?)
    }

    #[track_caller]
    fn refused(&self, path: &str, kind: ErrorKind, words: &str) {
        let error = self.try_add(path).unwrap_err();
        assert_eq!(error.kind(), kind, "{path}: {error}");
        assert!(error.to_string().contains(words), "{path}: {error}");
        assert!(!error.to_string().contains("outside"), "{error}");
    }

    fn inside(&self, path: &str) -> std::path::PathBuf {
        self.folder.path().join("project").join(path)
    }
}

#[test]
fn a_file_below_the_root() {
    let place = place();
    let added = place.try_add("docs/a.md").unwrap();
    assert_eq!(added.summary, "Dùng SQLite cho mọi thứ");
    assert!(
        added
            .message
            .starts_with("Stored 23 chars from docs/a.md in short-term.")
    );
    let absolute = place.inside("docs/a.md").display().to_string();
    let again = place.try_add(&absolute).unwrap();
    assert!(again.known && again.id == added.id);
}

#[test]
fn no_path_leads_out() {
    let place = place();
    let outside = place.folder.path().join("secret.txt").display().to_string();
    let sibling = format!(
        "{}-2/x",
        place.inside("").display().to_string().trim_end_matches('/')
    );
    for path in [
        "../secret.txt",
        "docs/../../secret.txt",
        &outside,
        &sibling,
        "/etc/hostname",
    ] {
        place.refused(path, ErrorKind::Invalid, "not a path below the root");
    }
}

#[cfg(unix)]
#[test]
fn no_link_leads_out() {
    use std::os::unix::fs::symlink;
    let place = place();
    let outside = place.folder.path();
    symlink(outside.join("secret.txt"), place.inside("link.txt")).unwrap();
    symlink(outside, place.inside("up")).unwrap();
    symlink("../secret.txt", place.inside("relative.txt")).unwrap();
    symlink("link.txt", place.inside("twice.txt")).unwrap();
    for path in ["link.txt", "up/secret.txt", "relative.txt", "twice.txt"] {
        place.refused(path, ErrorKind::Invalid, "not a path below the root");
    }
    // One that stays inside is fine.
    symlink("docs/a.md", place.inside("inner.md")).unwrap();
    assert!(place.try_add("inner.md").is_ok());
}

#[test]
fn what_is_no_text_or_too_much() {
    let place = place();
    std::fs::write(place.inside("latin1.txt"), b"caf\xe9").unwrap();
    std::fs::write(place.inside("large.txt"), vec![b'x'; 11 * 1024 * 1024]).unwrap();
    std::fs::write(place.inside("most.txt"), vec![b'x'; 10 * 1024 * 1024]).unwrap();
    place.refused("latin1.txt", ErrorKind::Invalid, "byte 3 is not UTF-8");
    place.refused("large.txt", ErrorKind::TooLarge, "at most 10485760");
    place.refused(
        "docs",
        ErrorKind::Invalid,
        "`docs` is a folder; name a file",
    );
    place.refused("nowhere.md", ErrorKind::NotFound, "there is no file");
    for (path, hint) in [("large.txt", "split it"), ("../secret.txt", "notes.root")] {
        let error = place.try_add(path).unwrap_err();
        let said = error.hint().unwrap_or_default();
        assert!(said.contains(hint), "{path}: {said}");
    }
    assert!(place.try_add("most.txt").unwrap().truncated);
}
