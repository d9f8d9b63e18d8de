//! A strict double of an OpenSearch server: it refuses every path, parameter and clause that it does
//! not know, really answers searches, keeps its data over a restart, and misbehaves on demand.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::matching::{self, Doc};

/// What the server does instead of answering.
#[derive(Debug, Clone)]
pub(super) enum Fault {
    /// This status and body.
    Status(u16, String),
    /// Half of the answer.
    Truncated,
    /// An answer of another shape.
    WrongTypes,
    /// Nothing, until the other side gives up.
    Hang,
}

/// The data of a server, which outlive it.
#[derive(Debug, Default)]
pub(super) struct Data {
    pub(super) indexes: BTreeMap<String, Index>,
    pub(super) faults: Vec<Fault>,
    /// Requests that are answered before the first fault.
    pub(super) good_requests: u64,
    pub(super) version: Option<String>,
    pub(super) is_read_only: bool,
    pub(super) requests: usize,
}

#[derive(Debug, Default)]
pub(super) struct Index {
    pub(super) mappings: Value,
    pub(super) aliases: Vec<String>,
    pub(super) docs: BTreeMap<String, Doc>,
    /// Versions of deleted documents.
    deleted: BTreeMap<String, u64>,
    numbers: u64,
}

/// A running server.
pub(super) struct Double {
    pub(super) address: SocketAddr,
    pub(super) data: Arc<Mutex<Data>>,
    stop: Arc<AtomicBool>,
}

type Answer = (u16, Value);

fn refused(status: u16, kind: &str, reason: &str) -> Answer {
    let error = json!({"type": kind, "reason": reason});
    (status, json!({"error": error, "status": status}))
}

fn unknown(what: &str) -> Answer {
    refused(400, "illegal_argument_exception", what)
}

impl Double {
    pub(super) fn start(data: Arc<Mutex<Data>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let (held, stopped) = (data.clone(), stop.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                if stopped.load(Ordering::SeqCst) {
                    return;
                }
                let data = held.clone();
                // A client that went away is not an error of the server.
                std::thread::spawn(move || stream.and_then(|stream| serve(stream, &data)).ok());
            }
        });
        Self {
            address,
            data,
            stop,
        }
    }

    pub(super) fn url(&self) -> String {
        format!("opensearch://{}/memory?timeout_s=2", self.address)
    }
}

impl Drop for Double {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        // Wakes the thread that waits for connections.
        let _ = TcpStream::connect(self.address);
    }
}

fn serve(mut stream: TcpStream, data: &Mutex<Data>) -> std::io::Result<()> {
    let (head, body) = request(&mut stream)?;
    let mut data = data.lock().unwrap();
    data.requests += 1;
    let is_due = !data.faults.is_empty() && data.good_requests == 0;
    data.good_requests = data.good_requests.saturating_sub(1);
    let fault = is_due.then(|| data.faults.remove(0));
    let (status, answer) = match &fault {
        Some(Fault::Hang) => {
            drop(data);
            return stream.read(&mut [0; 1]).map(drop);
        }
        Some(Fault::Status(status, body)) => (*status, body.clone()),
        Some(Fault::WrongTypes) => (200, json!({"responses": 7, "items": "x"}).to_string()),
        _ => {
            let (status, answer) = data.answer(&head, &body);
            (status, answer.to_string())
        }
    };
    let whole = format!(
        "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\
         connection: close\r\n\r\n{answer}",
        answer.len()
    );
    let sent = match fault {
        Some(Fault::Truncated) => &whole[..whole.len() - answer.len() / 2 - 1],
        _ => &whole[..],
    };
    stream.write_all(sent.as_bytes())
}

fn request(stream: &mut TcpStream) -> std::io::Result<(String, String)> {
    let (mut bytes, mut piece) = (Vec::new(), [0; 65_536]);
    loop {
        let text = String::from_utf8_lossy(&bytes);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| {
                let (name, value) = line.split_once(':')?;
                let is_length = name.eq_ignore_ascii_case("content-length");
                is_length.then(|| value.trim().parse::<usize>().unwrap())
            });
            if body.len() >= length.unwrap_or(0) {
                return Ok((head.to_owned(), body.to_owned()));
            }
        }
        match stream.read(&mut piece)? {
            0 => return Err(std::io::ErrorKind::UnexpectedEof.into()),
            n => bytes.extend_from_slice(&piece[..n]),
        }
    }
}

