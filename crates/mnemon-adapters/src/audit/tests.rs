use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use tempfile::TempDir;

use super::*;

fn event(number: u64) -> AuditEvent {
    AuditEvent {
        at: Time::from_millis(1_700_000_000_000 + number as i64).unwrap(),
        caller: format!("key{}", number % 3),
        tenant: Tenant::default(),
        operation: "note add".to_owned(),
        ids: vec![format!("id-{number}")],
        status: 200,
    }
}

fn new_log(entries: u64) -> (TempDir, AuditLog) {
    let folder = tempfile::tempdir().unwrap();
    let log = AuditLog::at(folder.path().join("audit.jsonl"));
    for number in 1..=entries {
        log.append(&[event(number)]).unwrap();
    }
    (folder, log)
}

/// The log without the spaces at its end.
fn entries(log: &AuditLog) -> String {
    let text = fs::read_to_string(&log.path).unwrap();
    text.trim_end_matches(' ').to_owned()
}

fn lines(log: &AuditLog) -> Vec<String> {
    entries(log).lines().map(str::to_owned).collect()
}

fn store(log: &AuditLog, lines: &[String]) {
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    fs::write(&log.path, text).unwrap();
}

fn broken_line(log: &AuditLog) -> u64 {
    match log.verify() {
        Err(AuditError::Broken { line, .. }) => line,
        other => panic!("{other:?}"),
    }
}

#[test]
fn entries_are_chained_and_listed() {
    let (_folder, log) = new_log(3);
    let verified = log.verify().unwrap();
    assert_eq!((verified.entries, verified.files), (3, 1));
    assert_eq!((verified.first, verified.last), (Some(1), Some(3)));
    assert!(!verified.unfinished);
    let tail = log.tail(2).unwrap();
    let seqs: Vec<u64> = tail.iter().map(|entry| entry.seq).collect();
    assert_eq!(seqs, [2, 3]);
    assert_eq!(tail[1].prev, tail[0].hash);
    assert_eq!(tail[1].ids, ["id-3"]);
    // Another process goes on.
    AuditLog::at(log.path())
        .append(&[event(4), event(5)])
        .unwrap();
    log.append(&[event(6)]).unwrap();
    assert_eq!(log.verify().unwrap().last, Some(6));
}

#[test]
fn long_values_are_cut_and_ids_counted() {
    let (_folder, log) = new_log(0);
    let large = AuditEvent {
        caller: "c".repeat(10_000),
        ids: (0..1000).map(|_| "é".repeat(1000)).collect(),
        ..event(1)
    };
    log.append(&[large]).unwrap();
    let entry = log.tail(1).unwrap().remove(0);
    assert_eq!(
        (entry.caller.len(), entry.ids.len(), entry.count),
        (255, 100, 1000)
    );
    assert!((lines(&log)[0].len() as u64) < LINE_BYTES);
    log.verify().unwrap();
}

#[test]
fn a_kill_between_the_entry_and_the_head_is_no_damage() {
    let (_folder, log) = new_log(2);
    let head = fs::read(head_path(&log.path)).unwrap();
    log.append(&[event(3)]).unwrap();
    fs::write(head_path(&log.path), head).unwrap();
    assert_eq!(log.verify().unwrap().last, Some(3));
    AuditLog::at(log.path()).append(&[event(4)]).unwrap();
    assert_eq!(log.verify().unwrap().last, Some(4));
    // The same before the very first entry.
    let (_folder, log) = new_log(1);
    let first = serde_json::to_vec(&Head::first()).unwrap();
    fs::write(head_path(&log.path), first).unwrap();
    assert_eq!(log.verify().unwrap().last, Some(1));
}

