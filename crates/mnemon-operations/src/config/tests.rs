use std::path::Path;

use mnemon_core::rank::Recipe;
use mnemon_core::secrets::SecretPolicy;
use mnemon_engine::notes::{MaxEntries, NamespaceLimits, NotesConfig};

use super::*;

fn load(folder: &Path, flags: &Flags, vars: &[(&str, &str)]) -> Result<Config, ConfigError> {
    Config::load(flags, &Environment::of(folder, vars))
}

/// The user's own file says this.
fn with_file(text: &str) -> Result<Config, ConfigError> {
    let home = tempfile::tempdir().unwrap();
    own_file(home.path(), text);
    let vars = [("HOME", home.path().to_str().unwrap())];
    load(Path::new("/nowhere"), &Flags::default(), &vars)
}

fn own_file(home: &Path, text: &str) -> PathBuf {
    let folder = home.join(".config/mnemon");
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("mnemon.toml");
    std::fs::write(&path, text).unwrap();
    path
}

#[test]
fn a_flag_beats_a_variable_beats_the_file_beats_the_default() {
    let folder = tempfile::tempdir().unwrap();
    let home = ("HOME", folder.path().to_str().unwrap());
    let get = |flags: &Flags, vars: &[(&str, &str)]| {
        let config = load(folder.path(), flags, vars).unwrap();
        (config.tenant.value.to_string(), config.tenant.origin)
    };
    let plain = Flags::default();
    assert_eq!(get(&plain, &[home]), ("default".into(), Origin::Default));

    let path = own_file(folder.path(), "json = true\ntenant = \"file\"\n");
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
    assert!(text.contains("namespaces.short-term.max_entries"), "{text}");
    assert!(!text.contains("history_days"), "only its section: {text}");
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
fn days_are_whole_however_they_are_written() {
    let days = |text: &str| with_file(&format!("[namespaces.short-term]\nttl_days = {text}\n"));
    assert_eq!(days("14.0").unwrap().short_term.ttl_days.value, Some(14));
    for wrong in ["0.5", "0.0", "-1.0"] {
        let said = days(wrong).unwrap_err().to_string();
        assert!(said.contains("whole number of days"), "{wrong}: {said}");
    }
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
    let read = |text: &str| {
        std::fs::write(&path, text).unwrap();
        let flags = Flags {
            config: Some(path.clone()),
            ..Flags::default()
        };
        load(Path::new("/"), &flags, &[]).unwrap()
    };
    let store = |text: &str| read(text).store.value;
    let beside = format!("sqlite:{}/m.db", folder.path().display());
    assert_eq!(store("store = \"sqlite:m.db\""), beside);
    assert_eq!(store("store = \"sqlite:/m.db\""), "sqlite:/m.db");
    assert_eq!(store("store = \"ram:\""), "ram:");
    let index = |url: &str| {
        let text = format!("store = \"ram:\"\nindex = \"{url}\"");
        read(&text).index.url.value
    };
    let beside = format!("lance:{}/vectors", folder.path().display());
    assert_eq!(index("lance:vectors"), beside);
    assert_eq!(index("lance:/vectors"), "lance:/vectors");
    for other in ["milvus://h/vectors", "lance:s3://bucket/vectors"] {
        assert_eq!(index(other), other);
    }
}

#[test]
fn keys_in_the_url_of_an_index_are_refused_and_not_repeated() {
    for url in ["lance:s3://id:secret@bucket/p", "milvus://id:secret@h/n"] {
        let error = with_file(&format!("index = \"{url}\"")).unwrap_err();
        let error = error.to_string();
        assert!(error.contains("AWS_SECRET_ACCESS_KEY"), "{error}");
        assert!(!error.contains("secret@"), "{error}");
    }
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
        ("[policy]\nmax_docs = 3", "names no flow or agent"),
        ("[policy.agents]\nmax_docs = 3", "names no flow or agent"),
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
        let known = |env: EnvVar| env_vars::ALL.contains(&env);
        assert!(key.env.is_none_or(known), "{}", key.name);
    }
}

