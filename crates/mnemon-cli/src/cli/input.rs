//! Content from stdin or a file: strict UTF-8, within the limit, never more than that in memory.

use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::path::Path;

use mnemon_core::{Invalid, limits};

use mnemon_operations::Error;
use mnemon_operations::api::lines::utf8;

/// What stdin holds, without the line break that `echo` and editors put at the end.
pub(super) fn stdin() -> Result<String, Error> {
    let mut text = read(io::stdin().lock(), Error::Input)?;
    if text.ends_with('\n') {
        text.pop();
        if text.ends_with('\r') {
            text.pop();
        }
    }
    Ok(text)
}

/// The text that is piped in, for a field that was not given.
pub(super) fn piped(field: &str, command: &str) -> Result<String, Error> {
    if io::stdin().is_terminal() {
        let what = format!("is missing; write it after `mnemon {command}`, or pipe it in");
        return Err(Invalid::new(field, what).into());
    }
    stdin()
}

/// A text, or what stdin holds where it is `-`.
pub(super) fn given(text: &str) -> Result<String, Error> {
    match text {
        "-" => stdin(),
        text => Ok(text.to_owned()),
    }
}

/// A text; what stdin holds where it is `-`; the file where it is `@PATH`.
pub(super) fn given_or_file(text: &str) -> Result<String, Error> {
    match text.strip_prefix('@') {
        Some(path) => file(Path::new(path)),
        None => given(text),
    }
}

/// What the file holds, as it is.
pub(super) fn file(path: &Path) -> Result<String, Error> {
    let failed = Error::file("read", path);
    read(File::open(path).map_err(failed)?, failed)
}

fn read(from: impl Read, failed: impl FnOnce(io::Error) -> Error) -> Result<String, Error> {
    let most = limits::CONTENT_BYTES;
    let mut bytes = Vec::new();
    // One line break may be cut off, one byte more tells that it is too much.
    let mut bounded = from.take(most as u64 + 2);
    if let Err(error) = bounded.read_to_end(&mut bytes) {
        return Err(failed(error));
    }
    if bytes.strip_suffix(b"\n").unwrap_or(&bytes).len() > most {
        let what = "the content".to_owned();
        return Err(Error::TooLarge { what, most });
    }
    utf8("content", bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(bytes: &[u8]) -> Result<String, Error> {
        read(bytes, Error::Input)
    }

    #[test]
    fn the_offset_of_the_bad_byte_is_named() {
        let error = bytes(b"ab\xffcd").unwrap_err().to_string();
        assert!(error.contains("offset 2"), "{error}");
    }

    #[test]
    fn too_much_is_not_read_to_its_end() {
        let error = read(io::repeat(b'x'), Error::Input)
            .unwrap_err()
            .to_string();
        assert!(error.contains("the limit"), "{error}");
    }
}
