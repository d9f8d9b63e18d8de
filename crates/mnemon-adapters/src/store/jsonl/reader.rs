//! Reads a log: bounded lines, whole commits, and a tail that may be torn.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};

use mnemon_core::Tenant;
use serde::de::IgnoredAny;

use super::checksum;
use super::decode::decode;
use super::line::{Foreign, Header, LINE_BYTES, Line, Part, Unread};

/// A place in a log up to which everything has been read and used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Mark {
    pub(super) offset: u64,
    pub(super) lines: u64,
    /// The last line was whole but had no line break: the next append begins with one.
    pub(super) open_end: bool,
}

impl Mark {
    /// This many bytes and whole lines further.
    pub(super) fn after(self, bytes: u64, lines: u64) -> Self {
        Self {
            offset: self.offset + bytes,
            lines: self.lines + lines,
            open_end: false,
        }
    }
}

/// A line that was not used.
#[derive(Debug)]
pub(super) struct Bad {
    pub(super) line: u64,
    pub(super) offset: u64,
    /// 0 where a line is missing.
    pub(super) bytes: u64,
    pub(super) why: String,
    /// It looks like a line of ours that was damaged, not like another program's.
    pub(super) looks_ours: bool,
}

/// A line of a commit, and where it stands.
#[derive(Debug)]
pub(super) struct Placed {
    pub(super) part: Part,
    pub(super) from: Mark,
    pub(super) to: Mark,
}

impl Placed {
    pub(super) fn bad(&self, why: &str) -> Bad {
        Bad {
            looks_ours: true,
            ..bad(self.from, self.to, why.to_owned())
        }
    }
}

/// What is done with what a log says.
pub(super) trait Sink {
    fn header(&mut self, _header: Header) -> Result<(), Stop> {
        Ok(())
    }
    /// The lines of a commit in their order, without those that are damaged.
    fn commit(&mut self, _lines: Vec<Placed>) {}
    fn foreign(&mut self, _change: Foreign) {}
    fn bad(&mut self, bad: Bad);
    /// The number of the newest change before the place where reading begins.
    fn last_seq(&self) -> u64 {
        0
    }
}

/// Why reading came to an end before the end.
#[derive(Debug)]
pub(super) enum Stop {
    Io(io::Error),
    TooNew(i64),
    Other(mnemon_core::StoreError),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// How far a log was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Reached {
    pub(super) mark: Mark,
    /// The bytes after the mark: an unfinished line, or the lines of an unfinished commit.
    pub(super) torn: u64,
}

/// Reads on from the mark to the end of the file.
pub(super) fn read(
    file: &File,
    from: Mark,
    tenant: &Tenant,
    sink: &mut dyn Sink,
) -> Result<Reached, Stop> {
    let mut lines = Lines::new(file, from)?;
    let mut walk = Walk {
        newest: sink.last_seq(),
        sink,
        tenant,
        open: Open::default(),
        zeros: false,
        mark: from,
    };
    let mut bytes = Vec::new();
    loop {
        let here = lines.mark;
        match lines.next(&mut bytes)? {
            Next::End => break,
            Next::Line { whole: true } => walk.line(&bytes, here, lines.mark)?,
            Next::Line { whole: false } => {
                // Without a line break it is either whole, or the torn end of the file.
                if !walk.last(&bytes, here, lines.mark)? {
                    break;
                }
            }
            Next::TooLong => {
                let most = LINE_BYTES / 1024 / 1024;
                let why = format!("it is longer than {most} MiB");
                walk.skip(&bytes, bad(here, lines.mark, why), lines.mark);
            }
        }
    }
    walk.close(Follower::Nothing);
    Ok(Reached {
        mark: walk.mark,
        torn: lines.mark.offset - walk.mark.offset,
    })
}

/// Lines of a file, each within bounds.
pub(super) struct Lines<'a> {
    input: BufReader<&'a File>,
    /// Where the next line begins.
    pub(super) mark: Mark,
}

pub(super) enum Next {
    /// `whole` when it ended with a line break.
    Line {
        whole: bool,
    },
    TooLong,
    End,
}

impl<'a> Lines<'a> {
    pub(super) fn new(file: &'a File, from: Mark) -> io::Result<Self> {
        let mut input = BufReader::with_capacity(1 << 16, file);
        input.seek(SeekFrom::Start(from.offset))?;
        Ok(Self { input, mark: from })
    }

