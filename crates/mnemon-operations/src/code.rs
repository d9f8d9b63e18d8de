//! What each kind of error is called at each door: the one table.

use mnemon_core::ErrorKind;

/// How one kind of error leaves the house.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Code {
    /// The exit code of the command line.
    pub exit: u8,
    /// The status over HTTP.
    pub http: u16,
    /// The JSON-RPC code over MCP.
    pub mcp: i32,
    /// What the caller can do about it, in a sentence.
    pub hint: &'static str,
}

/// The row of the table for this kind.
///
/// Exit code 2 is also what the argument parser uses: to a script both mean "asked wrongly".
pub const fn of(kind: ErrorKind) -> Code {
    let (exit, http, mcp) = match kind {
        ErrorKind::Invalid => (2, 400, -32602),
        ErrorKind::NotFound => (3, 404, -32002),
        ErrorKind::Conflict => (4, 409, -32009),
        ErrorKind::Denied => (5, 403, -32003),
        ErrorKind::TooLarge => (6, 413, -32013),
        ErrorKind::TooOften => (14, 429, -32016),
        ErrorKind::Full => (7, 507, -32007),
        ErrorKind::Busy => (8, 503, -32008),
        ErrorKind::Corrupt => (9, 500, -32010),
        ErrorKind::TooNew => (10, 500, -32011),
        ErrorKind::Foreign => (11, 500, -32012),
        ErrorKind::Unsupported => (12, 501, -32014),
        ErrorKind::Unavailable => (13, 503, -32015),
        ErrorKind::Internal => (70, 500, -32603),
    };
    let hint = hint(kind);
    Code {
        exit,
        http,
        mcp,
        hint,
    }
}

const fn hint(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Invalid => "correct the input; `mnemon help COMMAND` lists what is allowed",
        ErrorKind::NotFound => {
            "`mnemon list` shows the records, `mnemon history` those that were deleted; check the tenant, too"
        }
        ErrorKind::Conflict => "read the current version and repeat the change on it",
        ErrorKind::Denied => "check the permissions of the store's files, and the tenant",
        ErrorKind::TooLarge => "split the request into smaller parts",
        ErrorKind::TooOften => {
            "wait until the time in the message, or allow more: `mnemon policy show FLOW` for writes, \
             `[llm]` in mnemon.toml for a model's budget"
        }
        ErrorKind::Full => "free disk space and try again; stored records are unchanged",
        ErrorKind::Busy => "try again in a moment",
        ErrorKind::Corrupt => {
            "`mnemon doctor` shows what is wrong, `mnemon doctor --repair` repairs what it can"
        }
        ErrorKind::TooNew => "install the version of mnemon that wrote it; nothing was changed",
        ErrorKind::Foreign => "use another path with --store; this file is unchanged",
        ErrorKind::Unsupported => "use another store: `mnemon help` lists the kinds",
        ErrorKind::Unavailable => "check the path or address and the connection, then try again",
        ErrorKind::Internal => {
            "this is a bug in mnemon: please report it with the command and this message"
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn exit_codes_tell_kinds_apart() {
        let exits: HashSet<u8> = ErrorKind::ALL.iter().map(|kind| of(*kind).exit).collect();
        assert_eq!(exits.len(), ErrorKind::ALL.len());
        assert!(exits.iter().all(|exit| (1..=125).contains(exit)));
        assert_eq!(of(ErrorKind::Invalid).exit, 2);
    }

    #[test]
    fn mcp_codes_tell_kinds_apart_and_lie_where_json_rpc_wants_them() {
        let codes: HashSet<i32> = ErrorKind::ALL.iter().map(|kind| of(*kind).mcp).collect();
        assert_eq!(codes.len(), ErrorKind::ALL.len());
        let ours = -32099..=-32000;
        let theirs = [-32602, -32603];
        assert!(codes.iter().all(|c| ours.contains(c) || theirs.contains(c)));
    }

    #[test]
    fn every_row_is_filled_in() {
        for kind in ErrorKind::ALL {
            let code = of(kind);
            assert!((400..600).contains(&code.http), "{kind:?}");
            assert!(
                code.hint.len() > 10 && !code.hint.ends_with('.'),
                "{kind:?}"
            );
        }
    }
}
