//! The fakes keep the contracts of the ports they stand for.

use mnemon_core::embed::Embedder;
use mnemon_core::files::{Files, FilesError};
use mnemon_core::llm::{Llm, LlmError, Prompt};
use mnemon_core::longterm::LongTerm;
use mnemon_core::{Ctx, ErrorKind, Message, Owner, Role};
use mnemon_testkit::block_on;
use mnemon_testkit::fakes::{FilesInRam, HashEmbedder, KeptTalk, Scripted};
use mnemon_testkit::make::{at, ctx};

#[test]
fn a_file_is_replaced_only_if_unchanged() {
    block_on(async {
        let files = FilesInRam::default();
        assert_eq!(files.read("a/b.md").await.unwrap(), None);
        let first = files.write("a/b.md", b"one", None).await.unwrap();
        let again = files.write("a/b.md", b"two", None).await.unwrap_err();
        assert!(matches!(again, FilesError::Conflict { .. }));
        let second = files.write("a/b.md", b"two", Some(&first)).await.unwrap();
        let stale = files.write("a/b.md", b"three", Some(&first)).await;
        assert_eq!(stale.unwrap_err().kind(), ErrorKind::Conflict);
        let gone = files.write("a/c.md", b"x", Some(&first)).await;
        assert_eq!(gone.unwrap_err().kind(), ErrorKind::Conflict);
        let file = files.read("a/b.md").await.unwrap().unwrap();
        assert_eq!((file.bytes.as_slice(), file.stamp), (&b"two"[..], second));
    });
}

#[test]
fn files_are_listed_watched_and_kept_inside() {
    block_on(async {
        let files = FilesInRam::default();
        for path in ["b.md", "a/z.md", "a/b/c.md", "ab/d.md"] {
            files.write(path, b"x", None).await.unwrap();
        }
        let paths = |listed: &[mnemon_core::files::Listed]| -> Vec<String> {
            listed.iter().map(|file| file.path.clone()).collect()
        };
        let known = files.list("a").await.unwrap();
        assert_eq!(paths(&known), ["a/b/c.md", "a/z.md"]);
        assert_eq!(files.list("").await.unwrap().len(), 4);
        assert!(files.list("none").await.unwrap().is_empty());
        assert!(files.changed("a", &known).await.unwrap().is_empty());
        let stamp = files.read("a/z.md").await.unwrap().unwrap().stamp;
        files.write("a/z.md", b"x", Some(&stamp)).await.unwrap();
        files.write("a/new.md", b"x", None).await.unwrap();
        let changed = files.changed("a", &known).await.unwrap();
        assert_eq!(changed, ["a/new.md", "a/z.md"]);
        for path in ["../x", "/x", "a/../../x", "", "a//b", "a\\b"] {
            let error = files.write(path, b"x", None).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid, "{path}");
        }
    });
}

#[test]
fn texts_with_words_in_common_lie_near() {
    block_on(async {
        let embedder = HashEmbedder::default();
        let texts = [
            "Ann drinks green tea",
            "ann drinks tea",
            "the build is red",
            " ",
        ];
        let vectors = embedder.embed(&texts).await.unwrap();
        assert_eq!(vectors, embedder.embed(&texts).await.unwrap());
        let [Some(a), Some(b), Some(c), None] = vectors.as_slice() else {
            panic!("{vectors:?}");
        };
        let near = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
        assert!((near(a, a) - 1.0).abs() < 1e-6, "a unit vector");
        assert_eq!(a.len(), embedder.model().dimension);
        assert!(near(a, b) > 0.5 && near(a, b) > near(a, c));
    });
}

fn prompt(text: &str) -> Prompt {
    Prompt {
        system: None,
        messages: vec![Message::text("m", Role::User, text)],
        max_tokens: 10,
        schema: None,
    }
}

#[test]
fn a_scripted_model_answers_fails_and_remembers() {
    block_on(async {
        let llm = Scripted::answering(&["a short answer", " "]);
        llm.then(Err(LlmError::Refused {
            model: "scripted".into(),
            what: "no".into(),
        }));
        let answer = llm.complete(&prompt("one two")).await.unwrap();
        assert_eq!(answer.text, "a short answer");
        assert_eq!((answer.input_tokens, answer.output_tokens), (2, 3));
        let empty = llm.complete(&prompt("")).await.unwrap_err();
        assert!(matches!(empty, LlmError::BadAnswer { .. }));
        let refused = llm.complete(&prompt("")).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Denied);
        let end = llm.complete(&prompt("last")).await.unwrap_err();
        assert_eq!(end.kind(), ErrorKind::Unavailable);
        assert_eq!(llm.asked().len(), 4);
        assert_eq!(llm.asked()[0], prompt("one two"));
    });
}

#[test]
fn kept_talk_tells_what_bears_on_the_message() {
    block_on(async {
        let memory = KeptTalk::default();
        let ann = Owner {
            user: Some("ann".into()),
            ..Owner::default()
        };
        let say = |text: &str| Message::text("m", Role::User, text);
        let here = ctx(at(0));
        let talk = [say("I like green tea."), say(" "), say("The car is blue.")];
        memory.record(&here, &ann, &talk).await.unwrap();
        let about = say("What tea do I drink?");
        let told = memory.retrieve(&here, &ann, &about).await.unwrap();
        assert_eq!(told, "I like green tea.");
        let nothing = memory.retrieve(&here, &ann, &say("Hm")).await.unwrap();
        assert_eq!(nothing, "");
        let bob = memory.retrieve(&here, &Owner::default(), &about).await;
        assert_eq!(bob.unwrap(), "");
        let elsewhere = Ctx::new("other".parse().unwrap(), "test", at(0));
        let told = memory.retrieve(&elsewhere, &ann, &about).await.unwrap();
        assert_eq!(told, "");
    });
}
