//! Access keys, the audit log and quotas, from the command line.

use mnemon_core::{Ctx, ErrorKind, Tenant, Time};
use mnemon_engine::access::{Amount, Caller, Keys, Refused, Rights};
use mnemon_operations::config::{Config, Environment, Flags, JwksPlace};
use mnemon_operations::wiring;
use serde_json::Value;

use crate::sandbox::Sandbox;

const INVALID: i32 = 2;
const NOT_FOUND: i32 = 3;
const CORRUPT: i32 = 9;

fn wait<T>(future: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.build().unwrap().block_on(future)
}

/// A server in another process, on the store of the sandbox.
struct Server(Keys);

impl Server {
    fn new(sandbox: &Sandbox) -> Self {
        Self::at(&format!("sqlite:{}", sandbox.path("m.db").display()))
    }

    fn at(store: &str) -> Self {
        let wired = wiring::open(&Config::for_store(store)).unwrap();
        Self(Keys::new(wired.memory.records()))
    }

    fn resolve(&self, now: Time, secret: &str) -> Result<Caller, Refused> {
        wait(self.0.resolve(now, secret))
    }
}

fn now() -> Time {
    wiring::stamp(&Config::for_store("ram:")).unwrap().now
}

fn sandbox() -> Sandbox {
    Sandbox::new().with("MNEMON_STORE", "sqlite:m.db")
}

fn create(sandbox: &Sandbox, args: &[&str]) -> (String, String) {
    let args = [&["key", "create"], args, &["--json"]].concat();
    let created = sandbox.run(&args).json();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    (text(&created["key"]["prefix"]), text(&created["secret"]))
}

#[test]
fn a_key_that_was_created_opens_its_tenant_until_it_is_revoked() {
    let sandbox = sandbox();
    let said = sandbox
        .run(&[
            "key", "create", "ci", "--rights", "write", "--user", "ann", "--tenant", "acme",
        ])
        .ok();
    let lines: Vec<&str> = said.lines().collect();
    let secret = lines[2];
    let prefix = &secret[7..15];
    assert_eq!(
        lines[0],
        format!("created key {prefix} (ci): write, tenant acme, user ann")
    );
    assert!(
        secret.starts_with("mnemon_") && secret.len() == 74,
        "{said}"
    );
    assert!(lines[4].contains("shown only once"), "{said}");
    // A server in another process knows it.
    let server = Server::new(&sandbox);
    let caller = server.resolve(now(), secret).unwrap();
    assert_eq!(
        (caller.tenant.as_str(), caller.rights),
        ("acme", Rights::Write)
    );
    assert_eq!(
        (caller.user.as_deref(), caller.name.as_str()),
        (Some("ann"), prefix)
    );
    assert!(wait(server.0.note_use(now(), prefix)).unwrap());
    // The list has no secret, and each tenant its own keys.
    let listed = sandbox.run(&["key", "list", "--tenant", "acme"]).ok();
    let row: Vec<&str> = listed.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!(row[..6], [prefix, "ci", "acme", "write", "user", "ann"]);
    assert_eq!(row.last(), Some(&"valid"));
    assert!(!listed.contains(&secret[16..]), "{listed}");
    assert_eq!(sandbox.run(&["key", "list"]).ok(), "there are no keys\n");
    let all = sandbox.run(&["key", "list", "--all-tenants"]).ok();
    assert!(all.contains(prefix), "{all}");
    // Only its tenant revokes it, and the server refuses it a second later.
    let (code, error) = sandbox.run(&["key", "revoke", prefix]).failed();
    assert_eq!(code, NOT_FOUND);
    assert!(
        error.contains(&format!("tenant `default` has no key `{prefix}`")),
        "{error}"
    );
    assert!(error.contains("mnemon key list"), "{error}");
    let said = sandbox
        .run(&["key", "revoke", prefix, "--tenant", "acme"])
        .ok();
    assert!(
        said.starts_with(&format!("revoked key {prefix} (ci)\n")),
        "{said}"
    );
    let later = now().plus_millis(1000);
    assert!(matches!(
        server.resolve(later, secret),
        Err(Refused::Revoked)
    ));
    let listed = sandbox.run(&["key", "ls", "--tenant", "acme"]).ok();
    assert!(listed.trim_end().ends_with("revoked"), "{listed}");
    // Undo and the history know nothing of keys.
    let (code, _) = sandbox.run(&["undo", "--tenant", "acme"]).failed();
    assert_eq!(code, NOT_FOUND);
}

