//! What the program makes is its owner's only, however permissive the umask is.
#![cfg(unix)]

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use crate::sandbox::Sandbox;

fn mode(path: &Path) -> u32 {
    let metadata = std::fs::metadata(path);
    let metadata = metadata.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    metadata.permissions().mode() & 0o777
}

/// Runs the shell's script with a umask that takes nothing away; `$M` is the program.
fn sh(sandbox: &Sandbox, script: &str) {
    let program = sandbox.command();
    let mut command = Command::new("sh");
    command
        .args(["-ec", &format!("umask 000; {script}")])
        .current_dir(sandbox.folder())
        .env_clear()
        .env("HOME", sandbox.folder())
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("M", program.get_program());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{script}: {output:?}");
}

#[test]
fn what_is_remembered_is_its_owners_only() {
    let sandbox = Sandbox::new();
    sh(
        &sandbox,
        r#"
        "$M" add "Ann prefers tea"
        echo '{"memory":{"messages":[]}}' | "$M" session save s1 --folder sessions
        "$M" chat append s1 "hello" --files .
        "$M" export out.jsonl
        mkdir project && cd project && "$M" init
        "#,
    );
    let own = |path: &str| {
        let mode = mode(&sandbox.path(path));
        assert_eq!(mode & 0o077, 0, "{path} is {mode:o}");
    };
    own(".local/share/mnemon");
    own(".local/share/mnemon/mnemon.db");
    own("sessions");
    own("sessions/s1.json");
    own(".airsspec/contexts/agent");
    own(".airsspec/contexts/agent/s1.jsonl");
    own("out.jsonl");
    own("project/.mnemon");
    own("project/.mnemon/mnemon.db");
}

#[test]
fn an_export_over_a_file_keeps_its_mode() {
    let sandbox = Sandbox::new();
    sandbox.note("a", "Ann prefers tea");
    let path = sandbox.file("out.jsonl", "old");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
    sandbox.run(&["export", "out.jsonl", "--force"]).ok();
    assert_eq!(mode(Path::new(&path)), 0o640);
}
