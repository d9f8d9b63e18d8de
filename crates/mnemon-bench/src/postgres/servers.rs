//! Any number of servers on one database, each a process, under load from `wrk`.

use mnemon_adapters::embed::Builtin;
use mnemon_core::{Ctx, Policy, Right, Time};

use crate::http::{Load, Script, Server};
use crate::mcp::{program, sibling};
use crate::measure::{Outcome, Table};

/// How many servers share the load, a column each.
const SERVERS: [usize; 3] = [1, 2, 4];
/// Connections of all servers together.
const CONNECTIONS: usize = 16;
const RECORDS: usize = 10_000;
const SECONDS: u64 = 6;

/// Gives the tenant of the servers records to search.
pub(super) async fn fill(url: &str) -> Outcome<()> {
    let backend = mnemon_adapters::open(url)?.backend;
    let now = Time::from_millis(1_700_000_000_000)?;
    let ctx = Ctx::new("default".parse()?, "bench", now);
    let grant = Policy::default().check(&ctx, Right::Write)?;
    let there = backend.store.tally(&grant).await?.records() as usize;
    if there < RECORDS {
        let embedder = Builtin::new()?;
        super::fill(&backend, &grant, &ctx, &embedder, there..RECORDS).await?;
    }
    Ok(())
}

pub(super) fn run(url: &str) -> Outcome<()> {
    let (mnemon, folder) = (sibling("mnemon")?, tempfile::tempdir()?);
    let mut table = Table::new(&SERVERS);
    for count in SERVERS {
        let start = || {
            let mut command = program(&mnemon, folder.path(), &["serve"]);
            command.env("MNEMON_STORE", url);
            Server::start(command)
        };
        let servers = (0..count).map(|_| start()).collect::<Outcome<Vec<_>>>()?;
        for (name, script) in [
            ("search", Script::searches()),
            ("durable write", Script::writes()),
        ] {
            // A server reads into memory what others have written when it is asked next.
            for server in &servers {
                server.warm_up()?;
            }
            together(&servers, &script, 1)?;
            let loads = together(&servers, &script, SECONDS)?;
            let rate = loads.iter().map(|load| load.rate).sum();
            let slowest = loads.iter().map(|load| load.p99).fold(0.0, f64::max);
            table.add(&format!("{name}, per second"), rate);
            table.add(
                &format!("{name}, p99 of the slowest server, ms"),
                slowest / 1e3,
            );
        }
    }
    println!(
        "\nServers on one database with {RECORDS} records, {CONNECTIONS} connections in all:\n"
    );
    table.print();
    Ok(())
}

/// Loads all servers at the same time.
fn together(servers: &[Server], script: &Script, seconds: u64) -> Outcome<Vec<Load>> {
    let each = CONNECTIONS / servers.len();
    std::thread::scope(|scope| {
        let loads: Vec<_> = servers
            .iter()
            .map(|server| {
                scope.spawn(move || {
                    Load::of(server, script, each, seconds).map_err(|error| error.to_string())
                })
            })
            .collect();
        let ended = loads.into_iter().map(|load| match load.join() {
            Ok(load) => Ok(load?),
            Err(_) => Err("a thread of the load panicked".into()),
        });
        ended.collect()
    })
}