#[test]
fn a_part_of_an_entry_is_replaced_by_the_next_one() {
    let (_folder, log) = new_log(2);
    let whole = entries(&log);
    for spaces in ["", "   "] {
        let torn = format!("{whole}{{\"seq\":3,\"at\":{spaces}");
        fs::write(&log.path, torn).unwrap();
        assert!(log.verify().unwrap().unfinished);
    }
    log.append(&[event(3)]).unwrap();
    let verified = log.verify().unwrap();
    assert_eq!((verified.last, verified.unfinished), (Some(3), false));
    assert!(entries(&log).starts_with(&whole));
}

#[test]
fn entries_overwrite_the_spaces_at_the_end() {
    let (_folder, log) = new_log(1);
    let size = || fs::metadata(&log.path).unwrap().len();
    assert_eq!(size(), ROOM_BYTES);
    for (entries, sizes) in [(2..=100, 1), (101..=300, 2)] {
        for number in entries {
            log.append(&[event(number)]).unwrap();
        }
        assert_eq!(size(), sizes * ROOM_BYTES);
    }
    assert_eq!(log.verify().unwrap().entries, 300);
    assert_eq!(log.tail(1).unwrap()[0].seq, 300);
}

#[test]
fn the_entry_of_a_process_that_was_killed_before_it_wrote_the_head_stays() {
    let (_folder, log) = new_log(2);
    let head = fs::read(head_path(&log.path)).unwrap();
    AuditLog::at(log.path()).append(&[event(3)]).unwrap();
    fs::write(head_path(&log.path), head).unwrap();
    log.append(&[event(4)]).unwrap();
    let verified = log.verify().unwrap();
    assert_eq!((verified.entries, verified.last), (4, Some(4)));
}

#[test]
fn appending_does_not_hide_damage() {
    let (_folder, log) = new_log(4);
    let mut cut = lines(&log);
    cut.pop();
    store(&log, &cut);
    log.append(&[event(5)]).unwrap();
    assert_eq!(broken_line(&log), 4);
    // Nor does a process that knows nothing of what was there.
    let (_folder, log) = new_log(4);
    fs::write(&log.path, "").unwrap();
    AuditLog::at(log.path()).append(&[event(5)]).unwrap();
    assert_eq!(broken_line(&log), 1);
    // A file full of something else is kept.
    let (_folder, log) = new_log(1);
    fs::write(&log.path, "x".repeat(3 * LINE_BYTES as usize)).unwrap();
    log.append(&[event(2)]).unwrap();
    assert_eq!(broken_line(&log), 1);
    assert!(fs::metadata(&log.path).unwrap().len() > 3 * LINE_BYTES);
}

#[test]
fn a_missing_head_or_log_is_noticed() {
    let (_folder, log) = new_log(2);
    fs::remove_file(head_path(&log.path)).unwrap();
    assert_eq!(broken_line(&log), 2);
    let (_folder, log) = new_log(2);
    fs::remove_file(&log.path).unwrap();
    assert_eq!(broken_line(&log), 0);
    let (_folder, log) = new_log(0);
    assert_eq!(log.verify().unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(log.tail(1).unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn the_chain_goes_on_in_the_next_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    let small = || AuditLog::at(&path).with_file_limit(1000);
    for number in 1..=20 {
        // A process of its own for each.
        small().append(&[event(number)]).unwrap();
    }
    let log = small();
    let older = rotated(&path).unwrap();
    assert!(older.len() >= 3, "{older:?}");
    let verified = log.verify().unwrap();
    assert_eq!((verified.entries, verified.files), (20, older.len() + 1));
    let seqs: Vec<u64> = log.tail(7).unwrap().iter().map(|entry| entry.seq).collect();
    assert_eq!(seqs, [14, 15, 16, 17, 18, 19, 20]);
    // Each file is a chain of its own.
    let first = verify_file(&older[1]).unwrap();
    assert!(first.first > Some(1) && first.files == 1);
    // A kill after the rename: the next entry begins the file.
    fs::rename(
        &path,
        read::rotated_path(&path, read::first_seq(&path).unwrap().unwrap()),
    )
    .unwrap();
    small().append(&[event(21)]).unwrap();
    assert_eq!(log.verify().unwrap().last, Some(21));
    // A whole file that was removed is noticed.
    fs::remove_file(&older[1]).unwrap();
    assert_eq!(broken_line(&log), 1);
}

#[tokio::test]
async fn entries_that_arrive_together_are_written_together() {
    let (folder, log) = new_log(0);
    let log = Arc::new(log);
    let tasks = (0..200).map(|number| {
        let log = log.clone();
        tokio::spawn(async move { log.record(event(number)).await })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap().unwrap();
    }
    assert_eq!(log.verify().unwrap().entries, 200);
    // An error reaches every caller.
    let nowhere = Arc::new(AuditLog::at(folder.path().join("audit.jsonl/inside")));
    let failed = [
        nowhere.record(event(1)).await,
        nowhere.record(event(2)).await,
    ];
    assert!(failed.iter().all(Result::is_err));
}

#[test]
fn processes_take_turns() {
    let (folder, log) = new_log(0);
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let path = folder.path().join("audit.jsonl");
            scope.spawn(move || {
                let own = AuditLog::at(path).with_file_limit(4000);
                for number in 0..25 {
                    own.append(&[event(writer * 100 + number)]).unwrap();
                }
            });
        }
    });
    let verified = log.verify().unwrap();
    assert_eq!((verified.entries, verified.last), (100, Some(100)));
    assert!(verified.files > 3);
}

