//! Several servers on one database: jobs that one of them does, and how they hear of each other.

use std::sync::mpsc;
use std::time::Duration;

use mnemon_core::{Batch, Claim, Claimed, Ctx, Grant, Op, Policy, Right, Store, Tenant};
use tokio_postgres::AsyncMessage;

use super::{database, note, rows};
use crate::kit::{ctx, grant, open, wait};

/// Long enough for the slowest machine: waiting ends as soon as something happens.
const PATIENCE: Duration = Duration::from_secs(60);
const LONG: Duration = Duration::from_secs(3600);

fn claim(store: &dyn Store, grant: &Grant, holder: &str, lasts: Duration) -> Claimed {
    let claim = Claim {
        job: "upkeep",
        holder,
        lasts,
    };
    wait(store.claim(grant, &claim)).unwrap()
}

fn grant_of(tenant: &str) -> Grant {
    let ctx = Ctx {
        tenant: tenant.parse().unwrap(),
        ..ctx()
    };
    Policy::default().check(&ctx, Right::Write).unwrap()
}

#[test]
fn a_job_belongs_to_one_server_until_its_claim_ends() {
    let database = database!();
    let (one, two) = (open(&database.url()), open(&database.url()));
    let (one, two) = (one.as_ref(), two.as_ref());
    assert_eq!(claim(one, &grant(), "one", LONG), Claimed::Ours);
    assert_eq!(claim(one, &grant(), "one", LONG), Claimed::Ours, "extended");
    assert_eq!(claim(two, &grant(), "two", LONG), Claimed::Others);
    // A server whose clock is years ahead does not end the claim.
    let mut ahead = ctx();
    ahead.now = ahead.now.plus_millis(100_000_000_000);
    let ahead = Policy::default().check(&ahead, Right::Write).unwrap();
    assert_eq!(claim(two, &ahead, "two", LONG), Claimed::Others);
    // Other tenants and jobs are claimed apart.
    assert_eq!(claim(two, &grant_of("b"), "two", LONG), Claimed::Ours);
    let webhooks = Claim {
        job: "webhooks",
        holder: "two",
        lasts: LONG,
    };
    assert_eq!(wait(two.claim(&grant(), &webhooks)).unwrap(), Claimed::Ours);
    // Given back, it is free at once.
    claim(one, &grant(), "one", Duration::ZERO);
    let short = Duration::from_millis(50);
    assert_eq!(claim(two, &grant(), "two", short), Claimed::Ours);
    // The other server is gone: its claim ends by itself.
    while claim(one, &grant(), "one", LONG) == Claimed::Others {}
    assert_eq!(claim(two, &grant(), "two", LONG), Claimed::Others);
    let reader = Policy::default().check(&ctx(), Right::Read).unwrap();
    let refused = wait(two.claim(&reader, &webhooks)).unwrap_err();
    assert_eq!(refused.kind(), mnemon_core::ErrorKind::Denied);
}

#[test]
fn servers_that_claim_a_job_together_get_it_once() {
    let database = database!();
    let servers: Vec<_> = (0..4).map(|_| open(&database.url())).collect();
    for round in 0..20 {
        let tenant = grant_of(&format!("t{round}"));
        for lasts in [Duration::ZERO, LONG] {
            let won = std::thread::scope(|scope| {
                let claims: Vec<_> = servers
                    .iter()
                    .enumerate()
                    .map(|(number, store)| {
                        let tenant = &tenant;
                        let holder = format!("server {number}");
                        scope.spawn(move || claim(store.as_ref(), tenant, &holder, lasts))
                    })
                    .collect();
                let claims = claims.into_iter().map(|claim| claim.join().unwrap());
                claims.filter(|claimed| *claimed == Claimed::Ours).count()
            });
            // Claims that last no time follow each other.
            assert!(won == 1 || (won > 0 && lasts.is_zero()), "{round}: {won}");
        }
    }
}

/// A server that listens, and the tenants that it hears of.
fn listening(url: &str) -> (std::sync::Arc<dyn Store>, mpsc::Receiver<Option<Tenant>>) {
    let store = open(url);
    assert!(!store.hears_others(), "it has not been asked to");
    let (sender, heard) = mpsc::channel();
    store.listen(Box::new(move |tenant| {
        let _ = sender.send(tenant.cloned());
    }));
    assert_eq!(heard.recv_timeout(PATIENCE).unwrap(), None);
    assert!(store.hears_others());
    (store, heard)
}

