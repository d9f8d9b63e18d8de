//! Bad stores and bad configurations: a clear message, a non-zero exit, and nothing is changed.

use std::fs;

use crate::bad_input::expect;
use crate::sandbox::Sandbox;

#[test]
fn unknown_stores() {
    let sandbox = Sandbox::new();
    for url in ["mysql:db", "notes.db", "", "sqlite:", "ram:x"] {
        let ran = sandbox.run(&["list", "--store", url]);
        expect(ran, 2, &["store", "sqlite:PATH", "ram:"]);
    }
    assert_eq!(fs::read_dir(sandbox.folder()).unwrap().count(), 0);
}

#[test]
fn a_path_that_is_a_folder() {
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.path("folder")).unwrap();
    let ran = sandbox.run(&["add", "x", "--store", "sqlite:folder"]);
    expect(ran, 11, &["folder", "it is a folder; name a file"]);
    assert_eq!(sandbox.run(&["doctor", "--store", "sqlite:folder"]).code, 9);
    assert_eq!(fs::read_dir(sandbox.path("folder")).unwrap().count(), 0);
}

#[test]
fn a_file_that_is_not_a_database() {
    let sandbox = Sandbox::new();
    let files: [(&str, &[u8]); 3] = [
        ("text.db", b"Dear diary, this is not a database at all."),
        ("short.db", b"x"),
        ("almost.db", b"SQLite format 3\0and then something else"),
    ];
    for (name, bytes) in files {
        sandbox.file(name, bytes);
        let store = format!("sqlite:{name}");
        let ran = sandbox.run(&["add", "x", "--store", &store]);
        expect(ran, 11, &[name, "not a"]);
        assert_eq!(
            sandbox.run(&["doctor", "--store", &store]).code,
            9,
            "{name}"
        );
        assert_eq!(fs::read(sandbox.path(name)).unwrap(), bytes, "{name}");
    }
}

#[test]
fn another_programs_database() {
    let sandbox = Sandbox::new();
    let other = rusqlite::Connection::open(sandbox.path("other.db")).unwrap();
    other
        .execute_batch("CREATE TABLE songs (title TEXT)")
        .unwrap();
    drop(other);
    let before = fs::read(sandbox.path("other.db")).unwrap();
    let ran = sandbox.run(&["add", "x", "--store", "sqlite:other.db"]);
    expect(ran, 11, &["other.db", "another program"]);
    assert_eq!(fs::read(sandbox.path("other.db")).unwrap(), before);
}

#[test]
fn a_file_from_a_newer_version() {
    let sandbox = Sandbox::new().with("MNEMON_STORE", "sqlite:m.db");
    sandbox.note("a", "from the future");
    let file = rusqlite::Connection::open(sandbox.path("m.db")).unwrap();
    file.pragma_update(None, "user_version", 99).unwrap();
    drop(file);
    let before = fs::read(sandbox.path("m.db")).unwrap();
    for args in [
        vec!["list"],
        vec!["add", "x"],
        vec!["upkeep"],
        vec!["doctor", "--repair", "--yes"],
    ] {
        let ran = sandbox.run(&args);
        assert_ne!(ran.code, 0, "{args:?}");
        let said = ran.out + &ran.err;
        assert!(
            said.contains("newer version") && said.contains("99"),
            "{args:?}: {said}"
        );
    }
    assert_eq!(sandbox.run(&["list"]).code, 10);
    assert_eq!(fs::read(sandbox.path("m.db")).unwrap(), before);
}

#[test]
fn a_read_only_file() {
    let sandbox = Sandbox::new().with("MNEMON_STORE", "sqlite:m.db");
    sandbox.note("a", "one");
    let path = sandbox.path("m.db");
    let before = fs::read(&path).unwrap();
    let mut permissions = fs::metadata(&path).unwrap().permissions();
    permissions.set_readonly(true);
    fs::set_permissions(&path, permissions).unwrap();
    expect(
        sandbox.run(&["add", "x"]),
        5,
        &["m.db", "read-only", "permissions"],
    );
    let seen = sandbox.run(&["doctor"]).ok();
    assert!(
        seen.contains("permissions  warning  the file is read-only"),
        "{seen}"
    );
    assert_eq!(fs::read(&path).unwrap(), before);
}

/// Root may write everywhere, so the program runs as somebody else here.
#[test]
#[cfg(target_os = "linux")]
fn a_read_only_folder() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    use std::os::unix::process::CommandExt;

    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.path("locked")).unwrap();
    for path in [sandbox.folder(), &sandbox.path("locked")] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o555)).unwrap();
    }
    let mut command = sandbox.command();
    command.args(["add", "x", "--store", "sqlite:locked/m.db"]);
    if fs::metadata("/proc/self").unwrap().uid() == 0 {
        command.uid(65534).gid(65534);
    }
    let output = match command.output() {
        Ok(output) => output,
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            println!("skipped: others cannot reach the built program");
            return;
        }
        Err(error) => panic!("{error}"),
    };
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(matches!(output.status.code(), Some(5 | 13)), "{message}");
    assert!(
        message.contains("m.db") && message.contains("hint:"),
        "{message}"
    );
    assert_eq!(fs::read_dir(sandbox.path("locked")).unwrap().count(), 0);
    fs::set_permissions(sandbox.folder(), fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn bad_configuration() {
    let sandbox = Sandbox::new();
    let files = [
        (
            "stroe = \"ram:\"",
            vec![
                "mnemon.toml:1",
                "`stroe`",
                "did you mean `store`?",
                "tenant",
            ],
        ),
        (
            "\n[namespaces.short-term]\nttl = 3",
            vec![":3", "`namespaces.short-term.ttl`", "ttl_days"],
        ),
        ("store = ", vec!["mnemon.toml:1"]),
        (
            "tenant = \"Not Good\"",
            vec!["mnemon.toml:1", "tenant", "lower case"],
        ),
        (
            "history_days = -1",
            vec!["mnemon.toml:1", "history_days", "1 or more"],
        ),
    ];
    for (text, words) in files {
        sandbox.config(text);
        expect(sandbox.run(&["list"]), 2, &words);
    }
    expect(
        sandbox.run(&["list", "--config", "nowhere.toml"]),
        3,
        &["nowhere.toml", "No such file"],
    );
    assert!(!sandbox.path(".local").exists());
}