/// One change of a log that somebody might make.
#[derive(Debug, Clone)]
enum Tampering {
    Remove(usize),
    /// The line, a byte of it, and what is added to the byte.
    Alter(usize, usize, u8),
    Swap(usize, usize),
    Duplicate(usize, usize),
    /// Bytes that are left.
    Truncate(usize),
    Insert(usize),
    /// From this line on with another caller and new hashes, and this many more entries.
    Rewrite(usize, u64),
}

fn tampering() -> impl Strategy<Value = Tampering> {
    let line = 0_usize..8;
    prop_oneof![
        line.clone().prop_map(Tampering::Remove),
        (line.clone(), any::<usize>(), 1..=255_u8)
            .prop_map(|(line, byte, by)| Tampering::Alter(line, byte, by)),
        (line.clone(), line.clone()).prop_map(|(one, other)| Tampering::Swap(one, other)),
        (line.clone(), 0_usize..=8).prop_map(|(line, at)| Tampering::Duplicate(line, at)),
        any::<usize>().prop_map(Tampering::Truncate),
        (0_usize..=8).prop_map(Tampering::Insert),
        (line, 0_u64..3).prop_map(|(line, more)| Tampering::Rewrite(line, more)),
    ]
}

/// The bytes of the log afterwards.
fn tampered(lines: &[String], how: &Tampering) -> Vec<u8> {
    let mut lines: Vec<Vec<u8>> = lines
        .iter()
        .map(|line| format!("{line}\n").into())
        .collect();
    match *how {
        Tampering::Remove(line) => drop(lines.remove(line)),
        Tampering::Alter(line, byte, by) => {
            let line = &mut lines[line];
            let byte = byte % line.len();
            line[byte] = line[byte].wrapping_add(by);
        }
        Tampering::Swap(one, other) => lines.swap(one, other),
        Tampering::Duplicate(line, at) => lines.insert(at, lines[line].clone()),
        Tampering::Truncate(bytes) => {
            let mut all = lines.concat();
            all.truncate(bytes % all.len());
            return all;
        }
        Tampering::Insert(at) => {
            let forged = line(&event(99), &Head::first()).unwrap().0;
            lines.insert(at, forged.into());
        }
        Tampering::Rewrite(at, more) => {
            let mut before = match at {
                0 => Head::first(),
                _ => {
                    let line = &lines[at - 1];
                    let entry = verify::check_line(&line[..line.len() - 1]).unwrap();
                    let AuditEntry { seq, hash, .. } = entry;
                    Head { seq, hash }
                }
            };
            lines.truncate(at);
            while before.seq < 8 + more {
                let (text, hash) = line(&event(50 + before.seq), &before).unwrap();
                lines.push(text.into());
                let seq = before.seq + 1;
                before = Head { seq, hash };
            }
        }
    }
    lines.concat()
}

