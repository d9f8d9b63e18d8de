use super::*;

fn connections(most: usize, of_one_address: usize) -> Arc<Connections> {
    Arc::new(Connections::new(&HttpLimits {
        connections: most,
        address_connections: of_one_address,
        ..HttpLimits::default()
    }))
}

fn address(last: u8) -> IpAddr {
    [10, 0, 0, last].into()
}

/// Whether the connection was told to close.
fn is_closing(connection: &Connection) -> bool {
    !connection.all.lock().slots.contains_key(&connection.id)
}

#[test]
fn the_oldest_that_sent_nothing_makes_room() {
    let all = connections(3, 3);
    let served = all.open(address(1)).unwrap();
    served.begin();
    served.end();
    let oldest = all.open(address(1)).unwrap();
    let newer = all.open(address(1)).unwrap();
    let newest = all.open(address(1)).unwrap();
    assert!(is_closing(&oldest));
    let more = all.open(address(1)).unwrap();
    assert!(is_closing(&newer) && !is_closing(&newest) && !is_closing(&served));
    drop((newest, more));
    assert_eq!(all.count(), 1);
}

#[test]
fn busy_connections_stay_and_idle_ones_go_last() {
    let all = connections(2, 2);
    let busy = all.open(address(1)).unwrap();
    busy.begin();
    let idle = all.open(address(1)).unwrap();
    idle.begin();
    assert_eq!(all.open(address(1)).err(), Some(Crowded::ByAddress));
    assert_eq!(all.open(address(2)).err(), Some(Crowded::ByAll));
    idle.end();
    let next = all.open(address(2)).unwrap();
    assert!(is_closing(&idle) && !is_closing(&busy) && !is_closing(&next));
    // Work on a connection that has to go does not bring it back.
    idle.begin();
    assert!(is_closing(&idle));
    drop((busy, idle, next));
    assert_eq!(all.count(), 0);
}

#[test]
fn one_address_displaces_only_its_own() {
    let all = connections(10, 2);
    let other = all.open(address(1)).unwrap();
    let flood: Vec<Connection> = (0..50).map(|_| all.open(address(2)).unwrap()).collect();
    assert_eq!(all.count(), 3);
    assert!(!is_closing(&other));
    let open = flood.iter().filter(|one| !is_closing(one)).count();
    assert_eq!(open, 2);
}

#[test]
fn a_network_of_ipv6_is_one_address() {
    let parse = |text: &str| network(text.parse().unwrap());
    assert_eq!(parse("2001:db8:1:2:3::4"), parse("2001:db8:1:2:ffff::1"));
    assert_ne!(parse("2001:db8:1:2::1"), parse("2001:db8:1:3::1"));
    assert_eq!(parse("::ffff:10.0.0.1"), address(1));
    assert_ne!(parse("10.0.0.1"), parse("10.0.0.2"));
}
