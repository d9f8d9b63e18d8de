//! Every limit in one place.
//!
//! The constants say how large one field, file or message may be. [`Limits`] holds the limits on
//! how many there may be of something, as a value that a [`Policy`](crate::model::Policy) carries and
//! every [`Grant`](crate::model::Grant) hands on: tests shrink it, so that small worlds cross each limit.

/// How many there may be of something, in one call or one list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Operations in one batch.
    pub batch_ops: usize,
    /// Content, body and metadata of one batch together, in bytes.
    pub batch_bytes: usize,
    /// Records that one deletion may take with it.
    pub cascade: usize,
    /// Records in one page of a scan, and ids in one get.
    pub page: usize,
    /// Changes in one page of history.
    pub changes: usize,
    /// Weight of the changes in one page of the change feed, in bytes; the change that reaches it is
    /// the last one of its page.
    pub feed_bytes: usize,
    /// Expired records that a write erases on the side.
    pub expired_per_write: usize,
    /// Records that one search returns.
    pub hits: usize,
    /// How many of the best each arm of a search contributes.
    pub search_depth: usize,
    /// The same, at the most, where records that may not be shown stand in the way.
    pub search_depth_most: usize,
    /// Records that a search by the formula reads; it has no index.
    pub formula_reads: usize,
    /// Notes that a search reads one by one for parts of words.
    pub note_reads: usize,
    /// Numbers of removed records that a store keeps for indexes that follow it. An index that is
    /// further behind compares all numbers instead.
    pub removal_log: usize,
    /// Bytes of the built-in indexes that one process keeps in memory; the least recently
    /// searched tenants' are dropped.
    pub index_cache_bytes: usize,
    /// Records that the engine writes or removes in one commit of a longer work.
    pub commit_ops: usize,
    /// Records whose vectors are made in one call of an embedder.
    pub embed_batch: usize,
    /// Turns of a conversation that one answer shows.
    pub turns: usize,
    /// Messages of a conversation that are read for one answer.
    pub context_messages: usize,
    /// Salient facts of a session that one answer shows.
    pub facts: usize,
    /// Steps or traces of experience that one answer shows.
    pub steps: usize,
    /// Steps that are read for one answer of traces.
    pub trace_steps: usize,
    /// Sessions in one listing.
    pub sessions: usize,
    /// Documents that one call may add.
    pub documents: usize,
    /// Messages that a conversation's window may hold; when there are more it must be compressed.
    pub window_messages: usize,
    /// Compression events that one answer shows.
    pub window_events: usize,
    /// Messages of a conversation that is saved or copied whole.
    pub window_state_messages: usize,
    /// Slices of upkeep that one cleanup does, of a page each.
    pub cleanup_slices: usize,
    /// Runs of one type of task that are looked at together, the newest.
    pub learn_runs: usize,
    /// Types of task that one tenant learns about.
    pub learn_tasks: usize,
    /// New steps of a type of task from which on it is looked at before the log is read to its end.
    pub learn_fresh: usize,
    /// Steps that learning reads at once: each may be large.
    pub learn_page: usize,
    /// Steps of which what is learnt from them is written at once.
    pub learn_chunk: usize,
}

impl Limits {
    /// The limits of the product.
    pub const DEFAULT: Self = Self {
        batch_ops: BATCH_OPS,
        batch_bytes: BATCH_BYTES,
        cascade: 100_000,
        page: PAGE,
        changes: CHANGES,
        feed_bytes: 1024 * 1024,
        expired_per_write: 8,
        hits: HITS,
        search_depth: 100,
        search_depth_most: 10_000,
        formula_reads: 100_000,
        note_reads: 25_000,
        removal_log: 100_000,
        index_cache_bytes: 1024 * 1024 * 1024,
        commit_ops: 500,
        embed_batch: 256,
        turns: 1_000,
        context_messages: 5_000,
        facts: 50,
        steps: 1_000,
        trace_steps: 5_000,
        sessions: 10_000,
        documents: 10_000,
        window_messages: 10_000,
        window_events: 1_000,
        window_state_messages: 100_000,
        cleanup_slices: 100,
        learn_runs: 128,
        learn_tasks: 2_000,
        learn_fresh: 1_000,
        learn_page: 100,
        learn_chunk: 1_000,
    };

