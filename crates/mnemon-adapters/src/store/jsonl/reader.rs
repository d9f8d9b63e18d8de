//! Reads a log: bounded lines, whole commits, and a tail that may be torn.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};

use mnemon_core::Tenant;
use mnemon_core::ram::Effect;
use serde::de::IgnoredAny;

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
    pub(super) bytes: u64,
    pub(super) why: String,
}

/// What is done with what a log says.
pub(super) trait Sink {
    fn header(&mut self, header: Header) -> Result<(), Stop>;
    fn commit(&mut self, effects: Vec<Effect>);
    fn foreign(&mut self, change: Foreign);
    fn bad(&mut self, bad: Bad);
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
        sink,
        tenant,
        open: Vec::new(),
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
                walk.skip(here, lines.mark, format!("it is longer than {most} MiB"));
            }
        }
    }
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

/// A line of a commit that is not complete yet.
struct Open {
    part: Part,
    from: Mark,
    to: Mark,
}

struct Walk<'a> {
    sink: &'a mut dyn Sink,
    tenant: &'a Tenant,
    open: Vec<Open>,
    /// Up to here everything is used, or skipped for good.
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
        match decode(bytes, self.tenant) {
            Ok(line) => self.good(line, from, to),
            Err(Unread::TooNew(found)) => Err(Stop::TooNew(found)),
            Err(Unread::Bad(why)) => {
                self.skip(from, to, why);
                Ok(())
            }
        }
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
            Line::Ours(part) => self.part(Open { part, from, to }),
            Line::Foreign(change) => {
                self.give_up("its commit is not complete");
                self.sink.foreign(change);
                self.mark = to;
            }
            Line::Header(header) if from.offset == 0 => {
                self.sink.header(header)?;
                self.mark = to;
            }
            Line::Header(_) => self.skip(from, to, "a header stands in the middle".to_owned()),
        }
        Ok(())
    }

    fn part(&mut self, line: Open) {
        let follows = match self.open.last() {
            Some(Open { part, .. }) => {
                let same = part.commit == line.part.commit && part.of == line.part.of;
                same && part.at + 1 == line.part.at
            }
            None => line.part.at == 1,
        };
        if !follows {
            self.give_up("its commit is not complete");
            if line.part.at != 1 {
                let why = "the beginning of its commit is missing".to_owned();
                self.skip(line.from, line.to, why);
                return;
            }
        }
        let complete = line.part.at == line.part.of;
        let to = line.to;
        self.open.push(line);
        if complete {
            let lines = self.open.drain(..);
            self.sink
                .commit(lines.map(|open| open.part.effect).collect());
            self.mark = to;
        }
    }

    /// Skips a line for good, and with it a commit that it interrupts.
    fn skip(&mut self, from: Mark, to: Mark, why: String) {
        self.give_up("its commit is not complete");
        self.sink.bad(bad(from, to, why));
        self.mark = to;
    }

    fn give_up(&mut self, why: &str) {
        for open in self.open.drain(..) {
            self.mark = open.to;
            self.sink.bad(bad(open.from, open.to, why.to_owned()));
        }
    }
}

/// The line without the byte order mark that some editors put first.
fn without_mark(bytes: &[u8], from: Mark) -> &[u8] {
    match from.offset {
        0 => bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes),
        _ => bytes,
    }
}

fn bad(from: Mark, to: Mark, why: String) -> Bad {
    Bad {
        line: to.lines,
        offset: from.offset,
        bytes: to.offset - from.offset,
        why,
    }
}
