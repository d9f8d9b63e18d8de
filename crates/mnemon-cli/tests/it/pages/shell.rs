//! Runs the commands of a page as a user would.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::rules::{FILLS, How, Rule};

pub(super) struct Shell {
    /// Holds `home`, `work`, where commands run, and `bin`, where they find the program.
    folder: tempfile::TempDir,
}

pub(super) struct Ran {
    pub(super) code: i32,
    /// What it printed on stdout and stderr.
    pub(super) output: String,
}

impl Shell {
    pub(super) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["home", "work", "bin"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        let program = folder.path().join("bin/mnemon");
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_mnemon"), program).unwrap();
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, line: &str) -> Command {
        let mut command = Command::new("sh");
        let path = format!(
            "{}:/usr/local/bin:/usr/bin:/bin",
            self.path("bin").display()
        );
        command
            .args(["-c", &format!("exec 2>&1; {line}")])
            .current_dir(self.path("work"))
            .env_clear()
            .env("HOME", self.path("home"))
            .env("PATH", path)
            .env("USER", "ann")
            .env("TZ", "UTC")
            .env("TMPDIR", self.path("home"))
            .env("LANG", "C.UTF-8")
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        command
    }

    pub(super) fn run(&self, line: &str) -> Ran {
        let output = self.command(line).output().unwrap();
        Ran {
            code: output.status.code().expect("not killed"),
            output: String::from_utf8(output.stdout).unwrap(),
        }
    }

    /// Runs a command by its rule; none if it is not run. What comes before `jq` is run without it:
    /// the tests need only what the build needs.
    pub(super) fn follow(&self, rule: Option<&Rule>, page: &str, line: &str) -> Option<Ran> {
        let line = line.split("| jq ").next().unwrap_or_default();
        let line = self.fill(page, line);
        match rule.map(|rule| &rule.how) {
            Some(How::NotRun(_)) => None,
            Some(How::Confirmed) => {
                let (command, comment) = line.split_once('#').unwrap_or((&line, ""));
                Some(self.run(&format!("{command} --yes #{comment}")))
            }
            Some(How::Server) => Some(self.serve(&line)),
            Some(How::Exit(..) | How::Plain) | None => Some(self.run(&line)),
        }
    }

    /// The command with an id in place of the word that stands for it.
    fn fill(&self, page: &str, line: &str) -> String {
        let mut line = line.to_owned();
        for fill in FILLS.iter().filter(|fill| fill.page == page) {
            let is_word = |word: &str| word == fill.word;
            if line.split(' ').any(is_word) {
                let value = self.run(fill.command).output;
                line = line.replacen(fill.word, value.trim(), 1);
            }
        }
        line
    }

    /// Starts a server on a free port, waits until it answers, and stops it.
    fn serve(&self, line: &str) -> Ran {
        let line = line
            .replace(":8750", ":0")
            .replacen("mnemon", "exec mnemon", 1);
        let mut child = self.command(&line).spawn().unwrap();
        let mut reader = BufReader::new(child.stdout.take().unwrap());
        let mut output = String::new();
        while reader.read_line(&mut output).unwrap() > 0 && !output.contains("/mcp") {}
        let port = output.split(':').next_back().unwrap_or_default();
        let port = port.trim().trim_end_matches("/mcp").parse::<u16>();
        let port = port.expect(&output);
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
        stream.read_to_end(&mut Vec::new()).unwrap();
        let stopped = Command::new("kill").arg(child.id().to_string()).status();
        assert!(stopped.unwrap().success());
        reader.read_to_string(&mut output).unwrap();
        Ran {
            code: child.wait().unwrap().code().expect("it stops by itself"),
            output: output.replace(&port.to_string(), "8750"),
        }
    }

    /// The output with the folders of this run as a user would see theirs.
    pub(super) fn shorten(&self, text: &str) -> String {
        let folder = |name| self.path(name).display().to_string();
        text.replace(env!("CARGO_BIN_EXE_mnemon"), "/usr/bin/mnemon")
            .replace(&folder("work"), "/home/ann/work")
            .replace(&folder("home"), "/home/ann")
            .replace(&folder("bin"), "/usr/bin")
    }

    /// The output without ids, times and figures, which differ between runs.
    pub(super) fn redact(&self, text: &str) -> String {
        let lines = self.shorten(text);
        let lines = lines.lines().map(|line| columns(&redact(line)));
        lines.map(|line| line + "\n").collect()
    }
}

/// `h` is a hexadecimal digit, `d` a decimal one, `x` a letter or digit. The first that fits counts.
const PATTERNS: &[(&str, &str)] = &[
    (
        "hhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhh",
        "[secret]",
    ),
    ("hhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhh", "[hash]"),
    ("hhhhhhhh-hhhh-hhhh-hhhh-hhhhhhhhhhhh", "[id]"),
    ("dddd-dd-ddTdd:dd:dd.dddZ", "[time]"),
    ("dddd-dd-ddTdd:dd:ddZ", "[time]"),
    ("dddd-dd-dd dd:dd", "[time]"),
    ("dddd-dd-dd", "[date]"),
    ("ddddddddddddd", "[millis]"),
    (
        "mnemon_xxxxxxxx_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        "[key]",
    ),
    ("key xxxxxxxx (", "key [prefix] ("),
    ("key xxxxxxxx is", "key [prefix] is"),
    // The project's folder as part of a name.
    ("work.hhhhhhhhhhhhhhhh", "work.[hash]"),
    (".tmpxxxxxx", "[folder]"),
    // Scores depend on the words of paths, and so on the folder of the run.
    ("dd.d%", "[score]"),
    ("d.d%", "[score]"),
    ("d.dd", "[score]"),
];

fn redact(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let hit = PATTERNS.iter().find(|(pattern, _)| fits(pattern, rest));
        // Dates that commands name are the same in every run.
        let is_named = rest.starts_with("2026-01-31");
        let length = match hit.filter(|_| !is_named) {
            Some((pattern, word)) => {
                out.push_str(word);
                let rest = &rest[pattern.len()..];
                let is_number = word == &"[score]";
                let digits = rest.bytes().take_while(|c| is_number && c.is_ascii_digit());
                pattern.len() + digits.count()
            }
            None => {
                out.push(first);
                first.len_utf8()
            }
        };
        rest = &rest[length..];
    }
    let free = out.strip_suffix(" MiB free");
    let free = free.map(|line| line.trim_end_matches(|c: char| c.is_ascii_digit()));
    free.map_or(out.clone(), |line| format!("{line}[space] free"))
}

fn fits(pattern: &str, text: &str) -> bool {
    pattern.len() <= text.len()
        && pattern.bytes().zip(text.bytes()).all(|(p, t)| match p {
            b'h' => t.is_ascii_hexdigit(),
            b'd' => t.is_ascii_digit(),
            b'x' => t.is_ascii_alphanumeric(),
            _ => p == t,
        })
}

/// The line with two spaces between columns, however wide the paths and ids in them are.
fn columns(line: &str) -> String {
    let text = line.trim_start();
    let indent = &line[..line.len() - text.len()];
    let cells = text
        .split("  ")
        .map(str::trim)
        .filter(|cell| !cell.is_empty());
    let cells: Vec<&str> = cells.collect();
    format!("{indent}{}", cells.join("  "))
}