    /// Limits so small that a test of a few records crosses every one of them. What callers ask
    /// for by default stays within them.
    pub const TINY: Self = Self {
        batch_ops: 12,
        batch_bytes: 64 * 1024,
        cascade: 12,
        page: 3,
        changes: 3,
        feed_bytes: 1024,
        expired_per_write: 1,
        hits: 6,
        search_depth: 3,
        search_depth_most: 24,
        formula_reads: 6,
        note_reads: 6,
        removal_log: 4,
        index_cache_bytes: 64 * 1024,
        commit_ops: 4,
        embed_batch: 2,
        turns: 20,
        context_messages: 6,
        facts: 2,
        steps: 50,
        trace_steps: 6,
        sessions: 4,
        documents: 4,
        window_messages: 12,
        window_events: 3,
        window_state_messages: 24,
        cleanup_slices: 2,
        learn_runs: 8,
        learn_tasks: 3,
        learn_fresh: 4,
        learn_page: 3,
        learn_chunk: 5,
    };
}

impl Limits {
    /// Chunks of one document: all of them and the document itself go into one batch, with one
    /// operation that clears away what was there before.
    pub fn document_chunks(&self) -> usize {
        self.batch_ops.saturating_sub(2)
    }
}

impl Default for &'static Limits {
    fn default() -> Self {
        &Limits::DEFAULT
    }
}

