//! The walls of the house: which crate and which module may know which.

use std::fs;
use std::path::{Path, PathBuf};

use toml::Table;

/// A crate and the crates of ours it may use. The bench may use everything.
const EDGES: &[(&str, &[&str])] = &[
    ("mnemon-core", &[]),
    ("mnemon-engine", &["mnemon-core"]),
    ("mnemon-adapters", &["mnemon-core"]),
    ("mnemon-testkit", &["mnemon-core"]),
    ("mnemon-milvus", &["mnemon-core", "mnemon-adapters"]),
    ("mnemon-lance", &["mnemon-core", "mnemon-adapters"]),
    (
        "mnemon",
        &["mnemon-core", "mnemon-engine", "mnemon-adapters"],
    ),
    (
        "mnemon-operations",
        &[
            "mnemon-core",
            "mnemon-engine",
            "mnemon-adapters",
            "mnemon-lance",
            "mnemon-milvus",
        ],
    ),
    ("mnemon-web", &[]),
    (
        "mnemon-server",
        &[
            "mnemon-core",
            "mnemon-engine",
            "mnemon-operations",
            "mnemon-web",
        ],
    ),
    (
        "mnemon-cli",
        &[
            "mnemon-core",
            "mnemon-engine",
            "mnemon-operations",
            "mnemon-server",
        ],
    ),
    (
        "mnemon-python",
        &[
            "mnemon-engine",
            "mnemon-operations",
            "mnemon-server",
            "mnemon-cli",
        ],
    ),
];

/// A part of the sources, words that it must not have, and why.
struct Ban {
    under: &'static str,
    /// Files in which the words are fine.
    except: &'static [&'static str],
    words: &'static [&'static str],
    why: &'static str,
}

const BANS: &[Ban] = &[
    Ban {
        under: "mnemon-core/src",
        except: &[],
        words: OUTSIDE,
        why: "core has no clock, no files, no environment and prints nothing",
    },
    Ban {
        under: "mnemon-engine/src",
        except: &[],
        words: OUTSIDE,
        why: "the engine has no clock, no files, no environment and prints nothing",
    },
    Ban {
        under: "mnemon-adapters/src",
        except: &[],
        words: &["println!", "print!", "mnemon_engine", "env::var"],
        why: "adapters know ports, not verbs, and only the door prints and reads the environment",
    },
    Ban {
        under: "mnemon/src",
        except: &["options.rs"],
        words: &["mnemon_adapters", "SystemTime", "println!", "env::var"],
        why: "only options.rs wires and asks the clock, and a library prints nothing",
    },
    Ban {
        under: "mnemon-operations/src",
        except: &["wiring.rs", "wiring/index.rs", "wiring/remotes.rs"],
        words: &["mnemon_adapters", "Timestamp::now", "SystemTime"],
        why: "only wiring.rs names engine and adapters, and asks the clock",
    },
    Ban {
        under: "mnemon-operations/src",
        except: &["config/environment.rs"],
        words: &["env::var"],
        why: "the environment is read in one place",
    },
    Ban {
        under: "mnemon-operations/src",
        except: &[],
        words: PRINTING,
        why: "only the command line prints",
    },
    Ban {
        under: "mnemon-operations/src/config",
        except: &[],
        words: &["crate::api", "crate::operation", "crate::wiring"],
        why: "the configuration knows nobody",
    },
    Ban {
        under: "mnemon-operations/src/api",
        except: &[],
        words: &["crate::operation"],
        why: "operations do not know their definitions",
    },
    Ban {
        under: "mnemon-operations/src/wiring.rs",
        except: &[],
        words: &["crate::api", "crate::operation"],
        why: "wiring is below the operations",
    },
    Ban {
        under: "mnemon-server/src",
        except: &[],
        words: &[
            "mnemon_adapters",
            "Timestamp::now",
            "SystemTime",
            "env::var",
        ],
        why: "adapters, the clock and the environment are behind wiring and the configuration",
    },
    Ban {
        under: "mnemon-server/src",
        except: &[],
        words: PRINTING,
        why: "only the command line prints",
    },
    Ban {
        under: "mnemon-server/src/mcp",
        except: &[],
        words: &["std::fs"],
        why: "the server reads no file by itself",
    },
    Ban {
        under: "mnemon-cli/src",
        except: &[],
        words: &["mnemon_adapters", "Timestamp::now", "SystemTime"],
        why: "adapters and the clock are behind wiring",
    },
    Ban {
        under: "mnemon-cli/src",
        except: &["cli/out.rs"],
        words: &["env::var"],
        why: "the environment is read by the configuration (and the terminal's width here)",
    },
    Ban {
        under: "mnemon-cli/src",
        except: &["cli/out.rs", "cli/confirm.rs"],
        words: PRINTING,
        why: "only out.rs prints, and only confirm.rs asks",
    },
];