#[test]
fn keys_work_on_every_store() {
    for store in ["sqlite:m.db", "jsonl:m"] {
        let sandbox = Sandbox::new().with("MNEMON_STORE", store);
        let (prefix, secret) = create(&sandbox, &["ci", "--rights", "read"]);
        let (scheme, name) = store.split_once(':').unwrap();
        let server = Server::at(&format!("{scheme}:{}", sandbox.path(name).display()));
        assert!(server.resolve(now(), &secret).is_ok(), "{store}");
        assert!(wait(server.0.note_use(now(), &prefix)).unwrap());
        sandbox.run(&["key", "revoke", &prefix]).ok();
        let later = now().plus_millis(1000);
        assert!(
            matches!(server.resolve(later, &secret), Err(Refused::Revoked)),
            "{store}"
        );
        let upkept = wait(server.0.upkeep(later.plus_days(2), 1000)).unwrap();
        assert_eq!(upkept.history, 2, "{store}: {upkept:?}");
    }
}

#[test]
fn a_key_is_rotated_without_an_interruption() {
    let sandbox = sandbox();
    let (old, old_secret) = create(&sandbox, &["ci", "--rights", "read", "--expires", "90d"]);
    let rotate = ["key", "rotate", &old, "--overlap", "48h"];
    let said = sandbox.run(&rotate).ok();
    let new_secret = said.lines().nth(2).unwrap();
    assert!(
        said.contains(&format!("The old key {old} is valid until")),
        "{said}"
    );
    let server = Server::new(&sandbox);
    let hours = |hours: i64| now().plus_millis(hours * 3_600_000);
    for secret in [old_secret.as_str(), new_secret] {
        assert!(server.resolve(hours(47), secret).is_ok());
    }
    assert!(matches!(
        server.resolve(hours(49), &old_secret),
        Err(Refused::Expired)
    ));
    assert!(server.resolve(hours(49), new_secret).is_ok());
    let listed = sandbox.run(&["key", "list"]).ok();
    assert!(
        listed.contains(&format!("replaced by {}", &new_secret[7..15])),
        "{listed}"
    );
    let (code, error) = sandbox.run(&rotate).failed();
    assert!(
        code == INVALID && error.contains("already replaced"),
        "{error}"
    );
    // At once.
    let new = &new_secret[7..15];
    sandbox.run(&["key", "rotate", new, "--overlap", "0s"]).ok();
    assert!(matches!(
        server.resolve(hours(50), new_secret),
        Err(Refused::Expired)
    ));
}

#[test]
fn what_is_wrong_with_a_key_names_the_option() {
    let sandbox = sandbox();
    for (args, expected) in [
        (&["create", "ci"][..], "--rights"),
        (&["create", "ci", "--rights", "owner"], "--rights"),
        (
            &["create", "ci", "--rights", "read", "--expires", "soon"],
            "--expires",
        ),
        (
            &["create", "ci", "--rights", "read", "--expires", "200y"],
            "--expires",
        ),
        (
            &["create", "ci", "--rights", "admin", "--user", "ann"],
            "--rights",
        ),
        (&["create", " ", "--rights", "read"], "name"),
        (&["rotate", "x", "--overlap", "1y"], "--overlap"),
        (&["rotate", "x", "--overlap", "soon"], "--overlap"),
    ] {
        let (code, error) = sandbox.run(&[&["key"], args].concat()).failed();
        assert_eq!(code, INVALID, "{args:?}: {error}");
        assert!(error.contains(expected), "{args:?}: {error}");
    }
    let (code, _) = sandbox.run(&["key", "rotate", "nobody"]).failed();
    assert_eq!(code, NOT_FOUND);
}

