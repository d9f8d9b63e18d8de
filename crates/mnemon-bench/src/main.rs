//! Benchmarks and evaluations. Machines are noisy: every figure stands beside a floor measured in
//! the same run, and the ratio is what counts.

#![allow(
    clippy::print_stdout,
    reason = "a benchmark's output is what it prints"
)]

mod agents;
mod chat;
mod context;
mod edges;
mod facade;
mod following;
mod http;
mod ingest;
mod learn;
mod log;
mod mcp;
mod measure;
mod postgres;
mod recall;
mod stores;

use clap::{Parser, Subcommand};

/// Measures Mnemon beside the floor it stands on.
#[derive(Parser)]
struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Durable ingest, commits, get, list and open time of the stores as they grow.
    Stores {
        /// How many records, one column each.
        #[arg(long, value_delimiter = ',', default_value = "1000,10000,100000")]
        sizes: Vec<usize>,
        /// Where the stores are made; a temporary folder otherwise.
        #[arg(long)]
        folder: Option<std::path::PathBuf>,
    },
    /// Search, ingest with vectors and memory as the store grows.
    Recall {
        /// How many records, one column each.
        #[arg(long, value_delimiter = ',', default_value = "1000,10000,100000")]
        sizes: Vec<usize>,
        /// Where the stores are made; a temporary folder otherwise.
        #[arg(long)]
        folder: Option<std::path::PathBuf>,
    },
    /// PostgreSQL beside SQLite and LangGraph's store. The tenants stay, and are used again.
    Postgres {
        /// How many records, one column each.
        #[arg(long, value_delimiter = ',', default_value = "10000,100000")]
        sizes: Vec<usize>,
        /// An empty database, as a URL.
        #[arg(long)]
        url: String,
        #[command(flatten)]
        extras: postgres::Extras,
    },
    /// Appending to a conversation and keeping its window small, as it grows.
    Chat {
        /// How many messages, one column each; at least 100.
        #[arg(long, value_delimiter = ',', default_value = "100,1000,10000")]
        sizes: Vec<usize>,
    },
    /// How long a context takes, and how far the bound on tokens lies above the true number.
    Context {
        /// How many materials to choose from, one column each.
        #[arg(long, value_delimiter = ',', default_value = "1000,10000")]
        sizes: Vec<usize>,
    },
    /// Searches of unusual stores beside plain ones: many speakers, users, expired records, a
    /// session imported newest first.
    Edges,
    /// A search after vectors that another process gave to records, beside one after nothing.
    Late {
        /// How many records there are.
        #[arg(long, default_value_t = 120_000)]
        records: usize,
        /// How many of them get a vector.
        #[arg(long, default_value_t = 100)]
        vectors: usize,
    },
    /// Memory of the indexes when more tenants are searched than fit into the cache.
    Tenants {
        #[arg(long, default_value_t = 10_000)]
        tenants: usize,
        /// How many records each tenant has.
        #[arg(long, default_value_t = 20)]
        records: usize,
        /// The budget of the cache, in MB.
        #[arg(long, default_value_t = 64)]
        budget: usize,
    },
    /// Reading one scope, and four at the same time, as the store grows.
    Facade {
        /// How many records, one column each.
        #[arg(long, value_delimiter = ',', default_value = "1000,10000,100000")]
        sizes: Vec<usize>,
    },
    /// Takes a folder in, then again unchanged, touched and edited.
    Ingest {
        /// How many files.
        #[arg(long, default_value_t = 1000)]
        files: usize,
        /// Where the files and the store are made; a temporary folder otherwise.
        #[arg(long)]
        folder: Option<std::path::PathBuf>,
    },
    /// How often learning is right, and what it costs to learn from 1000 new steps.
    Learn {
        /// How many steps there are already, one column each.
        #[arg(long, value_delimiter = ',', default_value = "10000,100000")]
        sizes: Vec<usize>,
        /// How many worlds of each sort; 0 leaves them out.
        #[arg(long, default_value_t = 200)]
        worlds: u64,
    },
    /// Starting a session from its log, and appending to it, as the log grows.
    Log {
        /// How long the log is, in MiB; one column each.
        #[arg(long, value_delimiter = ',', default_value = "1,100")]
        megabytes: Vec<usize>,
    },
    /// A server under load from `wrk`, which must be installed, beside Chroma's server.
    Http {
        /// How many records the server has.
        #[arg(long, default_value_t = 100_000)]
        records: usize,
        /// How many connections, one column each.
        #[arg(long, value_delimiter = ',', default_value = "1,8,64,256")]
        connections: Vec<usize>,
        /// How long each load lasts.
        #[arg(long, default_value_t = 5)]
        seconds: u64,
        /// The program `chroma` of the Python package chromadb.
        #[arg(long)]
        chroma: Option<std::path::PathBuf>,
    },
    /// Round trips of an MCP client over stdio, beside the reference server for memory.
    Mcp {
        /// How many notes, one column each.
        #[arg(long, value_delimiter = ',', default_value = "1000,10000,100000")]
        sizes: Vec<usize>,
        /// The reference server's program, from `npm install --prefix target/reference @modelcontextprotocol/server-memory`;
        /// looked for in target/reference otherwise, and left out if it is not there.
        #[arg(long)]
        reference: Option<std::path::PathBuf>,
    },
    /// Activation of agents beside reading their files, and indexing after one change.
    Agents {
        /// How many decisions one agent has, one column each.
        #[arg(long, value_delimiter = ',', default_value = "100,1000,10000")]
        sizes: Vec<usize>,
        /// How many other agents there are.
        #[arg(long, default_value_t = 100)]
        agents: usize,
    },
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    match Args::parse().what {
        What::Chat { sizes } => chat::run(&sizes),
        What::Context { sizes } => context::run(&sizes),
        What::Stores { sizes, folder } => stores::run(&sizes, folder.as_deref()),
        What::Ingest { files, folder } => ingest::run(files, folder.as_deref()),
        What::Recall { sizes, folder } => recall::run(&sizes, folder.as_deref()),
        What::Postgres { sizes, url, extras } => postgres::run(&sizes, &url, &extras),
        What::Edges => edges::run(&edges::SIZES),
        What::Late { records, vectors } => following::late(records, vectors),
        What::Tenants {
            tenants,
            records,
            budget,
        } => following::tenants(tenants, records, budget),
        What::Facade { sizes } => facade::run(&sizes),
        What::Mcp { sizes, reference } => {
            let reference = reference.or_else(mcp::usual_reference);
            mcp::run(&sizes, reference.as_deref())
        }
        What::Http {
            records,
            connections,
            seconds,
            chroma,
        } => http::run(records, &connections, seconds, chroma.as_deref()),
        What::Learn { sizes, worlds } => learn::run(&sizes, worlds),
        What::Log { megabytes } => log::run(&megabytes),
        What::Agents { sizes, agents } => agents::run(&sizes, agents),
    }
}
