//! Start-up: the window from the end of the log, without reading the rest of it.

use mnemon_core::log::Log;
use mnemon_core::{Time, limits};

use super::{Hot, HotLine, Line, log_path};
use crate::conversation::session::SessionId;
use crate::records::Error;

/// Bytes that are read at first; twice as many each time a line is longer than that.
const PIECE: usize = 64 * 1024;
/// Skipped lines that are named; more are counted.
const NAMED: usize = 100;

const TOO_LONG: &str = "it is longer than a line may be";

/// A window that was read from a log.
#[derive(Debug, Clone, PartialEq)]
pub struct Boot {
    pub hot: Hot,
    /// Lines on the way that are no lines, the last one first; at most a hundred are named.
    pub skipped: Vec<Skipped>,
    /// How many there were.
    pub skipped_count: u64,
    /// How much of the log was read.
    pub bytes_read: u64,
    /// Whether the search for valid lines was given up because so much was read in vain.
    pub gave_up: bool,
    /// When the session was last purged.
    pub(super) purged: Option<Time>,
}

/// A line that is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// Where in the log it begins.
    pub offset: u64,
    pub what: String,
}

impl Boot {
    /// A window that nothing was read into yet.
    pub(super) fn of(hot: Hot) -> Self {
        Self {
            hot,
            skipped: Vec::new(),
            skipped_count: 0,
            bytes_read: 0,
            gave_up: false,
            purged: None,
        }
    }

    /// Takes a line if it is one; `is_last` tells the end of the log without a line break.
    pub(super) fn take(&mut self, offset: u64, bytes: &[u8], is_last: bool) {
        let bytes = match offset {
            // Some editors begin a file with a mark.
            0 => bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes),
            _ => bytes,
        };
        if bytes.trim_ascii().is_empty() {
            return;
        }
        if bytes.len() > limits::LOG_LINE_BYTES {
            return self.skip(offset, TOO_LONG);
        }
        match Line::read(bytes.trim_ascii()) {
            Ok(line) if line.is_purged(self.purged) => {
                self.skip(offset, "it is from before the session was purged");
            }
            Ok(line) => self.hot.lines.push_front(HotLine { offset, line }),
            Err(_) if is_last => self.skip(offset, "the end was cut off while it was written"),
            Err(what) => self.skip(offset, &what),
        }
    }

    pub(super) fn skip(&mut self, offset: u64, what: &str) {
        self.skipped_count += 1;
        if self.skipped.len() < NAMED {
            let what = what.to_owned();
            self.skipped.push(Skipped { offset, what });
        }
    }
}

/// Reads backwards until there are `wanted` valid lines.
pub(super) async fn boot(
    log: &dyn Log,
    mut boot: Boot,
    session: &SessionId,
    wanted: usize,
) -> Result<Boot, Error> {
    let path = log_path(session);
    // The beginning of a line that goes on in what was read before.
    let mut open: Vec<u8> = Vec::new();
    let mut is_last = true;
    let mut is_too_long = false;
    let (mut end, mut size) = (None, PIECE);
    while boot.hot.lines.len() < wanted {
        let Some(piece) = log.read_before(&path, end, size).await? else {
            break;
        };
        boot.bytes_read += piece.bytes.len() as u64;
        let mut bytes = piece.bytes;
        let breaks = bytes.contains(&b'\n');
        if is_too_long {
            // Only the end of what came before can be of use: the beginning of that line.
            let cut = bytes.iter().rposition(|byte| *byte == b'\n');
            bytes.truncate(cut.map_or(0, |at| at + 1));
            is_too_long = !breaks;
        } else {
            bytes.append(&mut open);
        }
        let rest = take_lines(&mut boot, &bytes, piece.start, wanted, &mut is_last);
        open = bytes.get(..rest).unwrap_or_default().to_vec();
        if open.len() > limits::LOG_LINE_BYTES {
            boot.skip(piece.start, TOO_LONG);
            (open, is_too_long, is_last) = (Vec::new(), true, false);
        }
        if piece.start == 0 {
            break;
        }
        if boot.bytes_read > limits::BOOT_BYTES as u64 {
            boot.gave_up = true;
            break;
        }
        size = if breaks {
            PIECE
        } else {
            (size * 2).min(limits::LOG_LINE_BYTES)
        };
        end = Some(piece.start);
    }
    Ok(boot)
}

/// Takes whole lines from the end of the bytes, and returns how many bytes are left at their
/// beginning: a line that may have begun earlier.
fn take_lines(
    boot: &mut Boot,
    bytes: &[u8],
    start: u64,
    wanted: usize,
    is_last: &mut bool,
) -> usize {
    let mut end = bytes.len();
    while boot.hot.lines.len() < wanted {
        let before = bytes.get(..end).unwrap_or_default();
        let at = match before.iter().rposition(|byte| *byte == b'\n') {
            Some(at) => at + 1,
            // The first line of the log has no break before it.
            None if start == 0 => 0,
            None => return end,
        };
        let line = before.get(at..).unwrap_or_default();
        let is_torn = *is_last && !line.is_empty();
        *is_last = false;
        boot.take(start + at as u64, line, is_torn);
        if at == 0 {
            return 0;
        }
        end = at - 1;
    }
    end
}
