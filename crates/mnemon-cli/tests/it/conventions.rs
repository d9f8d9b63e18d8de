//! What command lines have in common: colours, quiet and verbose, aliases, manual pages.

use crate::sandbox::Sandbox;

#[test]
fn colours_are_used_as_asked() {
    let sandbox = Sandbox::new();
    sandbox.note("a1", "Ann prefers tea");
    let red = "\u{1b}[31m";
    for (flags, has_colour) in [
        (&[][..], false),
        (&["--color", "auto"], false),
        (&["--color=always"], true),
        (&["--color", "never"], false),
    ] {
        let ran = sandbox.run(&[flags, &["get", "nobody"]].concat());
        assert_eq!(ran.err.contains(red), has_colour, "{flags:?}: {}", ran.err);
        // The parser's own errors, too.
        let ran = sandbox.run(&[&["lsit"], flags].concat());
        assert_eq!(
            ran.err.contains('\u{1b}'),
            has_colour,
            "{flags:?}: {}",
            ran.err
        );
    }
    let (code, error) = sandbox.run(&["list", "--color", "blue"]).failed();
    assert!(code == 2 && error.contains("always"), "{error}");
}

#[test]
fn quiet_leaves_errors_and_verbose_says_more() {
    let sandbox = Sandbox::new().with("MNEMON_STROE", "x");
    let noted = sandbox.run(&["list"]);
    assert!(noted.err.contains("MNEMON_STROE"), "{}", noted.err);
    for flag in ["-q", "--quiet"] {
        let ran = sandbox.run(&["list", flag]);
        assert_eq!((ran.code, ran.err.as_str()), (0, ""));
        let ran = sandbox.run(&[flag, "get", "nobody"]);
        assert!(
            ran.err.starts_with("error: there is no record nobody"),
            "{}",
            ran.err
        );
    }
    let told = sandbox
        .run(&["-q", "agent", "new", "a", "--description", "x"])
        .ok();
    assert!(told.contains("created "), "{told}");
    for flag in ["-v", "--verbose"] {
        let ran = sandbox.run(&["list", flag]);
        let last = ran.err.lines().last().unwrap();
        assert!(
            last.starts_with("note: sqlite:") && last.ends_with(" ms"),
            "{last}"
        );
        assert!(
            last.contains("(tenant default), no configuration file"),
            "{last}"
        );
    }
    let (code, _) = sandbox.run(&["list", "-q", "-v"]).failed();
    assert_eq!(code, 2);
}

#[test]
fn commands_have_the_names_that_people_try_first() {
    let sandbox = Sandbox::new();
    sandbox
        .run(&["remember", "Ann prefers tea", "--id", "a1"])
        .ok();
    assert_eq!(sandbox.run(&["ls"]).ok(), sandbox.run(&["list"]).ok());
    assert!(
        sandbox
            .run(&["show", "a1"])
            .ok()
            .contains("Ann prefers tea")
    );
    assert!(
        sandbox
            .run(&["find", "tea"])
            .ok()
            .contains("Ann prefers tea")
    );
    sandbox.run(&["rm", "a1"]).ok();
    assert_eq!(sandbox.run(&["show", "a1"]).failed().0, 3);
    sandbox.run(&["undo"]).ok();
    sandbox.run(&["delete", "a1"]).ok();
    let help = sandbox.run(&["--help"]).ok();
    for alias in ["[alias: ls]", "[alias: show]", "[aliases: rm, delete]"] {
        assert!(help.contains(alias), "{alias}: {help}");
    }
}

#[test]
fn manual_pages_are_written() {
    let sandbox = Sandbox::new();
    let said = sandbox.run(&["man", "share/man1"]).ok();
    assert!(
        said.starts_with("wrote ") && said.ends_with(" pages to share/man1\n"),
        "{said}"
    );
    let page = std::fs::read_to_string(sandbox.path("share/man1/mnemon-team-new.1")).unwrap();
    assert!(
        page.contains("mnemon\\-team\\-new \\- Create a team"),
        "{page}"
    );
    assert!(page.contains("\\-\\-lead <MEMBER>"), "{page}");
    assert!(!sandbox.path("share/man1/mnemon-help.1").exists());
}

