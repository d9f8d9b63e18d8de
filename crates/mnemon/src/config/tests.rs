use std::path::Path;

use super::*;

fn load(folder: &Path, flags: &Flags, vars: &[(&str, &str)]) -> Result<Config, ConfigError> {
    Config::load(flags, &Environment::of(folder, vars))
}

fn with_file(text: &str) -> Result<Config, ConfigError> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("mnemon.toml"), text).unwrap();
    load(folder.path(), &Flags::default(), &[("HOME", "/home/ann")])
}

#[test]
fn a_flag_beats_a_variable_beats_the_file_beats_the_default() {
    let folder = tempfile::tempdir().unwrap();
    let home = ("HOME", "/home/ann");
    let get = |flags: &Flags, vars: &[(&str, &str)]| {
        let config = load(folder.path(), flags, vars).unwrap();
        (config.tenant.value.to_string(), config.tenant.origin)
    };
    let plain = Flags::default();
    assert_eq!(get(&plain, &[home]), ("default".into(), Origin::Default));

    let path = folder.path().join("mnemon.toml");
    std::fs::write(&path, "json = true\ntenant = \"file\"\n").unwrap();
    let line = Origin::File { path, line: 2 };
    assert_eq!(get(&plain, &[home]), ("file".into(), line));

    let vars = [home, ("MNEMON_TENANT", "env")];
    let env = Origin::Env("MNEMON_TENANT");
    assert_eq!(get(&plain, &vars), ("env".into(), env));

    let flags = Flags {
        tenant: Some("flag".into()),
        ..Flags::default()
    };
    let flag = Origin::Flag("--tenant");
    assert_eq!(get(&flags, &vars), ("flag".into(), flag));
}

#[test]
fn an_unknown_key_is_named_with_its_line_and_the_nearest_known_one() {
    let error = with_file("json = true\n[namespaces.short-term]\nttl_dais = 3\n").unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("mnemon.toml:3: `namespaces.short-term.ttl_dais`"),
        "{text}"
    );
    assert!(
        text.contains("did you mean `namespaces.short-term.ttl_days`?"),
        "{text}"
    );
    assert!(text.contains("history_days"), "{text}");
    for unknown in [
        "[namespaces.middle-term]\nttl_days = 1",
        "[stroe]\nurl = 1",
        "store.x = 1",
    ] {
        assert!(with_file(unknown).is_err(), "{unknown}");
    }
}

#[test]
fn values_are_checked_and_the_message_says_where_they_came_from() {
    for bad in [
        "tenant = \"A B\"",
        "json = 3",
        "history_days = 0",
        "history_days = \"soon\"",
        "store = [1]",
        "namespaces.long-term.max_entries = -1",
        "tenant = ",
    ] {
        let text = with_file(bad).unwrap_err().to_string();
        assert!(text.contains("mnemon.toml:1"), "{bad}: {text}");
    }
}

#[test]
fn namespaces_can_be_set_and_unset() {
    let config = with_file(
        "history_days = 30\n[namespaces.short-term]\nttl_days = 3\nmax_entries = 100\n\
         [namespaces.long-term]\nttl_days = \"none\"\n",
    );
    let config = config.unwrap();
    assert_eq!(config.short_term.ttl_days.value, Some(3));
    assert_eq!(config.policy().caps.short_term, Some(100));
    assert_eq!(config.long_term.ttl_days.value, None);
    assert_eq!(config.policy().history_days, Some(30));
}

#[test]
fn the_store_lies_in_the_users_data_folder_unless_told_otherwise() {
    let folder = Path::new("/nowhere");
    let store = |vars: &[(&str, &str)]| {
        let config = load(folder, &Flags::default(), vars)?;
        Ok::<String, ConfigError>(config.store.value)
    };
    let home = ("HOME", "/home/ann");
    let plain = store(&[home]).unwrap();
    assert_eq!(plain, "sqlite:/home/ann/.local/share/mnemon/mnemon.db");
    let xdg = store(&[home, ("XDG_DATA_HOME", "/data")]).unwrap();
    assert_eq!(xdg, "sqlite:/data/mnemon/mnemon.db");
    let own = store(&[home, ("MNEMON_HOME", "/m")]).unwrap();
    assert_eq!(own, "sqlite:/m/mnemon.db");
    let tilde = store(&[home, ("MNEMON_STORE", "sqlite:~/x.db")]).unwrap();
    assert_eq!(tilde, "sqlite:/home/ann/x.db");
    assert!(matches!(store(&[]), Err(ConfigError::NoHome)));
}

