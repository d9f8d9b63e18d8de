//! Which programming language a file is written in, by its name.

/// Extensions of source code, and what the language is called.
const LANGUAGES: &[(&str, &[&str])] = &[
    ("ada", &["adb", "ads"]),
    ("assembly", &["asm", "s"]),
    ("bash", &["sh", "bash", "zsh", "fish", "ksh"]),
    ("c", &["c", "h"]),
    ("clojure", &["clj", "cljs", "cljc", "edn"]),
    ("cmake", &["cmake"]),
    ("cpp", &["cc", "cpp", "cxx", "hh", "hpp", "hxx", "ipp"]),
    ("csharp", &["cs", "csx"]),
    ("css", &["css", "scss", "sass", "less"]),
    ("cuda", &["cu", "cuh"]),
    ("d", &["d"]),
    ("dart", &["dart"]),
    ("elixir", &["ex", "exs"]),
    ("elm", &["elm"]),
    ("erlang", &["erl", "hrl"]),
    ("fortran", &["f", "f90", "f95", "for"]),
    ("fsharp", &["fs", "fsi", "fsx"]),
    ("go", &["go"]),
    ("graphql", &["graphql", "gql"]),
    ("groovy", &["groovy", "gradle"]),
    ("haskell", &["hs", "lhs"]),
    ("hcl", &["tf", "hcl", "tfvars"]),
    ("ini", &["ini", "cfg", "conf", "properties"]),
    ("java", &["java"]),
    ("javascript", &["js", "jsx", "mjs", "cjs"]),
    ("json", &["json", "jsonc", "json5", "jsonl"]),
    ("julia", &["jl"]),
    ("kotlin", &["kt", "kts"]),
    ("lisp", &["lisp", "el", "scm", "rkt"]),
    ("lua", &["lua"]),
    ("make", &["mk", "mak"]),
    ("nim", &["nim"]),
    ("nix", &["nix"]),
    ("objective-c", &["m", "mm"]),
    ("ocaml", &["ml", "mli"]),
    ("pascal", &["pas", "pp"]),
    ("perl", &["pl", "pm"]),
    ("php", &["php"]),
    ("powershell", &["ps1", "psm1"]),
    ("proto", &["proto", "thrift"]),
    ("python", &["py", "pyi", "pyx"]),
    ("r", &["r"]),
    ("ruby", &["rb", "rake", "gemspec"]),
    ("rust", &["rs"]),
    ("scala", &["scala", "sc"]),
    ("solidity", &["sol"]),
    ("sql", &["sql"]),
    ("svelte", &["svelte"]),
    ("swift", &["swift"]),
    ("tcl", &["tcl"]),
    ("toml", &["toml"]),
    ("typescript", &["ts", "tsx", "mts", "cts"]),
    ("verilog", &["v", "sv", "svh"]),
    ("vhdl", &["vhd", "vhdl"]),
    ("vue", &["vue"]),
    ("xml", &["xml", "xsd", "xslt", "svg"]),
    ("yaml", &["yaml", "yml"]),
    ("zig", &["zig"]),
];

/// Files without an extension that are code.
const NAMES: &[(&str, &str)] = &[
    ("dockerfile", "dockerfile"),
    ("gemfile", "ruby"),
    ("jenkinsfile", "groovy"),
    ("justfile", "make"),
    ("makefile", "make"),
    ("rakefile", "ruby"),
];

/// The language of a file of this name, if it is source code.
pub fn language(name: &str) -> Option<&'static str> {
    let name = name.rsplit(['/', '\\']).next().unwrap_or(name);
    let name = name.to_lowercase();
    let Some((_, extension)) = name.rsplit_once('.') else {
        let known = NAMES.iter().find(|(known, _)| *known == name);
        return known.map(|(_, language)| *language);
    };
    let known = LANGUAGES
        .iter()
        .find(|(_, extensions)| extensions.contains(&extension));
    known.map(|(language, _)| *language)
}