    /// Reads the next line into `bytes`, without its line break.
    pub(super) fn next(&mut self, bytes: &mut Vec<u8>) -> io::Result<Next> {
        bytes.clear();
        let most = LINE_BYTES as u64 + 1;
        let read = self.input.by_ref().take(most).read_until(b'\n', bytes)? as u64;
        if read == 0 {
            return Ok(Next::End);
        }
        self.mark.offset += read;
        self.mark.lines += 1;
        let whole = bytes.pop_if(|last| *last == b'\n').is_some();
        self.mark.open_end = !whole;
        if !whole && read == most {
            self.skip_rest()?;
            return Ok(Next::TooLong);
        }
        Ok(Next::Line { whole })
    }

    fn skip_rest(&mut self) -> io::Result<()> {
        loop {
            let buffer = self.input.fill_buf()?;
            if buffer.is_empty() {
                return Ok(());
            }
            let end = buffer.iter().position(|byte| *byte == b'\n');
            let used = end.map_or(buffer.len(), |at| at + 1);
            self.input.consume(used);
            self.mark.offset += used as u64;
            if end.is_some() {
                self.mark.open_end = false;
                return Ok(());
            }
        }
    }
}

/// The commit whose lines are being read.
#[derive(Default)]
struct Open {
    lines: Vec<Placed>,
    /// The highest number of these lines within the commit.
    highest: u64,
    /// Lines between those of the commit, or after them, that cannot be read.
    bad: Vec<Bad>,
    /// Zeros stand among its lines: a power cut left a hole in a write.
    zeros: bool,
    /// Where the last of its lines ends.
    to: Mark,
}

/// What comes after a commit that is not complete.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Follower {
    /// A line of ours. Our writers cut a torn commit off before they append, so the commit was
    /// whole once.
    Ours,
    /// A line of the original, which appends after a torn commit.
    Foreign,
    Nothing,
}

impl Open {
    fn is_empty(&self) -> bool {
        self.lines.is_empty() && self.bad.is_empty()
    }

    fn number(&self) -> u64 {
        self.lines.first().map_or(0, |line| line.part.batch)
    }

    fn has(&self, at: u64) -> Option<&Placed> {
        // Lines nearly always come in order, and a commit may have 100,000 of them.
        match at > self.highest {
            true => None,
            false => self.lines.iter().find(|line| line.part.at == at),
        }
    }

    /// Whether the line may be one of this commit.
    fn takes(&self, part: &Part) -> bool {
        let Some(first) = self.lines.first() else {
            return true;
        };
        let same = first.part.batch == part.batch && first.part.of == part.of;
        same && self
            .has(part.at)
            .is_none_or(|line| line.part.effect == part.effect)
    }

    /// How many of its lines are not there.
    fn missing(&self) -> u64 {
        let of = self.lines.first().map_or(0, |line| line.part.of);
        of.saturating_sub(self.lines.len() as u64)
    }

    /// Whether lines of it were damaged after they had been written whole.
    fn is_damaged(&self) -> bool {
        let has_end = self.lines.iter().any(|line| line.part.at == line.part.of);
        !self.zeros && (has_end || !self.bad.is_empty())
    }
}

struct Walk<'a> {
    sink: &'a mut dyn Sink,
    tenant: &'a Tenant,
    open: Open,
    /// The newest commit so far.
    newest: u64,
    /// The line before could not be read and held zeros.
    zeros: bool,
    /// Up to here everything is used, or skipped permanently.
    mark: Mark,
}