#[test]
fn any_single_change_is_noticed() {
    let (_folder, log) = new_log(8);
    let original = lines(&log);
    let whole = entries(&log).into_bytes();
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[3; 32]);
    let mut runner = TestRunner::new_with_rng(Config::with_cases(500), rng);
    let run = runner.run(&tampering(), |how| {
        let bytes = tampered(&original, &how);
        let is_same = bytes == whole;
        fs::write(&log.path, bytes).unwrap();
        prop_assert_eq!(log.verify().is_ok(), is_same, "{:?}", how);
        Ok(())
    });
    run.unwrap();
}

#[test]
fn a_log_in_a_new_folder_can_be_written_and_one_that_is_a_folder_cannot() {
    let folder = tempfile::tempdir().unwrap();
    AuditLog::at(folder.path().join("new/audit.jsonl"))
        .check()
        .unwrap();
    AuditLog::at(folder.path()).check().unwrap_err();
}

/// Three of four entries are of another tenant.
fn mixed_log(entries: u64) -> (TempDir, AuditLog) {
    let (folder, log) = new_log(0);
    let log = log.with_file_limit(4096);
    let other: Tenant = "other".parse().unwrap();
    for number in 1..=entries {
        let tenant = match number % 4 {
            0 => Tenant::default(),
            _ => other.clone(),
        };
        let event = AuditEvent {
            tenant,
            // A caller cannot pass for another tenant.
            caller: "\"tenant\":\"default\"".to_owned(),
            ..event(number)
        };
        log.append(&[event]).unwrap();
    }
    (folder, log)
}

/// All entries of a tenant, page by page.
fn paged(log: &AuditLog, most: usize, bytes: u64) -> (Vec<u64>, usize) {
    let (mut seqs, mut pages, mut before) = (Vec::new(), 0, None);
    loop {
        let page = log
            .page_within(&Tenant::default(), before, most, bytes)
            .unwrap();
        assert_eq!(page.unreadable, 0);
        seqs.extend(page.entries.iter().map(|entry| entry.seq));
        pages += 1;
        assert!(
            page.next
                .is_none_or(|next| before.is_none_or(|before| next < before))
        );
        before = page.next;
        if before.is_none() {
            return (seqs, pages);
        }
    }
}

#[test]
fn pages_hold_the_entries_of_one_tenant_over_all_files() {
    let (_folder, log) = mixed_log(200);
    assert!(log.verify().unwrap().files > 5);
    let all: Vec<u64> = (1..=50).rev().map(|number| number * 4).collect();
    for most in [1, 7, 50, 1000] {
        assert_eq!(paged(&log, most, u64::MAX).0, all, "{most} on a page");
    }
    // A page reads few bytes, and says where to continue even if none of them is of the tenant.
    let (seqs, pages) = paged(&log, 1000, 1);
    assert_eq!(seqs, all);
    assert!(pages > 5, "{pages} pages");
    let (_folder, empty) = new_log(0);
    assert_eq!(
        empty.page(&Tenant::default(), None, 10).unwrap(),
        AuditPage::default()
    );
}

#[test]
fn a_page_says_that_lines_are_damaged_and_that_a_file_cannot_be_read() {
    let (folder, log) = new_log(5);
    let mut all = lines(&log);
    all[2] = all[2].replace("\"status\":200", "\"status\":oops");
    store(&log, &all);
    let page = log.page(&Tenant::default(), None, 10).unwrap();
    let seqs: Vec<u64> = page.entries.iter().map(|entry| entry.seq).collect();
    assert_eq!((seqs, page.unreadable), (vec![5, 4, 2, 1], 1));
    let blocked = AuditLog::at(folder.path().join("audit.jsonl").join("below"));
    assert!(blocked.page(&Tenant::default(), None, 10).is_err());
}
