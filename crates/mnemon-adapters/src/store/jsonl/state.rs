//! What one process knows of one tenant's log.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use mnemon_core::commit::{Effect, Entry};
use mnemon_core::ram::{Image, Past};
use mnemon_core::{Cause, Id, StoreError, Tenant, Time};

use super::decode::decode_kept;
use super::disk::{self, Identity, Paths, read_failed};
use super::encode::entry_of;
use super::foreign;
use super::line::{FORMAT, Foreign, Header, HistoryRef, Kept, Part, Unread};
use super::notices::{Notices, Skipped};
use super::reader::{self, Bad, Lines, Mark, Next, Placed, Reached, Sink, Stop, bad};

/// The image, and how much of which file it is made of.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) image: Image,
    /// `None` while there is no log, or while it has to be read anew.
    pub(super) log: Option<Log>,
    pub(super) notices: Notices,
    /// So many dead lines must there be before a compaction that failed is tried again.
    pub(super) compact_after: u64,
}

/// The log as far as it was read.
#[derive(Debug)]
pub(super) struct Log {
    /// Kept open, so that its identity is not given to another file.
    _file: File,
    identity: Identity,
    pub(super) reached: Reached,
    pub(super) header: Option<Header>,
    pub(super) filed: Filed,
}

/// What lies in the history file.
#[derive(Debug, Default, Clone)]
pub(super) struct Filed {
    pub(super) seqs: HashSet<u64>,
    /// Receipts by key; the time tells a key's second use from its first.
    pub(super) keys: HashMap<String, Time>,
    /// Not all of it could be read.
    pub(super) damaged: bool,
}

impl State {
    /// Whether the image shows all that is in the file. Asks for the file's size, no more.
    pub(super) fn is_current(&self, paths: &Paths) -> Result<bool, StoreError> {
        let there = disk::look(&paths.log).map_err(|error| read_failed(&paths.log, error))?;
        match (there, &self.log) {
            (None, log) => Ok(log.is_none()),
            (Some(_), None) => Ok(false),
            (Some(metadata), Some(log)) => {
                let identity = Identity::of(&paths.log, &metadata);
                let identity = identity.map_err(|error| read_failed(&paths.log, error))?;
                Ok(identity == log.identity && metadata.len() == log.reached.mark.offset)
            }
        }
    }

    /// Reads what others have written since. The caller holds a lock among processes.
    ///
    /// When it fails, nothing is kept and the next call reads from the beginning.
    pub(super) fn catch_up(&mut self, paths: &Paths, tenant: &Tenant) -> Result<(), StoreError> {
        let cut_bytes = self.notices.cut_bytes;
        let caught = match self.open_same(paths) {
            Ok(Some(file)) => self.read_on(&file, paths, tenant),
            Ok(None) => Self::load(paths, tenant).map(|state| *self = state),
            Err(error) => Err(read_failed(&paths.log, error)),
        };
        if caught.is_err() {
            *self = Self::default();
        }
        self.notices.cut_bytes = cut_bytes;
        caught
    }

    /// The log, if it is the one that was read before and has lost nothing of what was read.
    fn open_same(&self, paths: &Paths) -> io::Result<Option<File>> {
        let Some(log) = &self.log else {
            return Ok(None);
        };
        let file = match File::open(&paths.log) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let metadata = file.metadata()?;
        let same = Identity::of(&paths.log, &metadata)? == log.identity;
        let grown = metadata.len() >= log.reached.mark.offset;
        Ok((same && grown).then_some(file))
    }

    fn read_on(&mut self, file: &File, paths: &Paths, tenant: &Tenant) -> Result<(), StoreError> {
        let Some(log) = &mut self.log else {
            return Ok(());
        };
        let metadata = file.metadata();
        let metadata = metadata.map_err(|error| read_failed(&paths.log, error))?;
        // Also true of a device, which has no size and may have no end.
        if metadata.len() == log.reached.mark.offset {
            log.reached.torn = 0;
            self.notices.torn_bytes = 0;
            return Ok(());
        }
        let mut sink = Player::new(&mut self.image, &mut self.notices, paths, tenant);
        sink.header.clone_from(&log.header);
        let reached = reader::read(file, log.reached.mark, tenant, &mut sink);
        log.reached = reached.map_err(|stop| stop.told(&paths.log))?;
        self.notices.torn_bytes = log.reached.torn;
        Ok(())
    }

