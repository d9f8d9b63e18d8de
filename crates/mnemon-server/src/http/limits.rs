//! Every limit of the HTTP server, in one place. `docs/mcp.md` repeats them.

use std::time::Duration;

/// How much clients may ask of the server; tests shrink it.
///
/// One address may open fewer connections than there are requests at a time, and there are fewer
/// requests than connections: so no single address keeps the others out.
#[derive(Debug, Clone)]
pub struct HttpLimits {
    /// Open connections. Common limits on open files begin at 256.
    pub connections: usize,
    /// Open connections of one IPv4 address or one IPv6 /64 network.
    pub address_connections: usize,
    /// Requests that are worked on at the same time.
    pub requests: usize,
    /// Listeners to the change feed at the same time.
    pub listeners: usize,
    /// The same of one caller, and of all callers of one tenant.
    pub caller_listeners: usize,
    pub tenant_listeners: usize,
    /// The request line and all headers, in bytes.
    pub head_bytes: usize,
    /// One request body, in bytes: a content at its limit, and several times as much for escapes.
    pub body_bytes: usize,
    /// The same where nothing is written: on routes that only read, and for keys that may only read.
    pub read_body_bytes: usize,
    /// Values in a JSON body. A number takes two bytes in a body, and 32 once it is parsed.
    pub body_values: usize,
    /// The bodies of all requests that are read or worked on, in bytes.
    pub bodies_bytes: usize,
    /// From the opening of a connection, or the end of an answer, to the end of the next headers.
    pub head_timeout: Duration,
    /// From the end of the headers to the end of the body.
    pub body_timeout: Duration,
    /// From the end of the body to the end of the answer.
    pub request_timeout: Duration,
    /// How long a server that was told to stop waits for the requests it is working on.
    pub stop_timeout: Duration,
}

impl Default for HttpLimits {
    fn default() -> Self {
        Self {
            connections: 1024,
            address_connections: 300,
            requests: 384,
            listeners: 256,
            caller_listeners: 64,
            tenant_listeners: 128,
            head_bytes: 64 * 1024,
            body_bytes: 64 * 1024 * 1024,
            read_body_bytes: 1024 * 1024,
            body_values: 1_000_000,
            bodies_bytes: 256 * 1024 * 1024,
            head_timeout: Duration::from_secs(30),
            body_timeout: Duration::from_secs(60),
            request_timeout: Duration::from_secs(300),
            stop_timeout: Duration::from_secs(10),
        }
    }
}
