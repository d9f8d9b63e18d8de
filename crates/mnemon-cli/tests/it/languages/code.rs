//! Identifiers, paths, versions, dates, numbers in English notes.

use super::Language;

pub(super) const CODE: Language = Language {
    name: "code",
    pairs: PAIRS,
    others: OTHERS,
};

/// A question, and the note that answers it.
const PAIRS: &[(&str, &str)] = &[
    (
        "parse json bug",
        "parseJSON panics when the input is empty; guard it.",
    ),
    (
        "user_repository",
        "The UserRepository class owns all queries on accounts.",
    ),
    (
        "where is the http server started",
        "HTTPServer boots in src/net/listen.rs before the workers.",
    ),
    (
        "max connections setting",
        "MAX_CONNECTIONS is 64 in production and 8 on laptops.",
    ),
    (
        "listen.rs",
        "Timeouts live in crates/net/src/listen.rs, not in the config.",
    ),
    (
        "upgrade to 1.92",
        "Toolchain pinned to Rust v1.92.0 since the edition change.",
    ),
    (
        "what broke in version 2.4",
        "Release 2.4.1 reverted the cache because 2.4.0 lost writes.",
    ),
    (
        "what happened on May 7th 2023",
        "2023-05-07: the billing migration was rolled back.",
    ),
    (
        "deadline in December 2025",
        "Contract with Acme ends 31/12/2025 23:59.",
    ),
    (
        "hash map iteration order",
        "Never rely on the order of std::collections::HashMap.",
    ),
    (
        "error code 503",
        "The gateway answers 503 while the pool warms up.",
    ),
    (
        "mail address of support",
        "Support reads help@example.org twice a day.",
    ),
    (
        "dry run flag",
        "Pass --dry-run to the importer before the real thing.",
    ),
    (
        "issue 4821",
        "Fixed in #4821: the retry loop slept forever.",
    ),
    (
        "utf8 decoding",
        "Invalid UTF-8 in a header is replaced, never refused.",
    ),
    (
        "C++ bindings owner",
        "Bindings for C++ are maintained by Petra.",
    ),
    (
        "port of the metrics endpoint",
        "Metrics are served on localhost:9100/metrics.",
    ),
];

const OTHERS: &[&str] = &[
    "The server room is cleaned on Fridays.",
    "parseXML is deprecated and will be removed.",
    "UserService talks to the mail queue.",
    "MIN_CONNECTIONS was never used and is gone.",
    "src/net/connect.rs retries three times.",
    "Toolchain for the docs is Node v22.3.0.",
    "Release 2.3.9 was skipped.",
    "2023-06-17: the office moved to the third floor.",
    "Contract with Globex ends 30/06/2026.",
    "BTreeMap keeps its keys sorted.",
    "The gateway answers 429 under load.",
    "Sales reads sales@example.com at noon.",
    "Pass --verbose to see every request.",
    "Fixed in #4281: a typo in the footer.",
    "UTF-16 files come from the old exporter.",
    "Bindings for Python are maintained by Omar.",
    "Traces are served on localhost:4317.",
    "The linter forbids unwrap in library code.",
    "snake_case for functions, CamelCase for types.",
    "The nightly build takes forty minutes.",
    "Feature flags expire after ninety days.",
    "Logs rotate at 100 MB.",
    "The staging database is refreshed on Sundays.",
    "Docker images are built from scratch.",
    "Secrets live in the vault, never in the repository.",
    "The queue drops messages older than a week.",
    "IPv6 is enabled in all regions.",
    "Benchmarks run on a machine without turbo.",
    "The color of errors is red, of warnings yellow.",
    "Backups are tested on the first of every month.",
];
