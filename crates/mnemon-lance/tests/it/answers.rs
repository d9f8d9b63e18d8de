//! Filters whose values try to be more than values, and arms that find what they should.

use mnemon_core::embed::Embedder;
use mnemon_core::{
    Batch, Embedding, Filter, Id, Op, Owner, Probe, SearchIndex, Store, Viewer, limits,
};
use mnemon_testkit::fakes::HashEmbedder;
use mnemon_testkit::index_operations::{ids_of, put, words};
use mnemon_testkit::make::{Remade, at, grant, id, note};

use crate::Indexed;

/// A probe for what this text means.
pub(crate) async fn near(text: &str) -> Probe {
    near_by(&HashEmbedder::default(), text).await
}

async fn near_by(embedder: &HashEmbedder, text: &str) -> Probe {
    let vector = embedder.embed(&[text]).await.unwrap().remove(0).unwrap();
    let model = embedder.model().clone();
    Probe {
        vectors: vec![Embedding { model, vector }],
        ..Probe::new(Filter::all_of_tenant(), limits::PAGE)
    }
}

/// Names that would mean more than themselves in an expression that does not escape them.
const INJECTIONS: [&str; 6] = [
    "x' OR tenant <> '",
    r"x\' OR 1 = 1 --",
    r"x\",
    "x'') OR (1 = 1",
    "x', 'ann",
    "`owner_user` OR true /*",
];

fn owned_by(user: &str) -> Filter {
    Filter {
        owner: Owner {
            user: Some(user.to_owned()),
            ..Owner::default()
        },
        ..Filter::seen_by(Viewer::user(user))
    }
}

#[tokio::test]
async fn names_in_filters_are_only_names() {
    let indexed = Indexed::new();
    let index = indexed.index();
    let g = grant(at(0));
    let users: Vec<&str> = INJECTIONS.into_iter().chain(["ann"]).collect();
    for (number, user) in users.iter().enumerate() {
        let mut record = note(&format!("n{number}")).saying("green tea");
        record.owner.user = Some((*user).to_owned());
        record.tags = vec![(*user).to_owned()];
        let put = indexed.store.apply(&g, Batch::of(Op::put(record))).await;
        put.unwrap();
    }
    let find = async |filter: Filter| {
        let probe = Probe {
            filter,
            ..words("tea")
        };
        let found = ids_of(index.find(&g, &probe).await.unwrap());
        found.into_iter().collect::<Vec<Id>>()
    };
    for (number, user) in users.iter().enumerate() {
        let own = [id(&format!("n{number}"))];
        assert_eq!(find(owned_by(user)).await, own, "{user}");
        let tagged = Filter {
            tags: vec![(*user).to_owned()],
            ..Filter::all_of_tenant()
        };
        assert_eq!(find(tagged).await, own, "{user}");
        let stranger = format!("{user} ");
        assert_eq!(find(owned_by(&stranger)).await, Vec::<Id>::new());
    }
    let all = Filter::all_of_tenant();
    let speakers = index.speakers(&g, &all, &INJECTIONS).await.unwrap();
    assert_eq!(speakers, Vec::<String>::new());
}

#[tokio::test]
async fn a_version_without_a_vector_replaces_one_with_it() {
    let indexed = Indexed::new();
    let index = indexed.index();
    let g = grant(at(0));
    put(&*indexed.store, "a", "green tea").await;
    let tea = near("green tea").await;
    let found = async || index.find(&g, &tea).await.unwrap().matches.len();
    assert_eq!(found().await, 1);
    let record = note("a").saying("green tea leaves");
    let batch = Batch::of(Op::put(record));
    indexed.store.apply(&g, batch).await.unwrap();
    assert_eq!(found().await, 0);
    assert_eq!(crate::found(&index, "leaves").await.unwrap(), 1);
}

#[tokio::test]
async fn vectors_of_models_with_other_dimensions_are_found_by_their_own_model() {
    let indexed = Indexed::new();
    let (index, g) = (indexed.index(), grant(at(0)));
    put(&*indexed.store, "old", "green tea").await;
    let wider = HashEmbedder::new(128);
    let tea = near_by(&wider, "green tea").await;
    let mut batch = Batch::of(Op::put(note("new").saying("green tea")));
    batch.vectors = vec![(id("new"), tea.vectors[0].clone())];
    indexed.store.apply(&g, batch).await.unwrap();
    let found = async |probe: &Probe| {
        let found = ids_of(index.find(&g, probe).await.unwrap());
        found.into_iter().collect::<Vec<Id>>()
    };
    assert_eq!(found(&near("green tea").await).await, [id("old")]);
    assert_eq!(found(&tea).await, [id("new")]);
    let mut both = near("green tea").await;
    both.vectors.extend(tea.vectors.clone());
    assert_eq!(found(&both).await, [id("new"), id("old")]);
    let unknown = near_by(&HashEmbedder::new(32), "green tea").await;
    assert_eq!(found(&unknown).await, Vec::<Id>::new());
}

#[tokio::test]
async fn vectors_of_too_many_models_are_refused_with_what_to_do() {
    let indexed = Indexed::new();
    let g = grant(at(0));
    for number in 0..33 {
        let name = format!("n{number}");
        let model = HashEmbedder::named(&format!("model {number}"), 8);
        let tea = near_by(&model, "green tea").await;
        let mut batch = Batch::of(Op::put(note(&name).saying("green tea")));
        batch.vectors = vec![(id(&name), tea.vectors[0].clone())];
        indexed.store.apply(&g, batch).await.unwrap();
    }
    let error = crate::found(&indexed.index(), "tea").await.unwrap_err();
    let error = error.to_string();
    assert!(error.contains("vectors of 33 models"), "{error}");
    assert!(error.contains("mnemon reembed"), "{error}");
}