    /// Reads everything anew.
    fn load(paths: &Paths, tenant: &Tenant) -> Result<Self, StoreError> {
        let failed = |error| read_failed(&paths.log, error);
        let mut state = Self::default();
        let file = match File::open(&paths.log) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(state),
            Err(error) => return Err(failed(error)),
        };
        let metadata = file.metadata().map_err(failed)?;
        if metadata.is_dir() {
            return Err(failed(io::ErrorKind::IsADirectory.into()));
        }
        let mut sink = Player::new(&mut state.image, &mut state.notices, paths, tenant);
        // A device has no size; what it would have us read has no end.
        let reached = match metadata.len() {
            0 => Ok(Reached::default()),
            _ => reader::read(&file, Mark::default(), tenant, &mut sink),
        };
        let reached = reached.map_err(|stop| stop.told(&paths.log))?;
        if sink.used == 0 {
            refuse_foreign(&paths.log, &file, &reached)?;
        }
        let (header, filed) = (sink.header, sink.filed);
        state.notices.torn_bytes = reached.torn;
        state.log = Some(Log {
            identity: Identity::of(&paths.log, &metadata).map_err(failed)?,
            _file: file,
            reached,
            header,
            filed,
        });
        Ok(state)
    }

    /// Takes over a log that this process has just written up to the mark. If it cannot be opened
    /// it will be read from the beginning next time.
    pub(super) fn adopt(&mut self, paths: &Paths, mark: Mark) {
        let opened = File::open(&paths.log).and_then(|file| {
            let identity = Identity::of(&paths.log, &file.metadata()?)?;
            Ok((file, identity))
        });
        self.log = opened.ok().map(|(file, identity)| Log {
            _file: file,
            identity,
            reached: Reached { mark, torn: 0 },
            header: None,
            filed: Filed::default(),
        });
        if self.log.is_none() {
            self.image = Image::default();
        }
    }

    /// The history that goes with the log.
    pub(super) fn history(&self) -> Option<&HistoryRef> {
        self.header()?.history.as_ref()
    }

    pub(super) fn header(&self) -> Option<&Header> {
        self.log.as_ref()?.header.as_ref()
    }

    /// Lines that could go: replaced, deleted, receipts, bad. Each current record has one line.
    pub(super) fn dead_lines(&self) -> u64 {
        let Some(log) = &self.log else {
            return 0;
        };
        let header = u64::from(log.header.is_some());
        log.reached
            .mark
            .lines
            .saturating_sub(header + self.image.len() as u64)
    }
}

impl Stop {
    pub(super) fn told(self, path: &Path) -> StoreError {
        match self {
            Self::Io(error) => read_failed(path, error),
            Self::TooNew(found) => StoreError::TooNew {
                place: path.display().to_string(),
                found,
                known: FORMAT,
            },
            Self::Other(error) => error,
        }
    }
}

/// A file without one line that we understand is somebody else's, and must not be written to.
fn refuse_foreign(path: &Path, file: &File, reached: &Reached) -> Result<(), StoreError> {
    let foreign = |what: &str| Err(crate::store::foreign(path.display().to_string(), what));
    if reached.mark.lines > 0 {
        let lines = reached.mark.lines;
        return foreign(&format!("none of its {lines} lines is a record"));
    }
    if reached.torn > 0 {
        let mut first = [0];
        let mut file = file;
        io::Seek::rewind(&mut file)
            .and_then(|()| file.read_exact(&mut first))
            .map_err(|error| read_failed(path, error))?;
        // A power cut may leave zeros where the first write should be.
        if first != *b"{" && first != [0] {
            return foreign("it does not hold JSON lines");
        }
    }
    Ok(())
}

/// Plays a log into an image.
struct Player<'a> {
    image: &'a mut Image,
    notices: &'a mut Notices,
    paths: &'a Paths,
    tenant: &'a Tenant,
    header: Option<Header>,
    filed: Filed,
    /// How many lines or commits were understood.
    used: u64,
    /// Deletions of records that are not there: the line that wrote one may come later.
    early_deletions: HashMap<Id, Entry>,
}