#[test]
fn no_door_opens_the_reserved_tenant() {
    let sandbox = sandbox();
    create(&sandbox, &["ci", "--rights", "read"]);
    let record = r#"{"v":1,"id":"key-00000000","tenant":"mnemon-system","scope":"state","kind":"state","namespace":"long-term","content":"x","origin":"user","created":"2026-01-31T12:00:00.000Z","updated":"2026-01-31T12:00:00.000Z"}"#;
    sandbox.file("keys.jsonl", record);
    let (code, error) = sandbox.run(&["import", "keys.jsonl"]).failed();
    assert!(
        code == INVALID && error.contains("reserved tenant"),
        "{error}"
    );
    let reserved = |ran: crate::sandbox::Ran| {
        let (code, error) = ran.failed();
        assert_eq!(code, INVALID, "{error}");
        assert!(error.contains("`mnemon-system` is reserved"), "{error}");
    };
    let tenant = ["--tenant", "mnemon-system"];
    for command in [
        &["list"][..],
        &["add", "x"],
        &["export"],
        &["key", "list"],
        &["key", "create", "ci", "--rights", "admin"],
        &["mcp"],
    ] {
        reserved(sandbox.run(&[command, &tenant].concat()));
    }
    sandbox.config("tenant = \"mnemon-system\"\n");
    reserved(sandbox.run(&["list"]));
    sandbox.config("[server.tenants.mnemon-system.quota]\nrecords = 3\n");
    reserved(sandbox.run(&["list"]));
    let by_variable = Sandbox::new().with("MNEMON_TENANT", "mnemon-system");
    reserved(by_variable.run(&["list"]));
}

#[test]
fn keys_are_not_found_among_records_and_survive_a_restore() {
    let sandbox = sandbox();
    let (prefix, secret) = create(&sandbox, &["ci", "--rights", "read"]);
    sandbox.run(&["add", "Ann prefers tea"]).ok();
    for command in [
        &["list", "--json"][..],
        &["search", "ci", "--json"],
        &["export"],
    ] {
        let out = sandbox.run(command).ok();
        assert!(!out.contains(&prefix), "{out}");
    }
    sandbox.run(&["backup", "copy.db"]).ok();
    sandbox.run(&["restore", "copy.db", "--yes"]).ok();
    assert!(Server::new(&sandbox).resolve(now(), &secret).is_ok());
    let doctor = sandbox.run(&["doctor"]);
    assert_eq!(doctor.code, 0, "{}", doctor.err);
    // The secret itself is masked if somebody stores it.
    let added = sandbox.run(&["add", &format!("the key is {secret}"), "--id", "k1"]);
    assert_eq!(added.code, 0, "{}", added.err);
    let shown = sandbox.run(&["get", "k1"]).ok();
    assert!(!shown.contains(&secret), "{shown}");
}

#[test]
fn the_audit_log_is_verified() {
    let sandbox = sandbox();
    let (code, error) = sandbox.run(&["audit", "verify"]).failed();
    assert!(
        code == NOT_FOUND && error.contains("does not exist"),
        "{error}"
    );
    let (prefix, secret) = create(&sandbox, &["ci", "--rights", "read"]);
    sandbox.run(&["key", "rotate", &prefix]).ok();
    sandbox.run(&["key", "revoke", &prefix]).ok();
    let said = sandbox.run(&["audit", "verify"]).ok();
    assert_eq!(
        said,
        "the audit log is complete: 3 entries, 1 to 3, in 1 file\n"
    );
    let listed = sandbox.run(&["audit", "tail", "-n", "2"]).ok();
    let rows: Vec<&str> = listed.lines().collect();
    assert!(rows.len() == 3 && rows[1].contains("key rotate") && rows[2].contains("key revoke"));
    assert!(
        rows[2].contains("cli:ann") && rows[2].contains(&prefix),
        "{listed}"
    );
    let path = sandbox.path(".local/share/mnemon/audit.jsonl");
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(!text.contains(&secret), "{text}");
    let shown = path.display().to_string();
    // One file alone, wherever it lies.
    let said = sandbox.run(&["audit", "verify", "--file", &shown]).ok();
    assert!(said.contains("3 entries"), "{said}");
    let changed = text.replacen("key rotate", "key  rotate", 1);
    std::fs::write(&path, changed).unwrap();
    for args in [
        &["audit", "verify"][..],
        &["audit", "verify", "--file", &shown],
    ] {
        let (code, error) = sandbox.run(args).failed();
        assert_eq!(code, CORRUPT);
        assert!(
            error.contains("audit.jsonl, line 2: the entry was altered"),
            "{error}"
        );
    }
    let head: Vec<&str> = text.lines().take(2).collect();
    std::fs::write(&path, head.join("\n") + "\n").unwrap();
    let (code, error) = sandbox.run(&["audit", "verify"]).failed();
    assert_eq!(code, CORRUPT);
    let expected = "line 2: the log ends with entry 2, but entry 3 was written";
    assert!(error.contains(expected), "{error}");
}