/// A record's content, in bytes of UTF-8.
pub const CONTENT_BYTES: usize = 10 * 1024 * 1024;
/// A record's summary, in bytes of UTF-8.
pub const SUMMARY_BYTES: usize = 64 * 1024;
/// A record's body, in bytes of JSON.
pub const BODY_BYTES: usize = 10 * 1024 * 1024;
/// A record's metadata, in bytes of JSON.
pub const METADATA_BYTES: usize = 64 * 1024;
/// How many tags a record may have.
pub const TAGS: usize = 64;
/// A tag, in characters.
pub const TAG_CHARS: usize = 100;
/// A record's source, in characters.
pub const SOURCE_CHARS: usize = 1024;
/// A user, agent, session, flow or node, in characters.
pub const NAME_CHARS: usize = 255;
/// Teams that one viewer may be in.
pub const VIEWER_TEAMS: usize = 100;
/// A tenant, in characters.
pub const TENANT_CHARS: usize = 63;
/// An id, in characters.
pub const ID_CHARS: usize = 128;
/// Characters of an id by which a record may be named, at the least.
pub const ID_PREFIX_CHARS: usize = 4;
/// Ids that are looked at for the one that a prefix means.
pub const ID_CANDIDATES: usize = 100;
/// The longest time to live that a caller may ask for, in days: a hundred years.
pub const TTL_DAYS: i64 = 36_525;
/// How many sources a record may name as its own.
pub const SOURCES: usize = 1000;
/// An idempotency key, in characters.
pub const KEY_CHARS: usize = 200;
/// How long a receipt is kept for its idempotency key.
pub const RECEIPT_DAYS: i64 = 30;
/// How far, in days, a clock may be ahead of the newest write and still erase what has expired. A
/// store that is used every month stays within it.
pub const CLOCK_STEP_DAYS: i64 = 35;
/// After how many days a clock that was too far ahead is believed, if it went on as clocks do.
pub const CLOCK_PROOF_DAYS: i64 = 1;
/// Operations in one batch.
pub const BATCH_OPS: usize = 10_000;
/// Content, body and metadata of one batch together, in bytes.
pub const BATCH_BYTES: usize = 64 * 1024 * 1024;
/// Records in one page of a scan, and ids in one get.
pub const PAGE: usize = 1000;
/// Changes in one page of history.
pub const CHANGES: usize = 1000;
/// Nesting of JSON in body and metadata.
pub const JSON_DEPTH: usize = 100;
/// Notices of one call; see [`crate::model::Notices`].
pub const NOTICES: usize = 20;
/// Tasks of one flow in one session.
pub const TASKS: usize = 500;
/// What one task may wait for.
pub const TASK_DEPENDENCIES: usize = 100;
/// The name of a task, a step or a tool, in characters.
pub const TASK_CHARS: usize = 255;
/// The type of a task, and a trace id, in characters: each becomes part of a tag.
pub const TASK_TYPE_CHARS: usize = 80;
/// Steps of a skill.
pub const SKILL_STEPS: usize = 100;
/// When a skill is of use, in bytes.
pub const USE_WHEN_BYTES: usize = 10_000;
/// What a wrapped node gave back, in bytes of JSON; more is cut.
pub const STEP_OUTPUT_BYTES: usize = 256 * 1024;
/// Records that one session may have and still be forgotten in one go.
pub const SESSION_RECORDS: usize = 1_000_000;
/// Who may write how often: counters kept in memory.
pub const RATE_COUNTERS: usize = 10_000;
/// Access keys of one store, those included that were revoked or have expired and are still listed.
pub const KEYS: usize = 10_000;
/// The name of an access key, in characters.
pub const KEY_NAME_CHARS: usize = 64;
/// How long both the old and the new secret of a rotated key may be valid, in days.
pub const KEY_OVERLAP_DAYS: i64 = 90;
/// How long a key is listed after it was revoked or has expired, in days.
pub const KEY_LISTED_DAYS: i64 = 90;
/// Tenants whose use is counted for quotas at the same time.
pub const QUOTA_TENANTS: usize = 10_000;
/// Ids that one entry of the audit log names; the entry counts the others.
pub const AUDIT_IDS: usize = 100;
/// A file of the audit log, in bytes; a larger one is renamed and a new one begun.
pub const AUDIT_FILE_BYTES: u64 = 64 * 1024 * 1024;
/// Bytes of the audit log that one page of a tenant's entries reads, at most.
pub const AUDIT_PAGE_BYTES: u64 = 8 * 1024 * 1024;
/// A caller, a tenant or an operation in the audit log, in characters; more is cut.
pub const AUDIT_TEXT_CHARS: usize = 255;
/// An access key or a token as a caller shows it, in bytes.
pub const CREDENTIAL_BYTES: usize = 16 * 1024;
/// Public keys that are read from a JWKS file.
pub const JWKS_KEYS: usize = 100;
/// How often a change is tried again when others change the same record at the same time.
pub const CHANGE_TRIES: usize = 16;
/// A Markdown file of an agent or a team, in bytes; a larger one is neither read nor written.
pub const AGENT_FILE_BYTES: usize = 8 * 1024 * 1024;
/// Lines of one section that a merge compares; of longer ones both versions are kept.
pub const MERGE_LINES: usize = 5000;
/// The name of an agent or a team, in characters: it becomes a folder.
pub const AGENT_NAME_CHARS: usize = 64;
/// How often a file is read again and changed anew because somebody else wrote it meanwhile.
pub const FILE_TRIES: usize = 1000;
/// Agents, or teams, in one listing.
pub const AGENTS: usize = 1000;
/// Decisions that an agent is told when it is activated.
pub const RECENT_DECISIONS: usize = 10;
/// Decisions of its team that a member is told.
pub const RECENT_TEAM_DECISIONS: usize = 5;
/// A title, a task, a blocker or another text on one line of an agent's file, in characters.
pub const AGENT_LINE_CHARS: usize = 1000;
/// Speakers that a question may name.
pub const SPEAKERS: usize = 1000;
/// A query, in bytes of UTF-8.
pub const QUERY_BYTES: usize = 64 * 1024;
/// Records that one search returns at the most.
pub const HITS: usize = 1000;
/// A condition on metadata, in bytes of JSON.
pub const FILTER_BYTES: usize = 64 * 1024;
/// Nesting of a condition on metadata.
pub const FILTER_DEPTH: usize = 16;
/// Tests in a condition on metadata.
pub const FILTER_TESTS: usize = 256;
/// The text of a document, in bytes of UTF-8.
pub const DOCUMENT_BYTES: usize = 10 * 1024 * 1024;
/// Tokens that a compiled context may be given.
pub const CONTEXT_TOKENS: usize = 2_000_000;
/// Materials that one context is chosen from.
pub const CONTEXT_MATERIALS: usize = 100_000;
/// Left-out records that the text of a context names; the answer names them all.
pub const CONTEXT_ALSO_KNOWN: usize = 20;
/// A file that is read or written whole, in bytes.
pub const FILE_BYTES: usize = 64 * 1024 * 1024;
/// Files in one listing.
pub const FILES: usize = 100_000;
/// Folders between a root and a file.
pub const FOLDER_DEPTH: usize = 64;
/// The path of a file below its root, in bytes.
pub const PATH_BYTES: usize = 2048;
/// The name of one file or folder, in bytes: more has no room on common file systems.
pub const PATH_PART_BYTES: usize = 255;
/// One line of a log, in bytes.
pub const LOG_LINE_BYTES: usize = 16 * 1024 * 1024;
/// Components of a saved session.
pub const COMPONENTS: usize = 1000;
/// How much of a log is read in search of valid lines before a boot gives up.
pub const BOOT_BYTES: usize = 64 * 1024 * 1024;
/// Messages that one message may take the place of.
pub const WINDOW_REPLACED: usize = SOURCES;
/// Original messages that one summary is made from, the newest ones.
pub const WINDOW_ORIGINALS: usize = 10_000;
/// Groups of tool messages that one compression replaces.
pub const WINDOW_TOOL_GROUPS: usize = 5;
/// Strategies that one compression may try in a row to get below what the model can read.
pub const WINDOW_ROUNDS: usize = 16;
/// What is sent to a language model in one request, in bytes.
pub const LLM_PROMPT_BYTES: usize = 8 * 1024 * 1024;
/// What a language model may answer, in bytes; of an endless answer no more is read.
pub const LLM_ANSWER_BYTES: usize = 8 * 1024 * 1024;
/// Tokens that a language model may be asked for in one answer.
pub const LLM_OUTPUT_TOKENS: u32 = 131_072;
/// Calls that may wait for a language model; more are turned away.
pub const LLM_WAITING: usize = 256;
/// What a call to a language model is for, in characters.
pub const LLM_TASK_CHARS: usize = 64;
/// Days of which the accounts of a language model are kept.
pub const LLM_ACCOUNT_DAYS: usize = 400;
/// Tenants and tasks that have an account on one day.
pub const LLM_ACCOUNTS: usize = 10_000;
/// Tags of a note.
pub const NOTE_TAGS: usize = 20;
/// A tag of a note, in characters.
pub const NOTE_TAG_CHARS: usize = 50;
/// Where a note came from, in characters.
pub const NOTE_SOURCE_CHARS: usize = 200;
/// The metadata of a note, in characters of JSON.
pub const NOTE_METADATA_CHARS: usize = 10_000;
/// What notes are searched for, in characters.
pub const NOTE_QUERY_CHARS: usize = 1000;
/// Notes that one search returns.
pub const NOTE_HITS: usize = 100;
/// A file that becomes a note, in bytes.
pub const NOTE_FILE_BYTES: usize = CONTENT_BYTES;
/// The input, and the output, of a step, in bytes of JSON.
pub const STEP_BYTES: usize = 1024 * 1024;
/// Steps of a run that are learnt from; a run with more is one that never ended.
pub const RUN_STEPS: usize = 64;
/// Runs of one type of task that are looked at together, the newest.
pub const LEARN_RUNS: usize = 128;
/// Parameters of a step, and values of its metadata, that are learnt from, each.
pub const LEARN_PARAMS: usize = 16;
/// Nesting of a step's input that is looked into.
pub const LEARN_DEPTH: usize = 4;
/// A parameter's value, a correction, in characters; more is cut.
pub const LEARN_VALUE_CHARS: usize = 200;
/// Words of a step's input that are learnt from.
pub const LEARN_WORDS: usize = 32;
/// Steps of a procedure that was mined.
pub const PATTERN_STEPS: usize = 32;
/// Symbols that one search for patterns looks at before it is content with what it has.
pub const PATTERN_WORK: usize = 20_000_000;
/// Procedures that are learnt for one type of task.
pub const TASK_PROCEDURES: usize = 3;
/// Patterns of one type of task that are listed as found and not kept.
pub const TASK_NOT_KEPT: usize = 4;
/// Findings that were not kept in one report or status of learning.
pub const NOT_KEPT_LISTED: usize = 100;
/// Other orders of its tools that count as doing a skill, because skills were merged into it.
pub const SKILL_WAYS: usize = 10;
/// Rules that are learnt for one type of task.
pub const TASK_RULES: usize = 10;
/// Steps that one slice of learning reads.
pub const LEARN_SLICE: usize = 1000;
