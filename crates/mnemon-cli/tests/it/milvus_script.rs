//! `scripts/milvus` builds and tests only when its inputs have changed.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// A folder with the script, small inputs, and a `cargo` that only counts how often it tests.
pub(crate) struct Checkout {
    folder: TempDir,
    script: String,
}

impl Checkout {
    fn new() -> Self {
        Self::of("milvus")
    }

    /// With the script of this name.
    pub(crate) fn of(name: &str) -> Self {
        let folder = Self {
            folder: tempfile::tempdir().unwrap(),
            script: format!("scripts/{name}"),
        };
        let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let script = fs::read_to_string(scripts.join(&folder.script)).unwrap();
        folder.write(&folder.script, &script);
        folder.write("Cargo.toml", "");
        folder.write("Cargo.lock", "");
        for name in ["core", "adapters", "testkit", name] {
            folder.write(&format!("crates/mnemon-{name}/src/lib.rs"), "");
        }
        folder.program(
            "cargo",
            "[ $1 = build ] && exit; echo call >>calls; exit $(cat exit 2>/dev/null || echo 0)",
        );
        folder.program("rustc", "echo rustc 1");
        folder.program(
            "python3",
            "mkdir -p \"$3/bin\"; for name in pip python moto_server; do
             cp \"$(dirname $0)/pip\" \"$3/bin/$name\"; done",
        );
        folder.program("pip", "exit 0");
        folder
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn program(&self, name: &str, script: &str) {
        let name = format!("bin/{name}");
        self.write(&name, &format!("#!/bin/sh\n{script}\n"));
        let mode = fs::Permissions::from_mode(0o755);
        fs::set_permissions(self.path(&name), mode).unwrap();
    }

    /// Whether the script succeeds.
    pub(crate) fn run(&self, args: &[&str]) -> bool {
        let path = std::env::var("PATH").unwrap();
        let ran = Command::new("bash")
            .arg(self.path(&self.script))
            .args(args)
            .env("PATH", format!("{}:{path}", self.path("bin").display()))
            .env_remove("CARGO_TARGET_DIR")
            .env_remove("MNEMON_TEST_FULL")
            .output()
            .unwrap();
        ran.status.success()
    }

    /// How often cargo was called for tests.
    pub(crate) fn calls(&self) -> usize {
        let calls = fs::read_to_string(self.path("calls")).unwrap_or_default();
        calls.lines().count()
    }
}

#[test]
fn milvus_is_tested_again_only_when_its_inputs_have_changed() {
    let checkout = Checkout::new();
    assert!(checkout.run(&[]) && checkout.run(&[]));
    assert_eq!(checkout.calls(), 1, "the second run had the same inputs");
    checkout.write("README.md", "not an input");
    assert!(checkout.run(&[]));
    assert_eq!(checkout.calls(), 1);
    for (number, input) in [
        "Cargo.lock",
        "crates/mnemon-core/src/lib.rs",
        "crates/mnemon-adapters/src/new.rs",
        "crates/mnemon-testkit/src/lib.rs",
        "crates/mnemon-milvus/tests/it/main.rs",
    ]
    .into_iter()
    .enumerate()
    {
        checkout.write(input, "changed");
        assert!(checkout.run(&[]) && checkout.run(&[]));
        assert_eq!(checkout.calls(), number + 2, "{input}");
    }
    assert!(checkout.run(&["force"]));
    assert_eq!(checkout.calls(), 7);
}

#[test]
fn a_failure_is_not_remembered_as_a_success() {
    let checkout = Checkout::new();
    checkout.write("exit", "1");
    assert!(!checkout.run(&[]) && !checkout.run(&[]));
    assert_eq!(checkout.calls(), 2);
    checkout.write("exit", "0");
    assert!(checkout.run(&[]) && checkout.run(&[]));
    assert_eq!(checkout.calls(), 3);
    checkout.write("exit", "1");
    assert!(!checkout.run(&["force"]) && !checkout.run(&[]));
    assert_eq!(checkout.calls(), 5, "the earlier success is forgotten");
}
