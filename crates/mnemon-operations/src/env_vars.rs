//! Every environment variable that Mnemon reads.

/// A variable and what it is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EnvVar {
    pub name: &'static str,
    pub about: &'static str,
}

macro_rules! env_vars {
    ($($name:ident = $about:literal;)+) => {
        $(#[doc = $about] pub const $name: EnvVar = EnvVar { name: stringify!($name), about: $about };)+

        /// All of them, in the order of the documentation.
        pub const ALL: &[EnvVar] = &[$($name,)+];
    };
}

env_vars! {
    MNEMON_CONFIG = "The configuration file; no other is read then. Unset: `./mnemon.toml`, else `.mnemon/mnemon.toml` of the project ([as far as it is trusted](trust.md)), and after it `mnemon.toml` in the user's configuration folder.";
    MNEMON_HOME = "The folder of the default store. Unset: `.mnemon` in this folder or the \
        nearest one above that has it, else `mnemon` in the user's data folder.";
    MNEMON_STORE = "The store, as a URL such as `sqlite:PATH` or `postgres://USER:PASSWORD@HOST/DATABASE`. Same as `--store`.";
    MNEMON_TENANT = "Tenant whose memory is used. Same as `--tenant`.";
    MNEMON_SERVER = "The server that runs the commands, as a URL. Same as `--server`.";
    MNEMON_ACTOR = "Name recorded in the history for changes. Unset: `cli:` and the user's name.";
    MNEMON_JSON = "`true` or `false`: answer in JSON. Same as `--json`.";
    MNEMON_EMBEDDER = "The embedder: `builtin`, `none`, `minilm:FOLDER` or \
        `openai:MODEL@BASE_URL`.";
    MNEMON_EMBEDDER_KEY = "The key for an `openai:` embedder. It is read from here only and never shown.";
    MNEMON_LLM_KEY = "The key for the language model of `[llm]`, unless `llm.key_env` names another variable. It is never shown.";
    MNEMON_INDEX = "The index that searches use: `builtin`, an index in a search server such as `opensearch://HOST:9200/NAME`, or tables in a folder or a bucket, `lance:FOLDER` or `lance:s3://BUCKET/PATH` ([backends](backends.md)).";
    MNEMON_INDEX_USER = "The user at that search server.";
    MNEMON_INDEX_PASSWORD = "The password of that user. It is read from here only and never shown.";
    MNEMON_LONG_TERM_URL = "The service that keeps long-term memory, as a URL such as `mem0+https://api.mem0.ai`, or `none` for the store itself ([backends](backends.md)).";
    MNEMON_LONG_TERM_KEY = "The key for that service. It is read from here only and never shown.";
    MNEMON_RERANKER = "The reranker, which scores the best hits again together with the query: \
        `none` or `crossencoder:FOLDER`.";
    MNEMON_ONNXRUNTIME = "The absolute path of an ONNX runtime library, version 1.17 or later, that \
        runs `minilm` and `crossencoder` several times faster, or `none`. Unset: `ORT_DYLIB_PATH`, \
        else `models/libonnxruntime.so` in Mnemon's folder in the user's data folder, if it exists.";
    MNEMON_SHORT_TERM_TTL_DAYS = "How many days short-term records are kept, or `none` to keep them.";
    MNEMON_SHORT_TERM_MAX_ENTRIES = "How many short-term notes a tenant keeps, or `none` for no cap.";
    MNEMON_LONG_TERM_TTL_DAYS = "How many days long-term records are kept, or `none` to keep them.";
    MNEMON_LONG_TERM_MAX_ENTRIES = "How many long-term notes a tenant keeps, or `none` for no cap.";
    MNEMON_HISTORY_DAYS = "After how many days upkeep drops old versions, or `none` to keep them until they are purged.";
    MNEMON_NOTES_ROOT = "The folder below which `mnemon note add --file` reads. Unset: where the program was started.";
    MNEMON_SECRETS = "Treatment of keys, tokens and passwords in new text: `mask`, `refuse` or \
        `allow`.";
    MNEMON_AGENT_LANGUAGE = "The language of labels in new files of agents and teams: `en`, `vi` \
        or `bilingual`. An existing file keeps its language. Unset: `en`.";
    MNEMON_AGENTS = "The folder of agents' and teams' Markdown. Unset: `.microai` in this folder or the nearest one above that has it, up to the project's root. Same as `--root` of `mnemon agent` and `mnemon team`.";
    MNEMON_API_KEY = "The key of a server: `mnemon serve` and `mnemon mcp --http` expect it of \
        clients (at least 16 characters), and `--server` sends it.";
    MNEMON_API_KEY_FILE = "A file that holds that key.";
    MNEMON_TLS_CERT = "The certificate of `mnemon serve`, in PEM. Same as `--tls-cert`.";
    MNEMON_TLS_KEY = "The private key of that certificate, in PEM. Same as `--tls-key`.";
    MNEMON_SERVER_CA = "Certificates of your own authority, in PEM, that `--server https://…` accepts besides those of the system.";
    OTEL_EXPORTER_OTLP_ENDPOINT = "The address of an OpenTelemetry collector, to which `mnemon serve` sends a span for each request, if it was built with `--features otel`. `OTEL_EXPORTER_OTLP_HEADERS`, `OTEL_SERVICE_NAME`, `OTEL_RESOURCE_ATTRIBUTES` and `OTEL_TRACES_SAMPLER` apply, too.";
    ORT_DYLIB_PATH = "The ONNX runtime library, if `MNEMON_ONNXRUNTIME` is unset and this path is absolute.";
    XDG_CONFIG_HOME = "The user's configuration folder. Unset: `~/.config`.";
    XDG_DATA_HOME = "The user's data folder. Unset: `~/.local/share`; on macOS `~/Library/Application Support` and on Windows `%LOCALAPPDATA%`, unless `~/.local/share/mnemon` exists.";
    HOME = "The user's folder.";
    USERPROFILE = "The user's folder on Windows, if `HOME` is unset.";
    LOCALAPPDATA = "The user's data folder on Windows. Unset: `APPDATA`.";
    APPDATA = "The user's configuration folder on Windows, unless `~/.config/mnemon` exists.";
    USER = "The user's name, for the history.";
    NO_COLOR = "Set to anything: no colours.";
    COLUMNS = "Maximum width of tables if the output is not a terminal.";
    TZ = "The time zone in which times are shown and read.";
}

/// Variables that look like ours but are not known: most likely a slip of the pen. Those of the
/// test suite are let pass.
pub fn unknown<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    names
        .filter(|name| name.starts_with("MNEMON_") && !name.starts_with("MNEMON_TEST_"))
        .filter(|name| ALL.iter().all(|known| known.name != *name))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_pen_is_noticed() {
        let names = ["PATH", "MNEMON_STORE", "MNEMON_STROE", "MNEMON_TEST_ROUNDS"];
        assert_eq!(unknown(names.into_iter()), ["MNEMON_STROE"]);
    }
}