#[test]
fn a_relative_path_in_a_file_begins_at_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("other.toml");
    let store = |text: &str| {
        std::fs::write(&path, text).unwrap();
        let flags = Flags {
            config: Some(path.clone()),
            ..Flags::default()
        };
        load(Path::new("/"), &flags, &[]).unwrap().store.value
    };
    let beside = format!("sqlite:{}/m.db", folder.path().display());
    assert_eq!(store("store = \"sqlite:m.db\""), beside);
    assert_eq!(store("store = \"sqlite:/m.db\""), "sqlite:/m.db");
    assert_eq!(store("store = \"ram:\""), "ram:");
}

#[test]
fn a_file_that_was_asked_for_must_be_there() {
    let vars = [("HOME", "/"), ("MNEMON_CONFIG", "/nowhere/mnemon.toml")];
    let error = load(Path::new("/"), &Flags::default(), &vars).unwrap_err();
    assert!(
        error.to_string().contains("/nowhere/mnemon.toml"),
        "{error}"
    );
}

#[test]
fn policies_are_read_with_their_lines_and_the_most_specific_wins() {
    let config = with_file(
        "[policy.default]\nmax_docs = 4\n\
         [policy.smart_buyer]\nmax_docs = 8\nuse_profile = false\nmax_tokens.dialog = 2000\n\
         [policy.agents.planner]\nmax_skills = 5\n\
         [policy.smart_buyer.agents.planner]\nmax_docs = 9\nmax_tokens = { dialog = \"none\" }\n",
    )
    .unwrap();
    let policies = &config.policies.policies;
    let buyer = policies.of(Some("smart_buyer"), Some("worker"));
    assert_eq!((buyer.max_docs, buyer.use_profile), (8, false));
    assert_eq!(buyer.max_tokens.dialog, Some(2000));
    let planner = policies.of(Some("smart_buyer"), Some("planner"));
    assert_eq!((planner.max_docs, planner.max_skills), (9, 5));
    assert_eq!(
        (planner.max_tokens.dialog, planner.use_profile),
        (None, false)
    );
    assert_eq!(policies.of(Some("other"), None).max_docs, 4);
    let rows = config.rows();
    let row = |key: &str| {
        let row = rows.iter().find(|row| row.key == key).unwrap();
        (
            row.value.clone(),
            row.origin.rsplit(':').next().unwrap().to_owned(),
        )
    };
    assert_eq!(row("policy.default.max_docs"), (json!(4), "2".to_owned()));
    assert_eq!(
        row("policy.default.max_skills"),
        (json!(3), "default".to_owned())
    );
    assert_eq!(
        row("policy.smart_buyer.max_docs"),
        (json!(8), "4".to_owned())
    );
    let none = row("policy.smart_buyer.agents.planner.max_tokens.dialog");
    assert_eq!(none, (json!("none"), "11".to_owned()));
}

#[test]
fn a_policy_with_a_mistake_is_refused_with_its_line() {
    for (bad, expected) in [
        (
            "[policy.f]\nmax_doc = 3",
            "mnemon.toml:2: `policy.f.max_doc`",
        ),
        ("[policy.f]\nmax_doc = 3", "did you mean `max_docs`?"),
        ("[policy.f]\nmax_doc = 3", "use_dialog"),
        (
            "[policy.f]\nmax_docs = \"many\"",
            "mnemon.toml:2: policy.f.max_docs: `many`",
        ),
        ("[policy.f]\nuse_dialog = 1", "neither true nor false"),
        (
            "[policy.f.max_tokens]\ndialogue = 1",
            "policy.f.max_tokens.dialogue",
        ),
        ("[policy]\nmax_docs = 3", "is for nobody"),
        ("[policy.agents]\nmax_docs = 3", "is for nobody"),
        ("[policy.f]\nmax_docs = [3]", "is of type array"),
        ("policy = 3", "`policy` is not a setting"),
    ] {
        let text = with_file(bad).unwrap_err().to_string();
        assert!(text.contains(expected), "{bad}: {text}");
    }
}

#[test]
fn every_variable_of_a_setting_is_documented() {
    for key in known_keys() {
        let documented = key.env.is_none_or(|env| env_vars::ALL.contains(&env));
        assert!(documented, "{}", key.name);
    }
}