impl Data {
    fn answer(&mut self, head: &str, body: &str) -> Answer {
        let line = head.lines().next().unwrap_or_default();
        let mut parts = line.split(' ');
        let (method, target) = (parts.next().unwrap(), parts.next().unwrap());
        let (path, parameters) = target.split_once('?').unwrap_or((target, ""));
        let parameters: BTreeMap<&str, &str> = parameters
            .split('&')
            .filter_map(|pair| pair.split_once('='))
            .collect();
        let path: Vec<&str> = path.trim_matches('/').split('/').collect();
        let is_write = method == "PUT" || path.contains(&"_bulk") || path == ["_aliases"];
        if self.is_read_only && is_write {
            return refused(403, "cluster_block_exception", "index read-only");
        }
        match (method, path.as_slice()) {
            ("GET", [""]) => self.root(),
            ("GET", ["_alias", name]) => self.alias(name),
            ("POST", ["_aliases"]) => self.change_aliases(&parse(body)),
            ("GET", [pattern, "_alias"]) => self.matching_indexes(pattern),
            ("PUT", [name]) => self.create(name, &parse(body)),
            ("GET", [name, "_mapping"]) => self.mapping(name),
            ("PUT", [name, "_mapping"]) => self.add_fields(name, &parse(body)),
            ("POST", [name, "_refresh"]) => self.with(name, |_| (200, json!({}))),
            ("POST", [alias, "_bulk"]) => self.bulk(alias, &parameters, body),
            ("GET", [name, "_doc", id]) => self.with(name, |index| index.get(id)),
            ("PUT", [alias, "_doc" | "_create", id]) => {
                let is_new = path.contains(&"_create");
                self.put(alias, id, is_new, &parameters, &parse(body))
            }
            ("POST", [name, "_count"]) => {
                let query = parse(body)["query"].clone();
                self.with(name, |index| {
                    let docs = index.docs.values();
                    let count = docs.filter(|doc| matching::matches(&query, doc)).count();
                    (200, json!({"count": count}))
                })
            }
            ("POST", [name, "_search"]) => {
                let search = parse(body);
                self.with(name, |index| (200, matching::search(&search, &index.docs)))
            }
            ("POST", [name, "_mget"]) => {
                let (body, fields) = (parse(body), parameters.get("_source_includes"));
                let Some(fields) = fields.filter(|_| body.as_object().unwrap().len() == 1) else {
                    return unknown("an _mget with other members");
                };
                self.with(name, |index| (200, index.get_all(&body["ids"], fields)))
            }
            ("POST", [name, "_msearch"]) => self.searches(name, body),
            _ => unknown(&format!("{method} {path:?}")),
        }
    }

    fn root(&self) -> Answer {
        let version = self.version.as_deref().unwrap_or("3.3.0");
        let version = json!({"number": version, "distribution": "opensearch"});
        (200, json!({"name": "double", "version": version}))
    }

    fn index_of(&self, alias: &str) -> Option<String> {
        let mut indexes = self.indexes.iter();
        let found = indexes.find(|(_, index)| index.aliases.iter().any(|it| it == alias));
        found.map(|(name, _)| name.clone())
    }

    fn with(&mut self, name: &str, work: impl FnOnce(&mut Index) -> Answer) -> Answer {
        match self.indexes.get_mut(name) {
            Some(index) => work(index),
            None => refused(404, "index_not_found_exception", name),
        }
    }

    fn alias(&self, alias: &str) -> Answer {
        match self.index_of(alias) {
            Some(name) => (200, json!({name: {"aliases": {alias: {}}}})),
            None => (404, json!({"error": "alias missing", "status": 404})),
        }
    }

    fn matching_indexes(&self, pattern: &str) -> Answer {
        let begin = pattern.strip_suffix('*').unwrap();
        let names = self.indexes.keys().filter(|name| name.starts_with(begin));
        let names = names.map(|name| (name.clone(), json!({"aliases": {}})));
        (200, Value::Object(names.collect()))
    }

    fn change_aliases(&mut self, body: &Value) -> Answer {
        for action in body["actions"].as_array().unwrap() {
            let (name, action) = action.as_object().unwrap().iter().next().unwrap();
            let index = action["index"].as_str().unwrap();
            match name.as_str() {
                "remove_index" => drop(self.indexes.remove(index)),
                "add" => {
                    let alias = action["alias"].as_str().unwrap().to_owned();
                    let Some(index) = self.indexes.get_mut(index) else {
                        return refused(404, "index_not_found_exception", index);
                    };
                    index.aliases.push(alias);
                }
                other => return unknown(other),
            }
        }
        (200, json!({"acknowledged": true}))
    }

    fn create(&mut self, name: &str, body: &Value) -> Answer {
        let keys: Vec<&String> = body.as_object().unwrap().keys().collect();
        if keys != ["aliases", "mappings", "settings"] {
            return unknown(&format!("{keys:?}"));
        }
        assert_eq!(body["settings"]["index"]["knn"], true);
        assert_eq!(body["mappings"]["dynamic"], "strict");
        let aliases = body["aliases"].as_object().unwrap().keys().cloned();
        let index = Index {
            mappings: body["mappings"].clone(),
            aliases: aliases.collect(),
            ..Index::default()
        };
        self.indexes.insert(name.to_owned(), index);
        (200, json!({"acknowledged": true}))
    }

    fn mapping(&mut self, name: &str) -> Answer {
        self.with(name, |index| {
            (200, json!({name: {"mappings": index.mappings}}))
        })
    }

    fn add_fields(&mut self, name: &str, body: &Value) -> Answer {
        self.with(name, |index| {
            for (field, mapping) in body["properties"].as_object().unwrap() {
                assert_eq!(mapping["type"], "knn_vector");
                assert!(mapping["dimension"].as_u64().unwrap() > 0);
                index.mappings["properties"][field] = mapping.clone();
            }
            (200, json!({"acknowledged": true}))
        })
    }

