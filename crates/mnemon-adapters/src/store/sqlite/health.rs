//! Looking at a file without using it, and mending what can be mended.

use std::path::Path;

use mnemon_core::StoreError;
use rusqlite::{Connection, OpenFlags};

use super::errors::At;
use super::schema;
use crate::health::Finding;

/// Checks that need no write: is it there, ours, whole, and do its counts agree with its rows?
pub(crate) fn examine(path: &Path) -> Vec<Finding> {
    let place = path.display().to_string();
    if !path.exists() {
        return vec![Finding::good(
            "file",
            "is not there yet; the first write makes it",
        )];
    }
    let mut findings = vec![permissions(path)];
    // SQLite takes a file of a few bytes for an empty database; opening it for use would not.
    if let Err(error @ StoreError::Foreign { .. }) = schema::check_path(path, &place) {
        findings.push(Finding::bad("format", error.to_string()));
        return findings;
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let opened = Connection::open_with_flags(path, flags)
        .at(&place)
        .and_then(|connection| Ok((schema::version(&connection, &place)?, connection)));
    let (version, connection) = match opened {
        Ok(opened) => opened,
        Err(error) => {
            findings.push(Finding::bad("format", error.to_string()));
            return findings;
        }
    };
    findings.push(Finding::good(
        "format",
        format!("version {version} of {}", schema::current()),
    ));
    findings.push(integrity(&connection));
    if version == schema::current() {
        findings.push(counts(&connection));
    }
    findings
}

/// Does what the findings proposed: rebuilds the indexes and counts again, in one transaction.
pub(crate) fn repair(path: &Path) -> Result<Vec<String>, StoreError> {
    let place = path.display().to_string();
    let mut connection = schema::open(path)?;
    let mut done = Vec::new();
    if !integrity(&connection).ok {
        connection.execute_batch("REINDEX").at(&place)?;
        done.push("rebuilt every index from its table".to_owned());
    }
    if !counts(&connection).ok {
        let transaction = connection.transaction().at(&place)?;
        transaction.execute_batch(RECOUNT).at(&place)?;
        transaction.commit().at(&place)?;
        done.push("counted the records again".to_owned());
    }
    Ok(done)
}

fn permissions(path: &Path) -> Finding {
    match std::fs::metadata(path) {
        Ok(metadata) if metadata.permissions().readonly() => {
            Finding::bad("permissions", "the file is read-only")
        }
        Ok(_) => Finding::good("permissions", "the file can be read and written"),
        Err(error) => Finding::bad("permissions", format!("the file cannot be seen: {error}")),
    }
}

fn integrity(connection: &Connection) -> Finding {
    let lines = connection
        .prepare("PRAGMA integrity_check(20)")
        .and_then(|mut check| {
            let rows = check.query_map([], |row| row.get::<_, String>(0))?;
            rows.collect::<rusqlite::Result<Vec<String>>>()
        });
    match lines {
        Ok(lines) if lines.len() == 1 && lines.first().is_some_and(|line| line == "ok") => {
            Finding::good("integrity", "every page and index is whole")
        }
        // Damage to an index only is no loss: tables are the truth.
        Ok(lines) if lines.iter().all(|line| line.contains("index")) => Finding::mendable(
            "integrity",
            lines.join("; "),
            "rebuild every index from its table",
        ),
        Ok(lines) => Finding::bad(
            "integrity",
            format!(
                "{}; export what can still be read and start a new file",
                lines.join("; ")
            ),
        ),
        Err(error) => Finding::bad("integrity", error.to_string()),
    }
}

const MISCOUNTED: &str = "
SELECT count(*) FROM (
    SELECT tenant, scope, kind, namespace, count(*) FROM records GROUP BY 1, 2, 3, 4
    EXCEPT SELECT tenant, scope, kind, namespace, count FROM tally)
UNION ALL
SELECT count(*) FROM (
    SELECT tenant, scope, kind, namespace, count FROM tally WHERE count <> 0
    EXCEPT SELECT tenant, scope, kind, namespace, count(*) FROM records GROUP BY 1, 2, 3, 4)
UNION ALL
SELECT count(*) FROM tenants t
WHERE t.history <> (SELECT count(*) FROM history h WHERE h.tenant = t.num)";

const RECOUNT: &str = "
DELETE FROM tally;
INSERT INTO tally (tenant, scope, kind, namespace, count)
    SELECT tenant, scope, kind, namespace, count(*) FROM records GROUP BY 1, 2, 3, 4;
UPDATE tenants SET history = (SELECT count(*) FROM history h WHERE h.tenant = num);";

fn counts(connection: &Connection) -> Finding {
    let wrong = connection.prepare(MISCOUNTED).and_then(|mut check| {
        let rows = check.query_map([], |row| row.get::<_, i64>(0))?;
        rows.sum::<rusqlite::Result<i64>>()
    });
    match wrong {
        Ok(0) => Finding::good("counts", "agree with the records"),
        Ok(wrong) => Finding::mendable(
            "counts",
            format!("{wrong} do not agree with the records"),
            "count the records again",
        ),
        Err(error) => Finding::bad("counts", error.to_string()),
    }
}