#[test]
fn notes_are_kept_as_the_document_says_unless_told_otherwise() {
    let plain = with_file("").unwrap();
    assert_eq!(plain.notes_config(), NotesConfig::default());
    assert_eq!(plain.safety().secrets, SecretPolicy::Mask);
    let config = with_file(
        "[namespaces.short-term]\nmax_entries = 3\nmax_content_chars = 100\n\
         [namespaces.long-term]\nmax_entries = \"none\"\nmax_summary_chars = 50\n\
         [notes]\ntop_k = 7\nmin_score = 0.25\nrecipe = \"formula\"\ninclude_content = true\n\
         preview_chars = 10\nroot = \"notes\"\n[safety]\nsecrets = \"refuse\"\n",
    )
    .unwrap();
    let notes = config.notes_config();
    assert_eq!(notes.short_term.max_entries, MaxEntries::Chosen(Some(3)));
    assert_eq!(notes.short_term.max_content_chars, 100);
    assert_eq!(notes.long_term.max_entries, MaxEntries::Chosen(None));
    assert_eq!(notes.long_term.max_summary_chars, 50);
    assert_eq!((notes.top_k, notes.min_score), (7, Some(0.25)));
    assert_eq!(notes.recipe, Recipe::Formula);
    assert_eq!((notes.include_content, notes.preview_chars), (true, 10));
    assert!(config.notes.root.value.ends_with("notes") && config.notes.root.value.is_absolute());
    assert_eq!(config.safety().secrets, SecretPolicy::Refuse);
}

#[test]
fn mistakes_about_notes_are_refused() {
    for (bad, expected) in [
        ("[notes]\ntop_k = 0", "notes.top_k"),
        ("[notes]\ntop_k = 101", "from 1 to 100"),
        ("[notes]\nmin_score = 1.5", "from 0 to 1"),
        ("[notes]\nmin_score = \"high\"", "from 0 to 1"),
        ("[notes]\nrecipe = \"best\"", "hybrid, words"),
        ("[notes]\ntopk = 3", "did you mean `notes.top_k`?"),
        ("[safety]\nsecrets = \"hide\"", "refuse, mask, allow"),
        (
            "[namespaces.long-term]\nmax_summary_chars = 70000",
            "from 1 to",
        ),
    ] {
        let text = with_file(bad).unwrap_err().to_string();
        assert!(text.contains(expected), "{bad}: {text}");
    }
}

/// As the notes document prints it.
const MEMORY_JSON: &str = r#"{
  "version": "1.0.0",
  "storage": {
    "defaultBackend": "inmemory",
    "directory": ".taisun/memory"
  },
  "namespaces": {
    "short-term": {
      "maxEntries": 2000,
      "ttlDays": 14,
      "maxContentChars": 200000,
      "maxSummaryChars": 1200
    },
    "long-term": {
      "maxEntries": 20000,
      "ttlDays": 3650,
      "maxContentChars": 500000,
      "maxSummaryChars": 1200
    }
  },
  "retrieval": {
    "topK": 5,
    "minScore": 0.15
  },
  "output": {
    "includeContentByDefault": false,
    "contentPreviewChars": 1200
  }
}"#;

fn with_json(text: &str) -> Result<Config, ConfigError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("memory.json");
    std::fs::write(&path, text).unwrap();
    let flags = Flags {
        config: Some(path),
        ..Flags::default()
    };
    load(Path::new("/"), &flags, &[("HOME", "/home/ann")])
}