const PRINTING: &[&str] = &["println!", "print!", "io::stdout", "io::stderr"];

const OUTSIDE: &[&str] = &[
    "std::fs",
    "std::env",
    "std::net",
    "std::process",
    "std::thread",
    "SystemTime",
    "Instant",
    "println!",
    "print!",
    "dbg!",
    "tokio",
    "mnemon_adapters",
    "rusqlite",
];

const VAGUE: &[&str] = &[
    "utils", "util", "common", "helpers", "helper", "manager", "misc",
];

/// Crates of ours that a manifest names against the rules.
fn forbidden_edges(name: &str, manifest: &str) -> Vec<String> {
    let Some((_, allowed)) = EDGES.iter().find(|(known, _)| *known == name) else {
        return Vec::new();
    };
    let manifest: Table = manifest.parse().unwrap();
    let named = |section: &str| -> Vec<String> {
        let section = manifest.get(section).and_then(|section| section.as_table());
        let names = section.into_iter().flat_map(|table| table.keys());
        names
            .filter(|name| name.starts_with("mnemon"))
            .cloned()
            .collect()
    };
    let used = named("dependencies")
        .into_iter()
        .chain(named("build-dependencies"));
    let wrong = used.filter(|used| !allowed.contains(&used.as_str()));
    let tests = named("dev-dependencies").into_iter();
    // Tests may use stores and the testkit as well.
    let for_tests = ["mnemon-testkit", "mnemon-adapters"];
    let wrong_tests = tests
        .filter(|used| !for_tests.contains(&used.as_str()) && !allowed.contains(&used.as_str()));
    wrong
        .chain(wrong_tests)
        .map(|used| format!("{name} uses {used}"))
        .collect()
}

/// Lines of a source that break a rule. Comments and the tests at its end are not looked at.
fn forbidden_words(path: &str, source: &str) -> Vec<String> {
    let bans = BANS.iter().filter(|ban| {
        let inside = path.strip_prefix(ban.under);
        let rest = inside.map(|rest| rest.trim_start_matches('/'));
        rest.is_some_and(|rest| !ban.except.contains(&rest))
    });
    let mut found = Vec::new();
    for ban in bans {
        let lines = source.lines().enumerate();
        for (n, line) in lines.take_while(|(_, line)| line.trim() != "#[cfg(test)]") {
            let code = line.split("//").next().unwrap();
            for word in ban.words.iter().filter(|word| has_word(code, word)) {
                found.push(format!("{path}:{} has `{word}`: {}", n + 1, ban.why));
            }
        }
    }
    found
}

/// Whether the word stands in the code by itself, not as a part of a longer one.
fn has_word(code: &str, word: &str) -> bool {
    code.match_indices(word).any(|(at, _)| {
        let before = code[..at].chars().next_back();
        let after = code[at + word.len()..].chars().next();
        let part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
        let is_macro = word.ends_with('!');
        !part(before) && (is_macro || !part(after) || word == "env::var")
    })
}

fn has_vague_name(path: &Path) -> bool {
    path.iter().any(|part| {
        let name = Path::new(part).file_stem().and_then(|stem| stem.to_str());
        name.is_some_and(|name| VAGUE.contains(&name))
    })
}

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("..")
        .canonicalize()
        .unwrap()
}

/// Every Rust file under the folder, relative to the crates.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found
}

