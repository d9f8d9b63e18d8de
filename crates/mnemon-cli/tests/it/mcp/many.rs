//! Several servers on one store at the same time.

use serde_json::json;

use super::client::Client;
use crate::sandbox::Sandbox;

const SERVERS: usize = 5;
const WRITES: usize = 200;

#[test]
fn five_servers_lose_nothing_and_see_everything() {
    let sandbox = Sandbox::new();
    let full = std::env::var_os("MNEMON_TEST_FULL").is_some();
    let step = if full { 1 } else { 10 };
    let servers: Vec<Client> = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..SERVERS)
            .map(|server| {
                let sandbox = &sandbox;
                scope.spawn(move || {
                    let mut client = Client::start(sandbox, &["--tools", "notes"]);
                    for write in 0..WRITES {
                        let content = format!("Parcel p{server}x{write} waits at the gate");
                        client.call("memory_add", json!({"content": content}));
                    }
                    client
                })
            })
            .collect();
        writers
            .into_iter()
            .map(|writer| writer.join().unwrap())
            .collect()
    });
    std::thread::scope(|scope| {
        for mut client in servers {
            scope.spawn(move || {
                assert_eq!(
                    client.call("memory_stats", json!({}))["total"],
                    SERVERS * WRITES
                );
                for number in (0..SERVERS * WRITES).step_by(step) {
                    let name = format!("p{}x{}", number / WRITES, number % WRITES);
                    let found = client.call("memory_search", json!({"query": name, "limit": 1}));
                    let summary = found["results"][0]["summary"].as_str().unwrap_or_default();
                    assert!(summary.contains(&format!("{name} ")), "{name}: {found}");
                }
                assert_eq!(client.leave(), 0);
            });
        }
    });
}