#[test]
fn a_key_is_created_even_if_the_audit_log_cannot_be_written() {
    let sandbox = sandbox();
    sandbox.file("file", "x");
    sandbox.config(format!(
        "[server]\naudit = \"{}/audit.jsonl\"\n",
        sandbox.path("file").display()
    ));
    let ran = sandbox.run(&["key", "create", "ci", "--rights", "read"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(
        ran.out.contains("mnemon_") && ran.err.contains("missing in the audit log"),
        "{ran:?}"
    );
    // Without a log nothing is written.
    sandbox.config("[server]\naudit = \"none\"\n");
    sandbox
        .run(&["key", "create", "ci", "--rights", "read"])
        .ok();
    let (code, error) = sandbox.run(&["audit", "list"]).failed();
    assert!(code == INVALID && error.contains("server.audit"), "{error}");
}

fn configured(sandbox: &Sandbox, text: &str) -> Result<Config, String> {
    let path = sandbox.file("server.toml", text);
    let flags = Flags {
        config: Some(path.into()),
        ..Flags::default()
    };
    Config::load(&flags, &Environment::of_process()).map_err(|error| error.to_string())
}

#[test]
fn quotas_come_from_the_configuration() {
    let sandbox = sandbox();
    let config = configured(
        &sandbox,
        "[server.quota]\nrecords = 2\nrequests_per_minute = 60\nmodel_tokens_per_day = 1000\n\
         [server.tenants.big.quota]\nrecords = \"none\"\nmodel_tokens_per_day = 5000\n",
    )
    .unwrap();
    let quotas = wiring::quotas(&config);
    let tenant = |name: &str| name.parse::<Tenant>().unwrap();
    let (big, other) = (quotas.of(&tenant("big")), quotas.of(&tenant("other")));
    assert_eq!(
        (other.records, other.requests_per_minute),
        (Some(2), Some(60))
    );
    assert_eq!((big.records, big.requests_per_minute), (None, Some(60)));
    assert_eq!(big.model_tokens_per_day, Some(5000));
    let memory = wiring::open(&Config::for_store("ram:")).unwrap().memory;
    let write = |name: &str, records| {
        let ctx = Ctx::new(tenant(name), "test", now());
        let added = Amount { records, bytes: 0 };
        wait(quotas.check_write(memory.records(), &ctx, added))
    };
    write("big", 1_000_000).unwrap();
    assert_eq!(write("other", 3).unwrap_err().kind(), ErrorKind::TooOften);
    for (text, expected) in [
        ("[server.quota]\nrecords = 0\n", "server.quota.records"),
        (
            "[server.quota]\nrecord = 1\n",
            "did you mean `server.quota.records`?",
        ),
        (
            "[server.tenants.a.quota]\nrecord = 1\n",
            "did you mean `records`?",
        ),
        (
            "[server.tenants.a]\nrecords = 1\n",
            "[server.tenants.NAME.quota]",
        ),
        (
            "[server.tenants.A.quota]\nrecords = 1\n",
            "is not a tenant name",
        ),
        (
            "[server.tenants.a.quota]\nrecords = -1\n",
            "is not a whole number of records",
        ),
        ("[server.jwt]\nissuer = \"x\"\n", "server.jwt.audience"),
        ("[server.jwt]\nleeway_s = 9999\n", "server.jwt.leeway_s"),
    ] {
        let error = configured(&sandbox, text).unwrap_err();
        assert!(error.contains(expected), "{text}: {error}");
    }
}

#[test]
fn tokens_come_from_the_configuration() {
    let sandbox = sandbox();
    let text = "[server.jwt]\nissuer = \"https://id.example\"\naudience = \"mnemon\"\n\
                jwks = \"jwks.json\"\ntenant_claim = \"org\"\n";
    let config = configured(&sandbox, text).unwrap();
    let settings = config.access.tokens.clone().unwrap();
    let path = JwksPlace::File(sandbox.path("jwks.json"));
    assert_eq!(settings.jwks, path);
    assert_eq!(
        (settings.leeway_s, settings.claims.tenant.as_str()),
        (60, "org")
    );
    let error = wiring::tokens(&config).err().unwrap().to_string();
    assert!(error.contains("jwks.json"), "{error}");
    sandbox.file(
        "jwks.json",
        r#"{"keys":[{"kty":"oct","k":"MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE"}]}"#,
    );
    let tokens = wiring::tokens(&config).unwrap().unwrap();
    assert!(tokens.verify(now(), "a.b.c").is_err());
    assert!(
        wiring::tokens(&configured(&sandbox, "").unwrap())
            .unwrap()
            .is_none()
    );
}