#[test]
fn the_documents_own_file_is_taken_as_it_is() {
    let config = with_json(MEMORY_JSON).unwrap();
    assert_eq!(config.store.value, "ram:");
    let notes = config.notes_config();
    let plain = NotesConfig::default();
    let chosen = |max| NamespaceLimits {
        max_entries: MaxEntries::Chosen(Some(max)),
        ..plain.short_term
    };
    assert_eq!(notes.short_term, chosen(2000));
    assert_eq!(
        notes.long_term.max_entries,
        MaxEntries::Chosen(Some(20_000))
    );
    assert_eq!(notes.long_term.max_content_chars, 500_000);
    assert_eq!(config.short_term.ttl_days.value, Some(14));
    assert_eq!(config.long_term.ttl_days.value, Some(3650));
    assert_eq!((notes.top_k, notes.min_score), (5, Some(0.15)));
    assert_eq!((notes.include_content, notes.preview_chars), (false, 1200));
    let line = |origin: &Origin| origin.to_string().rsplit(':').next().unwrap().to_owned();
    assert_eq!(line(&config.long_term.max_entries.origin), "15");
    assert_eq!(line(&config.notes.top_k.origin), "22");

    let jsonl = MEMORY_JSON.replace("inmemory", "jsonl");
    // Where the program was started, not beside the file.
    assert_eq!(
        with_json(&jsonl).unwrap().store.value,
        "jsonl:.taisun/memory"
    );
    let few = r#"{"retrieval":{"topK":3}}"#;
    let short = r#"{"mcp":{"defaultNamespace":"short-term"}}"#;
    let namespace = with_json(short).unwrap().notes.mcp_namespace.value;
    assert_eq!(namespace, mnemon_core::Namespace::ShortTerm);
    assert_eq!(with_json(few).unwrap().notes_config().top_k, 3);
    let mem0 = r#"{"storage":{"defaultBackend":"mem0"}}"#;
    assert!(with_json(mem0).unwrap().notes_config().in_long_term);
}