#[test]
fn no_crate_knows_one_it_must_not() {
    let mut wrong = Vec::new();
    for entry in fs::read_dir(crates()).unwrap() {
        let folder = entry.unwrap().path();
        let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
        if let Ok(manifest) = fs::read_to_string(folder.join("Cargo.toml")) {
            assert!(
                name == "mnemon-bench" || EDGES.iter().any(|(known, _)| *known == name),
                "{name} is not in the plan of the house: add it to EDGES"
            );
            wrong.extend(forbidden_edges(&name, &manifest));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_source_reaches_through_a_wall() {
    let root = crates();
    let mut wrong = Vec::new();
    let mut looked_at = 0;
    for path in sources(&root) {
        let name = path.strip_prefix(&root).unwrap();
        if has_vague_name(name) {
            wrong.push(format!("{} has a name that says nothing", name.display()));
        }
        let is_test = name.ends_with("tests.rs");
        if name.iter().any(|part| part == "src") && !is_test {
            looked_at += 1;
            let source = fs::read_to_string(&path).unwrap();
            wrong.extend(forbidden_words(name.to_str().unwrap(), &source));
        }
    }
    assert!(looked_at > 50, "only {looked_at} files were looked at");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A group of modules inside core or engine, as the table in ARCHITECTURE.md gives it.
#[derive(Debug, Clone)]
struct ModuleGroup {
    krate: String,
    name: String,
    may_use: Vec<String>,
}

/// The rows of the table that begins with `| crate | group |`.
fn module_groups(page: &str) -> Vec<ModuleGroup> {
    let rows = page
        .lines()
        .skip_while(|line| !line.starts_with("| crate | group |"));
    let rows = rows.skip(2).take_while(|line| line.starts_with('|'));
    let code = |cell: &str| -> Vec<String> {
        let parts = cell.split('`').skip(1).step_by(2);
        parts.map(str::to_owned).collect()
    };
    rows.map(|row| {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        ModuleGroup {
            krate: format!("mnemon-{}", cells[0]),
            name: code(cells[1]).remove(0),
            may_use: code(cells[3]),
        }
    })
    .collect()
}

/// Names right behind `crate::`, comments and the tests at the end of the file left out. An import
/// through the crate's root (`crate::{…}` or `crate::Type`) is named as it stands there.
fn names_behind_crate(source: &str) -> Vec<String> {
    let code = source
        .lines()
        .take_while(|line| line.trim() != "#[cfg(test)]");
    let code = code.map(|line| line.split("//").next().unwrap());
    let mut names = Vec::new();
    for line in code {
        for (at, found) in line.match_indices("crate::") {
            let rest = &line[at + found.len()..];
            let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
            names.push(match &rest[..end.unwrap_or(rest.len())] {
                "" => rest.chars().take(1).collect(),
                name => name.to_owned(),
            });
        }
    }
    names
}

/// What breaks the map: groups that it does not know, uses that it does not allow, and uses that
/// it allows and nobody needs.
fn wrong_uses(groups: &[ModuleGroup], krate: &str, files: &[(String, String)]) -> Vec<String> {
    let groups = || groups.iter().filter(|group| group.krate == krate);
    let mut wrong = Vec::new();
    let mut used: Vec<(String, String)> = Vec::new();
    for (path, source) in files {
        let group = path.split('/').next().unwrap().trim_end_matches(".rs");
        let Some(group) = groups().find(|known| known.name == group) else {
            wrong.push(format!("{krate}: {path} is in no group of the map"));
            continue;
        };
        for name in names_behind_crate(source) {
            if name != group.name && !group.may_use.contains(&name) {
                wrong.push(format!("{krate}: {path} uses crate::{name}"));
            }
            used.push((group.name.clone(), name));
        }
    }
    for (n, group) in groups().enumerate() {
        for other in &group.may_use {
            if !groups().take(n).any(|above| above.name == *other) {
                wrong.push(format!(
                    "{krate}: {} may only use rows above it, not {other}",
                    group.name
                ));
            }
            if !used.contains(&(group.name.clone(), other.clone())) {
                wrong.push(format!("{krate}: {} does not use {other}", group.name));
            }
        }
    }
    wrong
}

#[test]
fn no_group_of_modules_uses_one_it_must_not() {
    let page = fs::read_to_string(crates().join("../ARCHITECTURE.md")).unwrap();
    let groups = module_groups(&page);
    let mut wrong = Vec::new();
    for krate in ["mnemon-core", "mnemon-engine"] {
        let src = crates().join(krate).join("src");
        let paths = sources(&src).into_iter();
        let paths = paths.filter(|path| !path.ends_with("lib.rs") && !path.ends_with("tests.rs"));
        let paths = paths.filter(|path| !path.iter().any(|part| part == "tests"));
        let files: Vec<(String, String)> = paths
            .map(|path| {
                let name = path.strip_prefix(&src).unwrap().to_str().unwrap();
                (name.to_owned(), fs::read_to_string(&path).unwrap())
            })
            .collect();
        assert!(
            files.len() > 50,
            "only {} files were looked at",
            files.len()
        );
        wrong.extend(wrong_uses(&groups, krate, &files));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_use_against_the_map_is_noticed() {
    let page = "| crate | group | holds | may use |\n|---|---|---|---|\n\
                | core | `model` | nouns | |\n| core | `ports` | ports | `model` |\n";
    let groups = module_groups(page);
    let wrong = |path: &str, source: &str| {
        let file = (path.to_owned(), source.to_owned());
        let fine = ("ports.rs".to_owned(), "use crate::model::Id;".to_owned());
        wrong_uses(&groups, "mnemon-core", &[file, fine])
    };
    assert!(wrong("model/id.rs", "use crate::model::Invalid;").is_empty());
    assert!(wrong("ports/store.rs", "use crate::model::Id;").is_empty());
    for (path, source) in [
        ("model/id.rs", "use crate::ports::Store;"),
        ("model/id.rs", "use crate::{Id, Record};"),
        ("ports/store.rs", "fn f(id: crate::Id) {}"),
        ("helpers/x.rs", "fn f() {}"),
    ] {
        assert_eq!(wrong(path, source).len(), 1, "{path} {source}");
    }
    assert_eq!(wrong_uses(&groups, "mnemon-core", &[]).len(), 1);
}

#[test]
fn a_forbidden_crate_is_noticed() {
    let planted = "[dependencies]\nmnemon-adapters.workspace = true\nserde = \"1\"\n";
    assert_eq!(
        forbidden_edges("mnemon-engine", planted),
        ["mnemon-engine uses mnemon-adapters"]
    );
    assert!(forbidden_edges("mnemon", planted).is_empty());
    let planted = "[dev-dependencies]\nmnemon-testkit = \"1\"\nmnemon-engine = \"1\"\n";
    assert_eq!(
        forbidden_edges("mnemon-adapters", planted),
        ["mnemon-adapters uses mnemon-engine"]
    );
}

#[test]
fn a_forbidden_word_is_noticed() {
    let wrong = |path: &str, source: &str| !forbidden_words(path, source).is_empty();
    assert!(wrong(
        "mnemon-core/src/model/time.rs",
        "let now = std::time::SystemTime::now();"
    ));
    assert!(wrong("mnemon-engine/src/memory.rs", "use std::fs;"));
    assert!(wrong(
        "mnemon-engine/src/memory.rs",
        "    println!(\"hello\");"
    ));
    assert!(wrong(
        "mnemon-adapters/src/open.rs",
        "use mnemon_engine::Memory;"
    ));
    assert!(wrong(
        "mnemon-cli/src/api/add.rs",
        "use mnemon_adapters::open;"
    ));
    assert!(wrong(
        "mnemon-operations/src/api/add.rs",
        "use crate::operation::Add;"
    ));
    assert!(wrong(
        "mnemon-cli/src/cli/add.rs",
        "std::env::var_os(\"X\")"
    ));
    assert!(!wrong(
        "mnemon-operations/src/wiring.rs",
        "use mnemon_adapters::open;"
    ));
    assert!(!wrong(
        "mnemon-core/src/model/time.rs",
        "// SystemTime is not for us"
    ));
    assert!(!wrong(
        "mnemon-core/src/model/time.rs",
        "struct InstantTea;"
    ));
    assert!(!wrong(
        "mnemon-core/src/model/time.rs",
        "#[cfg(test)]\nuse std::fs;"
    ));
    assert!(has_vague_name(Path::new("mnemon-cli/src/utils.rs")));
    assert!(has_vague_name(Path::new("mnemon-cli/src/common/x.rs")));
}