    /// The index behind an alias, for requests that demand an alias.
    fn written(&self, alias: &str, parameters: &BTreeMap<&str, &str>) -> Result<String, Answer> {
        if parameters.get("require_alias") != Some(&"true") {
            return Err(unknown("a write without require_alias"));
        }
        let found = self.index_of(alias);
        found.ok_or_else(|| refused(404, "index_not_found_exception", alias))
    }

    fn put(
        &mut self,
        alias: &str,
        id: &str,
        is_new: bool,
        parameters: &BTreeMap<&str, &str>,
        body: &Value,
    ) -> Answer {
        let name = match self.written(alias, parameters) {
            Ok(name) => name,
            Err(answer) => return answer,
        };
        let expected = parameters.get("if_seq_no").map(|it| it.parse().unwrap());
        self.with(&name, |index| {
            let current = index.docs.get(id).map(|doc| doc.number);
            if (is_new && current.is_some()) || (!is_new && current != expected) {
                return refused(409, "version_conflict_engine_exception", "changed");
            }
            index.insert(id, 1, body.clone());
            let number = index.numbers;
            (200, json!({"_seq_no": number, "_primary_term": 1}))
        })
    }

    fn bulk(&mut self, alias: &str, parameters: &BTreeMap<&str, &str>, body: &str) -> Answer {
        let name = match self.written(alias, parameters) {
            Ok(name) => name,
            Err(answer) => return answer,
        };
        assert!(
            body.ends_with('\n'),
            "a bulk request ends with a line break"
        );
        self.with(&name, |index| {
            let mut lines = body.lines();
            let mut items = Vec::new();
            while let Some(line) = lines.next() {
                let action = parse(line);
                let (verb, action) = action.as_object().unwrap().iter().next().unwrap();
                let source = (verb == "index").then(|| parse(lines.next().unwrap()));
                let status = index.apply(verb, action, source);
                items.push(json!({verb: {"_id": action["_id"], "status": status}}));
            }
            (200, json!({"errors": false, "items": items}))
        })
    }

    fn searches(&mut self, name: &str, body: &str) -> Answer {
        self.with(name, |index| {
            let lines: Vec<&str> = body.lines().collect();
            let searches = lines.chunks(2).map(|pair| {
                assert_eq!(pair[0], "{}");
                matching::search(&parse(pair[1]), &index.docs)
            });
            let responses: Vec<Value> = searches.collect();
            (200, json!({"responses": responses}))
        })
    }
}

fn parse(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

impl Index {
    fn insert(&mut self, id: &str, version: u64, source: Value) {
        self.numbers += 1;
        let number = self.numbers;
        let doc = Doc {
            version,
            number,
            source,
        };
        self.docs.insert(id.to_owned(), doc);
    }

    fn get(&self, id: &str) -> Answer {
        match self.docs.get(id) {
            Some(doc) => {
                let answer = json!({
                    "found": true, "_source": doc.source, "_seq_no": doc.number,
                    "_primary_term": 1,
                });
                (200, answer)
            }
            None => (404, json!({"found": false})),
        }
    }

    /// Documents with one field of each.
    fn get_all(&self, ids: &Value, field: &str) -> Value {
        let ids = ids
            .as_array()
            .unwrap()
            .iter()
            .map(|id| id.as_str().unwrap());
        let docs = ids.map(|id| match self.docs.get(id) {
            Some(doc) => {
                let value = doc.source.get(field);
                let source = value.map_or(json!({}), |value| json!({field: value}));
                json!({"_id": id, "found": true, "_source": source})
            }
            None => json!({"_id": id, "found": false}),
        });
        json!({"docs": docs.collect::<Vec<_>>()})
    }

    /// The status of one item of a bulk request.
    fn apply(&mut self, verb: &str, action: &Value, source: Option<Value>) -> u16 {
        let keys: Vec<&String> = action.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["_id", "version", "version_type"]);
        assert_eq!(action["version_type"], "external_gte");
        let (id, version) = (
            action["_id"].as_str().unwrap(),
            action["version"].as_u64().unwrap(),
        );
        assert!(id.len() <= 512);
        let current = self.docs.get(id).map(|doc| doc.version);
        let known = current.or_else(|| self.deleted.get(id).copied());
        if known.is_some_and(|known| known > version) {
            return 409;
        }
        match (verb, source) {
            ("index", Some(source)) => {
                let fields = source.as_object().unwrap();
                let known = self.mappings["properties"].as_object().unwrap();
                let is_known = fields.keys().all(|field| known.contains_key(field));
                assert!(is_known, "a field that the mapping lacks: {source}");
                self.deleted.remove(id);
                self.insert(id, version, source);
                200
            }
            ("delete", None) => {
                self.deleted.insert(id.to_owned(), version);
                if self.docs.remove(id).is_some() {
                    200
                } else {
                    404
                }
            }
            _ => 400,
        }
    }
}
