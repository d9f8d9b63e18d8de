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

const fn code(exit: u8, http: u16, mcp: i32, hint: &'static str) -> Code {
    Code {
        exit,
        http,
        mcp,
        hint,
    }
}

/// The row of the table for this kind.
///
/// Exit code 2 is also what the argument parser uses: to a script both mean "asked wrongly".
#[must_use]
#[allow(clippy::too_many_lines, reason = "a table with a row for each kind")]
pub const fn of(kind: ErrorKind) -> Code {
    match kind {
        ErrorKind::Invalid => code(
            2,
            400,
            -32602,
            "correct what was given and try again; `mnemon help COMMAND` says what is allowed",
        ),
        ErrorKind::NotFound => code(
            3,
            404,
            -32002,
            "`mnemon list` shows what is there, `mnemon history` what was; check the tenant, too",
        ),
        ErrorKind::Conflict => code(
            4,
            409,
            -32009,
            "it was changed meanwhile: look at it again and repeat the change on what is there now",
        ),
        ErrorKind::Denied => code(
            5,
            403,
            -32003,
            "check the permissions of the store's files, and the tenant",
        ),
        ErrorKind::TooLarge => code(6, 413, -32013, "send less at once, in several parts"),
        ErrorKind::TooOften => code(
            14,
            429,
            -32016,
            "wait until the time in the message, or allow more: `mnemon policy show FLOW` for writes, \
             `[llm]` in mnemon.toml for a model's budget",
        ),
        ErrorKind::Full => code(
            7,
            507,
            -32007,
            "make room on the disk and try again; what was there before is untouched",
        ),
        ErrorKind::Busy => code(8, 503, -32008, "try again in a moment"),
        ErrorKind::Corrupt => code(
            9,
            500,
            -32010,
            "`mnemon doctor` says what is wrong, `mnemon doctor --repair` mends what can be mended",
        ),
        ErrorKind::TooNew => code(
            10,
            500,
            -32011,
            "install the newer version of mnemon that wrote it; nothing was touched",
        ),
        ErrorKind::Foreign => code(
            11,
            500,
            -32012,
            "name another path with --store; this file is left as it is",
        ),
        ErrorKind::Unsupported => code(
            12,
            501,
            -32014,
            "use another store; `mnemon help` names the kinds there are",
        ),
        ErrorKind::Unavailable => code(
            13,
            503,
            -32015,
            "check that the path or the address is right and can be reached, then try again",
        ),
        ErrorKind::Internal => code(
            70,
            500,
            -32603,
            "this is a bug in mnemon: please report it with the command and this message",
        ),
    }
}

/// The word for a kind, as in JSON.
#[must_use]
pub const fn word(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Invalid => "invalid",
        ErrorKind::NotFound => "not-found",
        ErrorKind::Conflict => "conflict",
        ErrorKind::Denied => "denied",
        ErrorKind::TooLarge => "too-large",
        ErrorKind::TooOften => "too-often",
        ErrorKind::Full => "full",
        ErrorKind::Busy => "busy",
        ErrorKind::Corrupt => "corrupt",
        ErrorKind::TooNew => "too-new",
        ErrorKind::Foreign => "foreign",
        ErrorKind::Unsupported => "unsupported",
        ErrorKind::Unavailable => "unavailable",
        ErrorKind::Internal => "internal",
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

    #[test]
    fn words_are_those_of_json() {
        for kind in ErrorKind::ALL {
            let json = serde_json::to_string(&kind).unwrap();
            assert_eq!(json, format!("\"{}\"", word(kind)));
        }
    }
}