fn put(store: &dyn Store, grant: &Grant) {
    let mut record = note("tea");
    record.tenant = grant.tenant().clone();
    wait(store.apply(grant, Batch::of(Op::append(record)))).unwrap();
}

#[test]
fn a_server_hears_of_commits_of_others_and_not_of_its_own() {
    let database = database!();
    let (listener, heard) = listening(&database.url());
    let writer = open(&database.url());
    put(listener.as_ref(), &grant_of("own"));
    put(writer.as_ref(), &grant_of("theirs"));
    let theirs = Some("theirs".parse().unwrap());
    assert_eq!(heard.recv_timeout(PATIENCE).unwrap(), theirs);
    // A command that ends with its write is heard, too.
    put(open(&database.url()).as_ref(), &grant_of("a-command"));
    let command = Some("a-command".parse().unwrap());
    assert_eq!(heard.recv_timeout(PATIENCE).unwrap(), command);
    assert!(heard.try_recv().is_err());
}

#[test]
fn a_server_whose_listening_connection_was_cut_looks_again() {
    let database = database!();
    let (listener, heard) = listening(&database.url());
    let writer = open(&database.url());
    database.run(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
         WHERE datname = current_database() AND pid <> pg_backend_pid()",
    );
    // It may be too late to hear of this one, but not to find it by its number.
    put(writer.as_ref(), &grant_of("t"));
    while heard.recv_timeout(PATIENCE).unwrap().is_some() {}
    assert!(listener.hears_others());
    let newest = wait(listener.newest_change(&grant_of("t")));
    assert_eq!(newest.unwrap(), 1);
    put(writer.as_ref(), &grant_of("u"));
    while heard.recv_timeout(PATIENCE).unwrap() != Some("u".parse().unwrap()) {}
}

/// The processes of the database server that sent the first message without a tenant, and that
/// received it here.
fn check_heard(url: String, store: std::sync::Arc<dyn Store>) -> (String, String) {
    let work = async move {
        let connecting = tokio_postgres::connect(&url, tokio_postgres::NoTls);
        let (client, mut connection) = connecting.await.unwrap();
        let (sender, mut received) = tokio::sync::mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Some(Ok(message)) =
                std::future::poll_fn(|context| connection.poll_message(context)).await
            {
                if let AsyncMessage::Notification(it) = message
                    && it.payload().len() == 16
                {
                    let _ = sender.send(it.process_id());
                }
            }
        });
        let own = client.query_one("SELECT pg_backend_pid()", &[]).await;
        let own: i32 = own.unwrap().get(0);
        client.batch_execute("LISTEN mnemon").await.unwrap();
        store.listen(Box::new(|_| ()));
        let sender: i32 = received.recv().await.unwrap();
        (sender.to_string(), own.to_string())
    };
    let thread = std::thread::spawn(move || mnemon_testkit::block_on(work));
    thread.join().unwrap()
}

/// Behind PgBouncer in transaction mode a connection that listens hears itself, but no other.
#[test]
fn a_listening_connection_is_checked_by_another_one() {
    let database = database!();
    let store = open(&database.url());
    let (sender, own) = check_heard(database.url(), std::sync::Arc::clone(&store));
    let sql = "SELECT pid FROM pg_stat_activity
         WHERE datname = current_database() AND query = 'LISTEN mnemon'";
    let mut listening = rows(&database.url(), sql);
    listening.retain(|process| *process != own);
    assert_eq!(listening.len(), 1, "{listening:?}");
    assert!(!listening.contains(&sender), "{listening:?} {sender}");
}

#[test]
fn a_handler_that_panics_does_not_end_the_listening() {
    let database = database!();
    let listener = open(&database.url());
    let (sender, heard) = mpsc::channel();
    listener.listen(Box::new(move |tenant| {
        sender.send(tenant.cloned()).unwrap();
        assert!(tenant.is_none_or(|tenant| tenant.as_str() != "planted"));
    }));
    assert_eq!(heard.recv_timeout(PATIENCE).unwrap(), None);
    let writer = open(&database.url());
    put(writer.as_ref(), &grant_of("planted"));
    assert!(heard.recv_timeout(PATIENCE).unwrap().is_some());
    // It listens again, and says that messages may have been missed.
    assert_eq!(heard.recv_timeout(PATIENCE).unwrap(), None);
    put(writer.as_ref(), &grant_of("later"));
    let later = Some("later".parse().unwrap());
    assert_eq!(heard.recv_timeout(PATIENCE).unwrap(), later);
}