impl Walk<'_> {
    fn line(&mut self, bytes: &[u8], from: Mark, to: Mark) -> Result<(), Stop> {
        let bytes = without_mark(bytes, from);
        if bytes.iter().all(u8::is_ascii_whitespace) {
            if self.open.is_empty() {
                self.mark = to;
            }
            return Ok(());
        }
        let why = match decode(bytes, self.tenant) {
            Ok(line) => return self.good(line, from, to),
            Err(Unread::TooNew(found)) => return Err(Stop::TooNew(found)),
            Err(Unread::Bad(why)) => why,
        };
        let within = checksum::lines_within(bytes);
        for line in &within {
            if let Ok(line) = decode(line, self.tenant) {
                self.good(line, from, to)?;
            }
        }
        let why = match within.len() {
            0 => why,
            read => format!("{why}; {read} whole lines in it were read all the same"),
        };
        self.skip(bytes, bad(from, to, why), to);
        Ok(())
    }

    /// The last line, which has no line break. Whether it was whole all the same.
    fn last(&mut self, bytes: &[u8], from: Mark, to: Mark) -> Result<bool, Stop> {
        // Nothing that is cut off in the middle is JSON.
        let bytes = without_mark(bytes, from);
        if serde_json::from_slice::<IgnoredAny>(bytes).is_err() {
            return Ok(false);
        }
        self.line(bytes, from, to).map(|()| true)
    }

    fn good(&mut self, line: Line, from: Mark, to: Mark) -> Result<(), Stop> {
        match line {
            Line::Ours(part) => self.part(Placed { part, from, to }),
            Line::Foreign(change) => {
                self.close(Follower::Foreign);
                self.sink.foreign(change);
                self.mark = to;
            }
            Line::Header(header) => {
                self.close(Follower::Ours);
                if from.offset > 0 {
                    self.sink
                        .bad(bad(from, to, "a header is in the middle".to_owned()));
                }
                // Only a header with a checksum is trusted where it does not belong.
                if from.offset == 0 || header.clock.is_some() {
                    self.sink.header(header)?;
                }
                self.mark = to;
            }
        }
        self.zeros = false;
        Ok(())
    }

    fn part(&mut self, line: Placed) {
        if !self.open.takes(&line.part) {
            self.close(Follower::Ours);
        }
        self.open.to = line.to;
        if self.open.has(line.part.at).is_some() {
            self.open.bad.push(line.bad("it repeats an earlier line"));
            return;
        }
        self.open.zeros |= self.zeros;
        self.open.highest = self.open.highest.max(line.part.at);
        self.open.lines.push(line);
        if self.open.missing() == 0 {
            self.close(Follower::Ours);
        }
    }

    /// Skips a line that cannot be read. Inside a commit it waits for what becomes of the commit.
    fn skip(&mut self, bytes: &[u8], mut bad: Bad, to: Mark) {
        bad.looks_ours = looks_ours(bytes);
        let zeros = bytes.contains(&0);
        if self.open.is_empty() {
            self.zeros = zeros;
            self.sink.bad(bad);
            self.mark = to;
            return;
        }
        self.open.zeros |= zeros;
        self.open.bad.push(bad);
        self.open.to = to;
    }

    /// Ends the commit. A whole one counts; of a damaged one the lines that can be read count; a
    /// torn one was never acknowledged: at the end of the log it is left to the next writer.
    fn close(&mut self, follower: Follower) {
        if self.open.is_empty() {
            return;
        }
        let is_old = (1..=self.newest).contains(&self.open.number());
        let counts = match follower {
            Follower::Ours => true,
            Follower::Foreign => self.open.is_damaged(),
            Follower::Nothing => self.open.is_damaged() || is_old,
        };
        if !counts && follower == Follower::Nothing {
            return;
        }
        let mut open = std::mem::take(&mut self.open);
        self.mark = open.to;
        let lost = open.missing().saturating_sub(open.bad.len() as u64);
        if counts && lost > 0 {
            open.bad.extend(open.lines.first().map(|line| Bad {
                bytes: 0,
                ..line.bad(&format!("{lost} other lines of its commit are missing"))
            }));
        }
        for bad in open.bad {
            self.sink.bad(bad);
        }
        if !counts {
            for line in &open.lines {
                self.sink.bad(line.bad("its commit is not complete"));
            }
            return;
        }
        open.lines.sort_by_key(|line| line.part.at);
        let numbers = open.lines.iter().map(|line| line.part.batch);
        self.newest = numbers.fold(self.newest, u64::max);
        self.sink.commit(open.lines);
    }
}

/// Whether a line that cannot be read was written by us or by the original. One damaged byte hides
/// only one of these marks.
fn looks_ours(bytes: &[u8]) -> bool {
    let begins = |start: &str| bytes.starts_with(start.as_bytes());
    let has = |text: &str| {
        let mut parts = bytes.windows(text.len());
        parts.any(|part| part == text.as_bytes())
    };
    begins(r#"{"op":"add","entry":{"id":""#)
        || begins(r#"{"op":"update","entry":{"id":""#)
        || has(r#""mnemon":{"v":"#)
}

/// The line without the byte order mark that some editors put first.
fn without_mark(bytes: &[u8], from: Mark) -> &[u8] {
    match from.offset {
        0 => bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes),
        _ => bytes,
    }
}

pub(super) fn bad(from: Mark, to: Mark, why: String) -> Bad {
    Bad {
        line: to.lines,
        offset: from.offset,
        bytes: to.offset - from.offset,
        why,
        looks_ours: false,
    }
}