#[cfg(unix)]
#[test]
fn a_pipe_as_a_store_is_an_error() {
    let sandbox = Sandbox::new();
    let path = sandbox.path("pipe");
    let made = std::process::Command::new("mkfifo").arg(&path).status();
    assert!(made.unwrap().success());
    for command in [&["list"][..], &["doctor"], &["add", "x"]] {
        let (code, error) = sandbox
            .run(&[command, &["--store", "sqlite:pipe"]].concat())
            .failed();
        assert!(code == 11 || code == 9, "{command:?}: {code} {error}");
    }
}

#[test]
fn an_error_names_the_option_and_what_is_allowed() {
    let sandbox = Sandbox::new();
    sandbox.note("a1", "Ann prefers tea");
    for (command, said) in [
        (
            &["list", "--limit", "0"][..],
            "--limit: is 0; from 1 to 1000",
        ),
        (
            &["list", "--limit", "many"],
            "--limit: `many` is not a whole",
        ),
        (&["list", "--kind", "tale"], "--kind"),
        (
            &["list", "--since", "noon"],
            "--since: `noon` is not a time",
        ),
        (&["list", "--filter", "{"], "--filter"),
        (&["history", "--before", "0"], "--before: is 0"),
        (&["forget"], "ids: are missing"),
        (
            &["forget", "a1", "--session", "s1"],
            "ids: are given together",
        ),
        (&["forget", "--since", "noon"], "--since: `noon`"),
        (&["export", "--until", "noon"], "--until: `noon`"),
        (&["chat", "query", "tea", "--limit", "0"], "--limit: is 0"),
        (
            &["chat", "append", "s1", "--message", "{}", "--jsonl", "-"],
            "--message: is given together with --jsonl; use one of the two",
        ),
        (
            &["chat", "append", "s1", "--message", "{}", "--role", "user"],
            "--role: is given together with --message",
        ),
        (
            &["chat", "append", "s1", "--line", "{}"],
            "--line: needs --files",
        ),
        (&["chat", "append", "s1", " "], "content: is empty"),
    ] {
        let (code, error) = sandbox.run(command).failed();
        assert_eq!(code, 2, "{command:?}: {error}");
        assert!(error.contains(said), "{command:?}: {error}");
    }
    let listed = sandbox.run(&["list", "--kind", "notes"]).ok();
    assert!(listed.contains("Ann prefers tea"), "{listed}");
}

#[test]
fn notes_and_conversations_have_the_same_aliases() {
    let sandbox = Sandbox::new();
    sandbox.note("a1", "Ann prefers tea");
    sandbox.run(&["chat", "append", "s1", "Hello"]).ok();
    for group in ["note", "chat"] {
        let ls = sandbox.run(&[group, "ls"]).ok();
        assert_eq!(ls, sandbox.run(&[group, "list"]).ok());
    }
    assert!(sandbox.run(&["note", "show", "a1"]).ok().contains("tea"));
    sandbox.run(&["note", "rm", "a1"]).ok();
    sandbox.run(&["chat", "rm", "s1"]).ok();
    assert_eq!(sandbox.run(&["list"]).ok(), "nothing\n");
}

#[test]
fn a_message_may_begin_with_a_dash() {
    let sandbox = Sandbox::new();
    let append = ["chat", "append", "s1", "- buy milk", "--role", "assistant"];
    sandbox.run(&append).ok();
    sandbox.run(&["chat", "append", "s1", "two", "words"]).ok();
    sandbox.run(&["chat", "append", "s1", "--", "-dash"]).ok();
    let said = sandbox.run(&["chat", "tail", "s1"]).ok();
    assert_eq!(
        said,
        "assistant: - buy milk\nuser: two words\nuser: -dash\n"
    );
    let (code, error) = sandbox.run(&["chat", "append", "s1", "-dash"]).failed();
    assert_eq!(code, 2);
    assert!(error.contains("write `--` before text"), "{error}");
}

#[test]
fn help_names_the_default_of_a_search() {
    let help = Sandbox::new().run(&["search", "--help"]).ok();
    assert!(
        help.contains("Maximum number of hits, from 1 to 1000 [default: 10]"),
        "{help}"
    );
}

#[test]
fn a_hint_that_was_followed_is_not_repeated() {
    let sandbox = Sandbox::new();
    let hint = "--min-score 0";
    for search in [&["search", "tea"][..], &["note", "search", "tea"]] {
        assert!(sandbox.run(search).ok().contains(hint));
        let followed = [search, &["--min-score", "0"]].concat();
        assert_eq!(sandbox.run(&followed).ok(), "nothing known\n");
    }
    assert_eq!(
        sandbox.run(&["search", "--recipe", "recent"]).ok(),
        "nothing known\n"
    );
}
