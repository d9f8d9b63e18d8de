//! Indexes of several servers that follow one database.

use mnemon_core::{Backend, Batch, Op, Store};
use mnemon_testkit::make::{Remade, at, id, note};
use proptest::collection::vec;
use proptest::prelude::*;

use super::Database;
use crate::following::{Step, embed, embedding, grant, step};
use crate::kit::{open_backend, rounds, wait};
use crate::search::{WORDS, assert_alike, probe, shown_by};

/// Two servers on one database, beside the reference.
struct Servers {
    ram: Backend,
    servers: [Backend; 2],
    url: String,
    now: i64,
}

impl Servers {
    fn new(url: &str) -> Self {
        Self {
            ram: std::sync::Arc::new(mnemon_core::ram::Ram::new()).into(),
            servers: [open_backend(url), open_backend(url)],
            url: url.to_owned(),
            now: 0,
        }
    }

    fn writers(&self, second: bool) -> [&dyn Store; 2] {
        [&self.ram, &self.servers[usize::from(second)]].map(|backend| backend.store.as_ref())
    }

    fn apply(&self, second: bool, op: &Op, with_vector: bool) {
        for store in self.writers(second) {
            let mut batch = Batch::of(op.clone());
            if let Op::Put { record, .. } = op
                && with_vector
                && let Some(made) = embedding(0, &record.content)
            {
                batch.vectors = vec![(record.id.clone(), made)];
            }
            wait(store.apply(&grant(self.now), batch)).unwrap();
        }
    }

    fn run(&mut self, step: &Step, second: bool) {
        let name = |number: usize| id(&format!("n{number}"));
        match step {
            Step::Put {
                id,
                words,
                session,
                lives,
                with_vector,
            } => {
                let said: Vec<&str> = words.iter().map(|word| WORDS[*word]).collect();
                let mut record = note(name(*id).as_str()).saying(&said.join(" "));
                record.owner.session = session.map(|one| format!("s{one}"));
                record.expires = lives.map(|lives| at(self.now + lives));
                self.apply(second, &Op::put(record), *with_vector);
            }
            Step::Delete(id) => self.apply(second, &Op::delete(name(*id)), false),
            Step::Purge(id) => self.apply(second, &Op::Purge { id: name(*id) }, false),
            Step::Pass(ms) => self.now += ms,
            Step::Upkeep(most) => {
                for store in self.writers(second) {
                    wait(store.upkeep(&grant(self.now), *most)).unwrap();
                }
            }
            Step::Embed { model, most } => {
                let [ram, database] = self.writers(second);
                let grant = grant(self.now);
                let lacking = embed(ram, &grant, *model, *most);
                assert_eq!(embed(database, &grant, *model, *most), lacking);
            }
            Step::Look([first, other, ..]) => self.look([*first, *other]),
        }
    }

    /// A server that followed answers as one that was started just now, and as the reference.
    fn look(&self, which: [bool; 2]) {
        let fresh = open_backend(&self.url);
        let grant = grant(self.now);
        for (server, _) in self.servers.iter().zip(which).filter(|(_, yes)| *yes) {
            for query in [WORDS[0], WORDS[2]] {
                let mut probe = probe(query);
                probe.vectors = (0..2)
                    .filter_map(|number| embedding(number, query))
                    .collect();
                let expected = shown_by(&self.ram, &grant, &probe);
                for backend in [server, &fresh] {
                    let what = format!("{query}, at {}", self.now);
                    assert_alike(&shown_by(backend, &grant, &probe), &expected, &what);
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(rounds(100, 12)))]

    #[test]
    fn an_index_that_followed_answers_as_a_fresh_one(steps in vec(step(), 1..40)) {
        if let Some(database) = Database::fresh() {
            let mut servers = Servers::new(&database.url());
            for (step, second) in &steps {
                servers.run(step, *second);
            }
            servers.look([true; 2]);
        }
    }
}
