//! Files that hold memory are for their owner only, whatever the umask allows: files are made with
//! mode 0600, folders with 0700. What is there already keeps its mode. Where there are no modes,
//! files are made as usual.

use std::fs::{self, DirBuilder, Metadata, OpenOptions};
use std::io;
use std::path::Path;

/// Options for opening a file; one that is made by it is its owner's only.
pub(crate) fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    options
}

/// Makes the folder and those above it that are missing. They are their owner's only.
pub fn make_folder(folder: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt;
        builder.mode(0o700);
    }
    builder.create(folder)
}

/// Gives a file that is about to replace another the mode of that one.
pub(crate) fn keep_mode(fresh: &Path, replaced: &Path) -> io::Result<()> {
    let there: io::Result<Metadata> = fs::metadata(replaced);
    match there {
        Ok(metadata) => fs::set_permissions(fresh, metadata.permissions()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}
