use std::path::Path;

use super::super::{Config, ConfigError, Environment, Flags};
use super::*;

const KEY: &str = "MNEMON_WIKI_KEY";

/// The user's own file says this.
fn with_file(text: &str) -> Result<Config, ConfigError> {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join(".config/mnemon");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("mnemon.toml"), text).unwrap();
    let vars = [("HOME", home.path().to_str().unwrap()), (KEY, "k-7")];
    let env = Environment::of(Path::new("/nowhere"), &vars);
    Config::load(&Flags::default(), &env)
}

#[test]
fn external_sources_are_read_with_their_defaults() {
    let config = with_file(
        "[long_term]\nurl = \"mem0+https://api.mem0.ai\"\ntimeout_s = 3\n\
         [external.wiki]\nurl = \"kb+https://wiki.example/find\"\nkey_env = \"MNEMON_WIKI_KEY\"\n\
         tenants = \"*\"\nscope = \"procedural\"\ntext = \"body.text\"\n\
         [external.docs]\nurl = \"opensearch+https://search.example/docs\"\n",
    )
    .unwrap();
    let long_term = &config.remotes.long_term;
    assert_eq!(
        long_term.url.value.as_deref(),
        Some("mem0+https://api.mem0.ai")
    );
    assert_eq!(long_term.timeout_s.value, 3);
    let find = |name: &str| {
        let mut sources = config.remotes.external.iter();
        sources.find(|source| source.name == name).unwrap()
    };
    let (wiki, docs) = (find("wiki"), find("docs"));
    assert_eq!(wiki.key.as_ref().map(Secret::reveal), Some("k-7"));
    assert_eq!(
        (wiki.tenants.as_ref(), wiki.text.as_str()),
        (None, "body.text")
    );
    assert_eq!(docs.tenants, Some(vec![Tenant::default()]));
    assert_eq!((docs.limit, docs.timeout_ms), (10, 1_500));
    assert_eq!(
        (docs.scope, wiki.scope),
        (Scope::Semantic, Scope::Procedural)
    );
    assert!(docs.key.is_none());
    assert_eq!(config.notices, Vec::<String>::new());
}

#[test]
fn wrong_settings_of_external_sources_are_refused() {
    let url = "url = \"kb+https://h\"\n";
    for (text, expected) in [
        ("[long_term]\nurl = \"https://h\"\n", "begin with a service"),
        ("[external.w]\ntext = \"t\"\n", "has no `url`"),
        (
            &format!("[external.w]\n{url}limit = 51\n"),
            "between 1 and 50",
        ),
        (&format!("[external.w]\n{url}txt = \"t\"\n"), "text"),
        (
            &format!("[external.w]\n{url}text = \"a b\"\n"),
            "not the name of a field",
        ),
        (
            &format!("[external.w]\n{url}key_env = \"MNEMON_LLM_KEY\"\n"),
            "one for this source alone",
        ),
        (
            &format!("[external.w]\n{url}scope = \"dialog\"\n"),
            "`procedural` for skills",
        ),
        (
            &format!("[external.w]\n{url}key_env = \"PATH\"\n"),
            "one for this source alone",
        ),
    ] {
        let error = with_file(text).unwrap_err().to_string();
        assert!(error.contains(expected), "{text}: {error}");
    }
    let many: String = (0..=MOST_SOURCES)
        .map(|n| format!("[external.w{n}]\n{url}"))
        .collect();
    let error = with_file(&many).unwrap_err().to_string();
    assert!(error.contains("more than 8 external sources"), "{error}");
}

#[test]
fn a_project_that_is_not_trusted_names_no_external_source() {
    let project = tempfile::tempdir().unwrap();
    let text = "[external.wiki]\nurl = \"kb+https://wiki.example\"\n";
    std::fs::write(project.path().join("mnemon.toml"), text).unwrap();
    let env = Environment::of(project.path(), &[("HOME", "/home/ann")]);
    let config = Config::load(&Flags::default(), &env).unwrap();
    assert!(config.remotes.external.is_empty());
    assert_eq!(config.ignored[0].key, "external.wiki.url");
}