impl Sink for Player<'_> {
    /// The history comes before the lines that follow: what they erase is erased there, too.
    fn header(&mut self, header: Header) -> Result<(), Stop> {
        self.used += 1;
        if self.header.is_some() {
            // Two logs were joined: the first one's counts.
            return Ok(());
        }
        if let Some(history) = &header.history {
            self.read_history(history)?;
        }
        self.image.skip_to(header.last_seq);
        if let Some(clock) = header.clock {
            self.image.set_clock(clock);
        }
        self.header = Some(header);
        Ok(())
    }

    fn commit(&mut self, lines: Vec<Placed>) {
        self.used += 1;
        for line in lines {
            if self.is_repeated(&line.part.effect) {
                self.bad(line.bad("it repeats an earlier change"));
                continue;
            }
            self.observe(&line.part);
            self.play(line.part.effect);
        }
    }

    fn foreign(&mut self, change: Foreign) {
        self.used += 1;
        // A deletion may lack its time; then it says nothing about the clock.
        if change.at() > Time::EPOCH {
            self.image.observe_clock(change.at(), false);
        }
        let seq = self.image.last_seq() + 1;
        let entry = |at, cause| Entry {
            seq,
            commit: seq,
            at,
            actor: foreign::ACTOR.to_owned(),
            cause,
        };
        match change {
            Foreign::Put { at, mut record } => {
                record.seq = seq;
                let next = self.image.newest_version(&record.id) + 1;
                record.version = record.version.max(next);
                self.image.play(Effect::Write {
                    entry: entry(at, Cause::Written),
                    record,
                });
            }
            Foreign::Delete { at, id } if self.image.slot(&id).is_some() => {
                self.image.play(Effect::Bury {
                    entry: entry(at, Cause::Forgotten),
                    id,
                });
            }
            Foreign::Delete { .. } => {}
        }
    }

    fn bad(&mut self, bad: Bad) {
        self.used += u64::from(bad.looks_ours);
        if bad.offset == 0 && bad.bytes > 0 && self.header.is_none() {
            self.do_without_header();
        }
        self.notices.skip(Skipped {
            file: self.paths.log.clone(),
            line: bad.line,
            why: bad.why,
        });
    }

    fn last_seq(&self) -> u64 {
        self.image.last_seq()
    }
}

impl<'a> Player<'a> {
    fn new(
        image: &'a mut Image,
        notices: &'a mut Notices,
        paths: &'a Paths,
        tenant: &'a Tenant,
    ) -> Self {
        Self {
            image,
            notices,
            paths,
            tenant,
            header: None,
            filed: Filed::default(),
            used: 0,
            early_deletions: HashMap::new(),
        }
    }

    /// Whether the image holds this very change already: the line stands in the log twice.
    fn is_repeated(&self, effect: &Effect) -> bool {
        match effect {
            Effect::Write { entry, record } => self.image.is_written(entry, record),
            Effect::Bury { entry, id } | Effect::Tombstone { entry, id, .. } => {
                self.image.is_buried(entry, id)
            }
            Effect::Erase { .. } | Effect::Receipt { .. } | Effect::Drop { .. } => false,
        }
    }

    /// Follows the clock. The header of a compacted log knows what the lines that were there
    /// before had said of it.
    fn observe(&mut self, part: &Part) {
        let seq = match &part.effect {
            Effect::Erase { .. } => u64::MAX,
            effect => entry_of(effect).map_or(u64::MAX, |entry| entry.seq),
        };
        let header = self.header.as_ref();
        let known = header.filter(|header| header.clock.is_some());
        if known.is_none_or(|header| seq > header.last_seq) {
            self.image.observe_clock(part.time, part.accepts_clock);
        }
    }

    /// Plays the effect in the order of the numbers, also where the lines stand in another.
    fn play(&mut self, mut effect: Effect) {
        self.renumber(&mut effect);
        match effect {
            Effect::Write { entry, record } => {
                let (id, seq) = (record.id.clone(), entry.seq);
                if self.image.slot(&id).is_some_and(|slot| slot.seq > seq) {
                    self.image.restore_past(Past::of(entry, *record));
                    return;
                }
                self.image.play(Effect::Write { entry, record });
                let deletion = self.early_deletions.remove(&id);
                if let Some(entry) = deletion.filter(|entry| entry.seq > seq) {
                    self.image.play(Effect::Bury { entry, id });
                }
            }
            Effect::Bury { entry, id } => match self.image.slot(&id) {
                Some(slot) if slot.seq > entry.seq => {}
                Some(_) => self.image.play(Effect::Bury { entry, id }),
                None => {
                    self.image.skip_to(entry.seq);
                    self.early_deletions.insert(id, entry);
                }
            },
            effect => self.image.play(effect),
        }
    }