#[test]
fn mistakes_in_the_documents_own_file_are_named() {
    for (bad, expected) in [
        ("{", "memory.json:1"),
        ("[]", "is not a JSON object"),
        (
            r#"{"storage":{"defaultBackend":"redis"}}"#,
            "inmemory, jsonl, mem0, zep",
        ),
        (
            r#"{"storage":{"defaultBackend":"jsonl"}}"#,
            "storage.directory",
        ),
        (r#"{"retrieval":{"topK":"many"}}"#, "notes.top_k"),
        (r#"{"retrieval":{"topK":[1]}}"#, "retrieval.topK must be"),
    ] {
        let text = with_json(bad).unwrap_err().to_string();
        assert!(text.contains(expected), "{bad}: {text}");
    }
}

/// A setting that would be refused if it counted, for each key that a project may not set.
#[test]
fn a_project_sets_only_what_is_on_the_list() {
    let allowed = [
        "notes.top_k",
        "notes.min_score",
        "notes.recipe",
        "notes.preview_chars",
        "agent_language",
    ];
    let tuned = |name: &str| name.starts_with("window.") || name.starts_with("memory.");
    for key in known_keys() {
        let is_allowed = allowed.contains(&key.name) || tuned(key.name);
        let risk = key.rule.forbids(false);
        assert_eq!(risk.is_none(), is_allowed, "{}", key.name);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mnemon.toml");
        std::fs::write(&path, format!("{} = \"\\u0000 nonsense\"\n", key.name)).unwrap();
        let loaded = load(folder.path(), &Flags::default(), &[("HOME", "/home/ann")]);
        match risk {
            // Refused for its value: it was looked at.
            None => assert!(loaded.is_err(), "{}", key.name),
            Some(why) => {
                let ignored = loaded.unwrap().ignored;
                assert_eq!(ignored.len(), 1, "{}", key.name);
                assert_eq!((ignored[0].key.as_str(), ignored[0].why), (key.name, why));
                assert_eq!((&ignored[0].file, ignored[0].line), (&path, 1));
            }
        }
    }
}

#[test]
fn the_users_own_file_counts_below_the_projects() {
    let home = tempfile::tempdir().unwrap();
    let project = home.path().join("shop");
    std::fs::create_dir(&project).unwrap();
    own_file(
        home.path(),
        "tenant = \"mine\"\n[notes]\ntop_k = 7\nmin_score = 0.5\n[policy.default]\nmax_docs = 4\n",
    );
    let text = "tenant = \"theirs\"\n[notes]\ntop_k = 3\n[policy.default]\nmax_docs = 9\n";
    std::fs::write(project.join("mnemon.toml"), text).unwrap();
    let env = Environment::of(&project, &[("HOME", home.path().to_str().unwrap())]);
    let read = || Config::load(&Flags::default(), &env).unwrap();
    let values = |config: &Config| {
        let tenant = config.tenant.value.to_string();
        let docs = config.policies.policies.of(None, None).max_docs;
        let notes = &config.notes;
        (tenant, docs, notes.top_k.value, notes.min_score.value)
    };
    let config = read();
    assert_eq!(values(&config), ("mine".to_owned(), 4, 3, Some(0.5)));
    let keys: Vec<&str> = config.ignored.iter().map(|one| one.key.as_str()).collect();
    assert_eq!(keys, ["tenant", "policy.default.max_docs"]);
    let notice = ignored_notice(&config.ignored).unwrap();
    assert!(notice.contains("ignored: tenant, policy."), "{notice}");

    let list = TrustList::of(&env).unwrap();
    list.add(&project.join("mnemon.toml"), text).unwrap();
    let config = read();
    assert_eq!(values(&config), ("theirs".to_owned(), 9, 3, Some(0.5)));
    assert!(config.ignored.is_empty());
    let rows = config.rows();
    let docs = rows.iter().find(|row| row.key == "policy.default.max_docs");
    assert!(docs.unwrap().origin.ends_with("shop/mnemon.toml:5"));

    let changed = format!("{text}# more\n");
    std::fs::write(project.join("mnemon.toml"), changed).unwrap();
    let config = read();
    assert_eq!(values(&config), ("mine".to_owned(), 4, 3, Some(0.5)));
    assert!(config.ignored[0].changed_since_trusted);
}

/// What the user's own file and a trusted project's file say about the model, and what the key is.
fn llm_key(
    own: &str,
    theirs: &str,
    vars: &[(&str, &str)],
) -> (String, Result<Option<String>, String>) {
    let home = tempfile::tempdir().unwrap();
    let project = home.path().join("shop");
    std::fs::create_dir(&project).unwrap();
    own_file(home.path(), own);
    std::fs::write(project.join("mnemon.toml"), theirs).unwrap();
    let mut all = vec![("HOME", home.path().to_str().unwrap())];
    all.extend(vars);
    let env = Environment::of(&project, &all);
    let list = TrustList::of(&env).unwrap();
    list.add(&project.join("mnemon.toml"), theirs).unwrap();
    let llm = Config::load(&Flags::default(), &env).unwrap().llm;
    let key = llm.key().map(|key| key.map(|key| key.reveal().to_owned()));
    (llm.url.value, key)
}

#[test]
fn a_key_goes_only_where_it_was_set_to_go() {
    let own =
        "[llm]\nprovider = \"openai\"\nurl = \"https://mine\"\nkey_env = \"OPENAI_API_KEY\"\n";
    let vars = [
        ("OPENAI_API_KEY", "k1"),
        ("AWS_SECRET_ACCESS_KEY", "k2"),
        ("MNEMON_LLM_KEY", "k3"),
        ("MNEMON_EMBEDDER_KEY", "k4"),
        ("MNEMON_WORK_KEY", "k5"),
    ];
    let key = |own: &str, theirs: &str| llm_key(own, theirs, &vars);
    let some = |key: &str| Ok(Some(key.to_owned()));
    assert_eq!(key(own, ""), ("https://mine".to_owned(), some("k1")));
    // An address of the project does not get the key of the user's own file.
    let (url, got) = key(own, "[llm]\nurl = \"https://theirs\"\n");
    assert_eq!((url.as_str(), got), ("https://theirs", some("k3")));
    for (name, expected) in [
        ("MNEMON_WORK_KEY", Some("k5")),
        ("AWS_SECRET_ACCESS_KEY", None),
        ("OPENAI_API_KEY", None),
        ("MNEMON_EMBEDDER_KEY", None),
        ("PATH", None),
    ] {
        let theirs = format!("[llm]\nurl = \"https://theirs\"\nkey_env = \"{name}\"\n");
        let (_, got) = key(own, &theirs);
        match expected {
            Some(expected) => assert_eq!(got, some(expected)),
            None => {
                let said = got.unwrap_err();
                assert!(
                    said.contains(name) && said.contains("llm.allowed_key_env"),
                    "{said}"
                );
            }
        }
        // The project cannot allow it, the user can.
        let theirs = format!("{theirs}allowed_key_env = \"{name}\"\n");
        assert_eq!(key(own, &theirs).1.is_ok(), expected.is_some());
        let allowed = format!("{own}allowed_key_env = \"X, {name}\"\n");
        assert!(key(&allowed, &theirs).1.is_ok());
    }
}

#[test]
fn a_library_is_named_by_the_user_and_never_by_a_project() {
    let home = tempfile::tempdir().unwrap();
    let project = home.path().join("shop");
    std::fs::create_dir(&project).unwrap();
    let theirs = "onnxruntime = \"/theirs.so\"\n";
    std::fs::write(project.join("mnemon.toml"), theirs).unwrap();
    let library = |vars: &[(&str, &str)]| {
        let all = [&[("HOME", home.path().to_str().unwrap())], vars].concat();
        let env = Environment::of(&project, &all);
        let list = TrustList::of(&env).unwrap();
        list.add(&project.join("mnemon.toml"), theirs).unwrap();
        let config = Config::load(&Flags::default(), &env)?;
        let notice = ignored_notice(&config.ignored).unwrap();
        assert!(notice.contains("only your own mnemon.toml"), "{notice}");
        Ok::<_, ConfigError>(config.onnxruntime.value)
    };
    let some = |path: &str| Some(PathBuf::from(path));
    assert_eq!(library(&[]).unwrap(), None);
    let theirs_too = ("ORT_DYLIB_PATH", "/other.so");
    assert_eq!(library(&[theirs_too]).unwrap(), some("/other.so"));
    assert_eq!(
        library(&[("ORT_DYLIB_PATH", "libonnxruntime.so")]).unwrap(),
        None
    );
    let models = home.path().join(".local/share/mnemon/models");
    std::fs::create_dir_all(&models).unwrap();
    std::fs::write(models.join(LIBRARY), "").unwrap();
    assert_eq!(library(&[]).unwrap(), Some(models.join(LIBRARY)));
    let set = |path: &str| library(&[("MNEMON_ONNXRUNTIME", path), theirs_too]);
    assert_eq!(set("/mine.so").unwrap(), some("/mine.so"));
    assert_eq!(set("~/mine.so").unwrap(), Some(home.path().join("mine.so")));
    assert_eq!(set("none").unwrap(), None);
    let error = set("mine.so").unwrap_err().to_string();
    assert!(error.contains("not an absolute path"), "{error}");
    own_file(home.path(), "onnxruntime = \"/own.so\"\n");
    assert_eq!(library(&[theirs_too]).unwrap(), some("/own.so"));
}

#[test]
fn a_database_server_is_never_inside_a_project() {
    let url = "postgres://u\u{3a}PA55@host/memory?pool=4";
    let config = with_file(&format!("store = \"{url}\"")).unwrap();
    assert_eq!(config.store.value, url);
    assert_eq!(config.store_path(), None);
    assert!(!config.store_is_below(&config.cwd));
    assert!(!format!("{:?}", config.rows()).contains("PA55"));
}

#[test]
fn no_password_of_an_address_is_shown() {
    for text in [
        "embedder = \"openai:m@http://u\u{3a}PA55@host/v1\"",
        "embedder = \"openai:m@htp://u\u{3a}PA55@host/v1\"",
        "[llm]\nprovider = \"openai\"\nurl = \"ftp://u\u{3a}PA55@host\"",
    ] {
        let said = with_file(text).unwrap_err().to_string();
        assert!(!said.contains("PA55"), "{said}");
    }
    let config = with_file("store = \"sqlite://u\u{3a}PA55@host/x\"").unwrap();
    assert!(!format!("{:?}", config.rows()).contains("PA55"));
}

#[cfg(unix)]
#[test]
fn links_do_not_lead_out_of_a_project() {
    use std::os::unix::fs::symlink;
    let home = tempfile::tempdir().unwrap();
    let (clone, data) = (home.path().join("clone"), home.path().join("data"));
    std::fs::create_dir(&clone).unwrap();
    std::fs::create_dir(&data).unwrap();
    std::fs::write(data.join("mnemon.db"), "").unwrap();
    std::fs::write(data.join("mnemon.toml"), "secret = 1\n").unwrap();
    let vars = [("HOME", home.path().to_str().unwrap())];
    let read = || load(&clone, &Flags::default(), &vars).unwrap();
    let own = |config: &Config| {
        config
            .store
            .value
            .ends_with(".local/share/mnemon/mnemon.db")
    };

    symlink(&data, clone.join(".mnemon")).unwrap();
    let config = read();
    assert!(own(&config), "{:?}", config.store);
    assert!(config.notices[0].contains("leads out of the project"));
    std::fs::remove_file(clone.join(".mnemon")).unwrap();

    std::fs::create_dir(clone.join(".mnemon")).unwrap();
    for (name, target) in [
        ("mnemon.db", data.join("mnemon.db")),
        ("mnemon.db", data.join("not-yet.db")),
        ("mnemon.db-wal", data.join("mnemon.db")),
    ] {
        symlink(&target, clone.join(".mnemon").join(name)).unwrap();
        let config = read();
        assert!(own(&config) && config.notices.len() == 1, "{name}");
        std::fs::remove_file(clone.join(".mnemon").join(name)).unwrap();
    }
    // One that stays inside is the project's own business.
    std::fs::write(clone.join("here.db"), "").unwrap();
    symlink(clone.join("here.db"), clone.join(".mnemon/mnemon.db")).unwrap();
    assert!(read().store.value.ends_with("clone/.mnemon/mnemon.db"));

    symlink(data.join("mnemon.toml"), clone.join("mnemon.toml")).unwrap();
    let config = read();
    assert!(config.files.is_empty());
    assert!(config.notices[0].contains("mnemon.toml is not read"));
}

#[test]
fn each_system_has_its_own_folders_and_old_ones_stay_in_use() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    let data = |platform: Platform, vars: &[(&str, &str)]| {
        let name = home.to_str().unwrap();
        let vars = [&[("HOME", name)], vars].concat();
        let env = Environment::of(folder.path(), &vars).on(platform);
        let store = Config::load(&Flags::default(), &env).unwrap().store.value;
        let store = store.strip_prefix("sqlite:").unwrap().to_owned();
        let below = Path::new(&store).strip_prefix(folder.path()).unwrap();
        below.parent().unwrap().to_str().unwrap().to_owned()
    };
    let local = folder.path().join("local");
    let roaming = folder.path().join("roaming");
    let local = ("LOCALAPPDATA", local.to_str().unwrap());
    let roaming = ("APPDATA", roaming.to_str().unwrap());
    let xdg = folder.path().join("xdg");
    let xdg = ("XDG_DATA_HOME", xdg.to_str().unwrap());
    let old = "home/.local/share/mnemon";
    assert_eq!(data(Platform::Xdg, &[local, roaming]), old);
    let library = "home/Library/Application Support/mnemon";
    assert_eq!(data(Platform::MacOs, &[local]), library);
    assert_eq!(data(Platform::Windows, &[local, roaming]), "local/mnemon");
    assert_eq!(data(Platform::Windows, &[roaming]), "roaming/mnemon");
    assert_eq!(data(Platform::Windows, &[]), old);
    assert_eq!(data(Platform::MacOs, &[xdg]), "xdg/mnemon");
    std::fs::create_dir_all(home.join(".local/share/mnemon")).unwrap();
    for platform in [Platform::Xdg, Platform::MacOs, Platform::Windows] {
        assert_eq!(data(platform, &[local]), old);
    }
}
