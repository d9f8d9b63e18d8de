//! Reading a log without reading it whole: forwards from a place, and where its last lines begin.

use mnemon_core::limits;
use mnemon_core::log::Log;
use serde_json::{Map, Value};

use crate::records::Error;

/// Bytes that are read at once.
const PIECE: usize = 256 * 1024;
/// Bytes that are read at first to find the last lines.
const TAIL_PIECE: usize = 64 * 1024;
/// Lines that are read besides the wanted ones to begin with what the user said.
const NEAR: usize = 64;

/// A line without its break.
pub(super) struct RawLine {
    pub(super) start: u64,
    /// Where the next line begins.
    pub(super) end: u64,
    /// Empty if the line is too long to be read.
    pub(super) bytes: Vec<u8>,
    pub(super) is_too_long: bool,
}

/// How long the log is; `None` if there is none.
pub(super) async fn length(log: &dyn Log, path: &str) -> Result<Option<u64>, Error> {
    let end = log.read_before(path, None, 0).await?;
    Ok(end.map(|piece| piece.start))
}

/// The bytes from `from` up to `to`, as far as the log has them.
async fn bytes(log: &dyn Log, path: &str, from: u64, to: u64) -> Result<Vec<u8>, Error> {
    let most = usize::try_from(to.saturating_sub(from)).unwrap_or(usize::MAX);
    let Some(piece) = log.read_before(path, Some(to), most).await? else {
        return Ok(Vec::new());
    };
    // A log that became shorter meanwhile gives bytes from before the place.
    let before = usize::try_from(from.saturating_sub(piece.start)).unwrap_or(usize::MAX);
    Ok(piece.bytes.get(before..).unwrap_or_default().to_vec())
}

/// A digest of the bytes before this place. If it changes, another log lies there.
pub(super) async fn fingerprint(log: &dyn Log, path: &str, at: u64) -> Result<String, Error> {
    let found = bytes(log, path, at.saturating_sub(256), at).await?;
    Ok(blake3::hash(&found).to_hex().chars().take(16).collect())
}

/// At most `most` whole lines from `from` on, up to `to`: about as many bytes as one commit takes.
/// None if there is no line that has ended.
pub(super) async fn forward(
    log: &dyn Log,
    path: &str,
    from: u64,
    to: u64,
    most: usize,
) -> Result<Vec<RawLine>, Error> {
    let mut lines = Vec::new();
    let (mut start, mut at) = (from, from);
    let mut open: Vec<u8> = Vec::new();
    let mut is_too_long = false;
    while at < to && (lines.is_empty() || at - from < PIECE as u64) {
        let piece = bytes(log, path, at, to.min(at + PIECE as u64)).await?;
        if piece.is_empty() {
            break;
        }
        for part in piece.split_inclusive(|byte| *byte == b'\n') {
            at += part.len() as u64;
            if !is_too_long {
                open.extend_from_slice(part);
            }
            if open.len() > limits::LOG_LINE_BYTES {
                (open, is_too_long) = (Vec::new(), true);
            }
            if part.ends_with(b"\n") {
                lines.push(RawLine {
                    start,
                    end: at,
                    bytes: std::mem::take(&mut open),
                    is_too_long: std::mem::take(&mut is_too_long),
                });
                start = at;
            }
        }
    }
    lines.truncate(most);
    Ok(lines)
}

/// Where the last `wanted` valid lines before `end` begin, or a little earlier: no result is parted
/// from its call there, and no line from the others of its message. Never before `floor`. A log of
/// nothing but noise is given up after [`limits::BOOT_BYTES`].
pub(super) async fn tail_start(
    log: &dyn Log,
    path: &str,
    floor: u64,
    end: u64,
    wanted: usize,
) -> Result<u64, Error> {
    let mut size = TAIL_PIECE as u64;
    loop {
        let from = end.saturating_sub(size).max(floor);
        let most = usize::try_from(end - from).unwrap_or(usize::MAX);
        let Some(piece) = log.read_before(path, Some(end), most).await? else {
            return Ok(floor);
        };
        // A log may give less than was asked for.
        let from = piece.start.max(floor);
        if let Some(start) = last_lines(&piece.bytes, wanted) {
            return Ok(floor.max(piece.start + start as u64));
        }
        if from == floor {
            return Ok(floor);
        }
        if size >= limits::BOOT_BYTES as u64 {
            let first = piece.bytes.iter().position(|byte| *byte == b'\n');
            return Ok(first.map_or(end, |at| from + at as u64 + 1));
        }
        size *= 4;
    }
}

/// A line of the end of a log.
struct LateLine {
    start: usize,
    id: Option<String>,
    kind: String,
}

impl LateLine {
    /// Whether the log may be parted between that line and this one.
    fn may_follow(&self, before: &Self) -> bool {
        let is_same = self.id.is_some() && self.id == before.id;
        // Calls that are made at the same time have their results behind the last of them.
        let is_call = self.kind == "action" && before.kind == "action";
        !is_same && !is_call && self.kind != "observation"
    }
}

/// Where the last lines begin in the piece, whose own beginning may lie within a line: with what
/// the user said, if that is near.
fn last_lines(piece: &[u8], wanted: usize) -> Option<usize> {
    let mut valid = 0;
    let mut end = piece.len();
    let mut later: Option<LateLine> = None;
    let mut found = None;
    while let Some(at) = piece.get(..end)?.iter().rposition(|byte| *byte == b'\n') {
        let start = at + 1;
        let line = piece.get(start..end).unwrap_or_default();
        end = at;
        let Ok(members) = serde_json::from_slice::<Map<String, Value>>(line.trim_ascii()) else {
            continue;
        };
        let text = |name: &str| members.get(name)?.as_str().map(str::to_owned);
        let line = LateLine {
            start,
            id: text("id"),
            kind: text("type").unwrap_or_default(),
        };
        if let Some(later) = later.filter(|later| valid >= wanted && later.may_follow(&line)) {
            if later.kind == "user" {
                return Some(later.start);
            }
            found = found.or(Some(later.start));
        }
        if found.is_some() && valid >= wanted + NEAR {
            break;
        }
        valid += 1;
        later = Some(line);
    }
    found
}