    /// The first line is damaged. If it was a header, its history is the newest one there is.
    fn do_without_header(&mut self) {
        let histories = self.paths.histories_but(None).unwrap_or_default();
        let numbered = histories.iter().filter_map(|path| {
            let name = path.file_name()?.to_str()?;
            Some((
                disk::generation_of(name)?,
                name,
                path.metadata().ok()?.len(),
            ))
        });
        let Some((generation, name, bytes)) = numbered.max() else {
            return;
        };
        let history = HistoryRef {
            file: name.to_owned(),
            bytes,
        };
        if let Err(stop) = self.read_history(&history) {
            let path = self.paths.history(name);
            let why = stop.told(&path).to_string();
            self.lost(&path, why);
        }
        // The next rewrite writes the history anew, and names it in a header of its own.
        self.filed.damaged = true;
        self.header = Some(Header {
            generation,
            history: Some(history),
            ..Header::default()
        });
    }

    /// Two logs that somebody joined use the same numbers twice; the second use gets a new one.
    fn renumber(&mut self, effect: &mut Effect) {
        let next = self.image.last_seq() + 1;
        match effect {
            Effect::Write { entry, record } if self.image.has_change(entry.seq) => {
                (entry.seq, entry.commit) = (next, next);
                record.seq = next;
            }
            Effect::Bury { entry, .. } | Effect::Tombstone { entry, .. }
                if self.image.has_change(entry.seq) =>
            {
                (entry.seq, entry.commit) = (next, next);
            }
            _ => {}
        }
    }

    fn read_history(&mut self, history: &HistoryRef) -> Result<(), Stop> {
        let path = self.paths.history(&history.file);
        if disk::generation_of(&history.file).is_none() {
            self.lost(&path, "this is not the name of a history".to_owned());
            return Ok(());
        }
        let read = walk_history(&path, history.bytes, self.tenant, |kept| match kept {
            Ok(Kept::Past(past)) => {
                self.filed.seqs.insert(past.entry.seq);
                self.image.restore_past(*past);
            }
            Ok(Kept::Receipt(effect)) => {
                if let Effect::Receipt { key, at, .. } = &effect {
                    self.filed.keys.insert(key.name.clone(), *at);
                }
                self.image.play(effect);
            }
            Err(bad) => {
                self.filed.damaged = true;
                self.notices.skip(Skipped {
                    file: path.clone(),
                    line: bad.line,
                    why: bad.why,
                });
            }
        });
        match read {
            Ok(end) if end == history.bytes => Ok(()),
            Ok(end) => {
                self.lost(&path, format!("{} bytes are missing", history.bytes - end));
                Ok(())
            }
            Err(Stop::Io(error)) if error.kind() == io::ErrorKind::NotFound => {
                self.lost(&path, "the history is missing".to_owned());
                Ok(())
            }
            Err(stop) => Err(Stop::Other(stop.told(&path))),
        }
    }

    fn lost(&mut self, path: &Path, why: String) {
        self.filed.damaged = true;
        let file = path.to_owned();
        self.notices.skip(Skipped { file, line: 0, why });
    }
}

/// Reads the first `bytes` bytes of a history; answers how many there were.
pub(super) fn walk_history(
    path: &Path,
    bytes: u64,
    tenant: &Tenant,
    mut visit: impl FnMut(Result<Kept, Bad>),
) -> Result<u64, Stop> {
    let file = File::open(path)?;
    let mut lines = Lines::new(&file, Mark::default())?;
    let mut line = Vec::new();
    while lines.mark.offset < bytes {
        let from = lines.mark;
        let decoded = match lines.next(&mut line)? {
            Next::End => break,
            Next::TooLong => Err(Unread::Bad("it is too long".to_owned())),
            Next::Line { .. } => decode_kept(&line, tenant),
        };
        let kept = match decoded {
            Err(Unread::TooNew(found)) => return Err(Stop::TooNew(found)),
            Err(Unread::Bad(why)) => Err(bad(from, lines.mark, why)),
            Ok(kept) => Ok(kept),
        };
        visit(kept);
    }
    Ok(lines.mark.offset.min(bytes))
}
