//! The fakes keep the contracts of the ports they stand for.

use mnemon_core::embed::Embedder;
use mnemon_core::llm::{Account, Llm, LlmError, Prompt};
use mnemon_core::longterm::LongTerm;
use mnemon_core::{Ctx, ErrorKind, Message, Owner, Role};
use mnemon_testkit::block_on;
use mnemon_testkit::fakes::{FilesInRam, HashEmbedder, KeptTalk, Scripted};
use mnemon_testkit::make::{at, ctx};
use mnemon_testkit::ports::{check_files, check_log};

#[test]
fn files_in_memory_keep_the_contract() {
    block_on(check_files(&FilesInRam::default()));
    block_on(check_log(&FilesInRam::default()));
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
        account: Account::default(),
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
