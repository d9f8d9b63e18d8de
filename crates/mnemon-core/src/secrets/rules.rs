//! The table of rules: every kind of secret that is recognised, with an example and a
//! counter-example. A test walks the table and checks both.
//!
//! Rows are data. Prefix rows and name rows are read by `prefixed.rs` and `named.rs`; the scanner of
//! a shape row is a function of its own.

use Alphabet::{
    Alnum, Base64, Dollar, Dotted, Hex, HexWord, LowerAlnum, Path, Upper, UpperDash, Word,
};
use Length::{AtLeast, Exactly};
use Sort::{Auth, Cookie, Key, Password, QuerySignature, Scheme, WeakKey};

/// One kind of secret and how it is recognised.
pub(super) struct Rule {
    /// The name that masks, receipts and errors show.
    pub(super) kind: &'static str,
    pub(super) form: Form,
    /// A text that the rule must find. Prefix rows give the part after the prefix, and shape rows
    /// are in pieces, so that scanners do not take this file for a leak.
    #[cfg_attr(
        not(test),
        allow(dead_code, reason = "checked by the test of the table")
    )]
    pub(super) example: &'static [&'static str],
    /// A similar text in which nothing may be found.
    #[cfg_attr(
        not(test),
        allow(dead_code, reason = "checked by the test of the table")
    )]
    pub(super) counter_example: &'static str,
}

pub(super) enum Form {
    Prefix(Prefix),
    /// A name that ends with this word says that a secret follows.
    Name(&'static str, Sort),
    /// A shape with a scanner of its own.
    Shape,
}

/// A token that begins with one of these prefixes.
pub(super) struct Prefix {
    pub(super) starts: &'static [&'static str],
    pub(super) rest: Alphabet,
    pub(super) length: Length,
    /// Whether the rest must also look randomly drawn, because the prefix is common in other words.
    pub(super) drawn: bool,
}

/// The characters of a token after its prefix.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Alphabet {
    Hex,
    /// Hexadecimal digits, `-` and `_`.
    HexWord,
    /// Hexadecimal digits and `$`.
    Dollar,
    LowerAlnum,
    /// Upper case letters and digits.
    Upper,
    UpperDash,
    Alnum,
    /// Letters, digits, `-` and `_`.
    Word,
    /// The same and `.`.
    Dotted,
    /// The same and `/`, as in the path of an address.
    Path,
    /// Both alphabets of Base64, padding, and percent signs where an address escapes them.
    Base64,
}

impl Alphabet {
    pub(super) const fn holds(self, byte: u8) -> bool {
        match self {
            Hex => byte.is_ascii_hexdigit(),
            HexWord => byte.is_ascii_hexdigit() || matches!(byte, b'-' | b'_'),
            Dollar => byte.is_ascii_hexdigit() || byte == b'$',
            LowerAlnum => byte.is_ascii_lowercase() || byte.is_ascii_digit(),
            Upper => byte.is_ascii_uppercase() || byte.is_ascii_digit(),
            UpperDash => byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'-',
            Alnum => byte.is_ascii_alphanumeric(),
            Word => byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'),
            Dotted => byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'),
            Path => byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'/'),
            Base64 => {
                byte.is_ascii_alphanumeric()
                    || matches!(byte, b'-' | b'_' | b'+' | b'/' | b'=' | b'%')
            }
        }
    }
}

/// How many characters follow the prefix. A longer run is removed whole.
#[derive(Clone, Copy)]
pub(super) enum Length {
    AtLeast(usize),
    /// No letter or digit may follow.
    Exactly(usize),
}

/// How the value after a name is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sort {
    /// Secret if it looks randomly drawn.
    Key,
    /// The same for a word that names many other things, too.
    WeakKey,
    /// Secret if it has the mix of characters that passwords have.
    Password,
    /// A password, or a Base64 form of `user:password`.
    Auth,
    /// `name=value` pairs.
    Cookie,
    /// A signature in the query of an address.
    QuerySignature,
    /// A scheme of the `Authorization` header.
    Scheme,
}

const fn prefix(
    kind: &'static str,
    starts: &'static [&'static str],
    rest: Alphabet,
    length: Length,
    example: &'static [&'static str],
    counter_example: &'static str,
) -> Rule {
    let prefix = Prefix {
        starts,
        rest,
        length,
        drawn: false,
    };
    Rule {
        kind,
        form: Form::Prefix(prefix),
        example,
        counter_example,
    }
}

/// A prefix whose rest must also look randomly drawn.
const fn drawn(
    kind: &'static str,
    starts: &'static [&'static str],
    rest: Alphabet,
    length: Length,
    example: &'static [&'static str],
    counter_example: &'static str,
) -> Rule {
    let mut rule = prefix(kind, starts, rest, length, example, counter_example);
    if let Form::Prefix(prefix) = &mut rule.form {
        prefix.drawn = true;
    }
    rule
}

const fn name(
    kind: &'static str,
    word: &'static str,
    sort: Sort,
    example: &'static [&'static str],
    counter_example: &'static str,
) -> Rule {
    Rule {
        kind,
        form: Form::Name(word, sort),
        example,
        counter_example,
    }
}

const fn shape(
    kind: &'static str,
    example: &'static [&'static str],
    counter_example: &'static str,
) -> Rule {
    Rule {
        kind,
        form: Form::Shape,
        example,
        counter_example,
    }
}

/// Kinds that several scanners report.
pub(super) const KEY: &str = "key or token";
pub(super) const PASSWORD: &str = "password";
pub(super) const COOKIE: &str = "session cookie";
pub(super) const ADDRESS: &str = "password in an address";
pub(super) const PRIVATE_KEY: &str = "private key";
pub(super) const WEB_TOKEN: &str = "signed web token";
pub(super) const CHAT_TOKEN: &str = "chat token";
pub(super) const MAIL_KEY: &str = "mail key";
pub(super) const OFFICE_TOKEN: &str = "office tool token";
pub(super) const CARD: &str = "payment card number";
pub(super) const ACCOUNT: &str = "bank account number";

/// A longer prefix stands before a shorter one that it begins with.
#[rustfmt::skip]
pub(super) const RULES: &[Rule] = &[
    // Clouds and hosting.
    prefix("cloud access key", &["AKIA", "ASIA", "ABIA", "ACCA"], Upper, Exactly(16), &["TB6KWL4MGCPLJF7K"], "AKIA is the prefix of an access key id"),
    prefix("cloud access key", &["LTAI"], Alnum, AtLeast(16), &["3G0XTTvv27XixDx8"], "LTAI keys have 24 characters"),
    prefix("cloud access key", &["AKID"], Alnum, Exactly(32), &["OlIcNBax7JtXWu5Mwy86ZufVn0XgcAOg"], "AKID keys come with a SecretKey"),
    prefix("cloud access key", &["SCW"], Upper, Exactly(17), &["44WHPHHTQWABQITSJ"], "SCW is short for Scaleway"),
    prefix("cloud access key", &["AIza"], Word, AtLeast(35), &["tOtvQVp6VLoXph04xsByH0d2pJyYcnjBFcG"], "AIza begins a browser key"),
    prefix("cloud access token", &["GOCSPX-"], Word, AtLeast(24), &["r34U3muZ-cQEpdp_UCS_aE0G"], "GOCSPX-is-the-prefix"),
    prefix("cloud access token", &["ya29."], Dotted, AtLeast(20), &["XaFvWgCqRmdpprRRfrSw"], "ya29.example"),
    prefix("cloud access token", &["1//0"], Word, AtLeast(30), &["MuxkSvLi_B9h619tuR4RghQCtV7NNm"], "1//0 divided by zero"),
    prefix("cloud access token", &["IQoJb3JpZ2lu", "FwoGZXIvYXdz", "AQoDYXdz"], Base64, AtLeast(60), &["fF7i4RiKFvkZSflFvTfCAOgqAs57nBLBnmIXZtVT/zPnqE51t1oLlNo5/9VF"], "FwoGZXIvYXdz begins a session token"),
    prefix("cloud access token", &["dop_v1_", "doo_v1_", "dor_v1_"], Hex, AtLeast(64), &["6b0503de1b5bb44b1f82142f175d53d495e3095f258ebadfd6403fe37c7468e4"], "dop_v1_is_the_prefix"),
    prefix("cloud access token", &["amzn.mws."], Word, AtLeast(36), &["m7SLcCjExm9ufeHOk6Qf1I4q9eY-C_euCLUE"], "amzn.mws.is the prefix"),
    prefix("cloud access token", &["amzn1.oa2-cs.v1."], Hex, AtLeast(32), &["a1f14808b3bc1e1e0615cbb2e6547eec"], "amzn1.oa2-cs.v1.client"),
    prefix("cloud access token", &["dapi"], Hex, Exactly(32), &["e8f1155e4d96f4b0db9c5323cfc22be6"], "dapi0123"),
    prefix("cloud access token", &["pul-"], Hex, AtLeast(40), &["453701f2495e924f5f4f591ad416fb323a24433a"], "pul-request"),
    prefix("cloud access token", &["tskey-"], Word, AtLeast(20), &["xw5DxSOxgNM0_5UbbJAF"], "tskey-auth-short"),
    prefix("cloud access token", &["nfp_"], Alnum, AtLeast(36), &["DvbEOwU7IgCZmTHD5LkdjW2OdPtuFvTihm3T"], "nfp_deploy_token_for_the_site"),
    prefix("cloud access token", &["rnd_"], Alnum, AtLeast(28), &["Z307JyDhekGzzs6Mm6OlCKxK6zQt"], "rnd_seed_of_the_simulation_2024"),
    prefix("cloud access token", &["fo1_"], Word, AtLeast(36), &["gjpieJRk8yo0PTAOkoD8im9FyoQdNgdTKIKB"], "fo1_first_float_operand"),
    prefix("cloud access token", &["fm2_", "fm1r_", "fm1a_"], Base64, AtLeast(60), &["4MgySKVQzahhSF1bRJw/NAP9WL3dSoh1UCzexiFpZxUhg/FmflwG8uQSj/0W"], "fm2_modulator_second_stage"),
    prefix("cloud access token", &["v1.0-"], Word, AtLeast(140), &["oFIDafZallv1TESsrzC8n4oRbW7J23BHEjyjT4WXUVW07FR7ACUFw0CIU1FlRYgr-dKyZVBbq6bmAcMkYfkEu_CZdDpf2fgQ4AHhWMNwAjW2YyRSZQxStmof6ymsEJveFts-vUQCv_8L"], "v1.0-beta-2024-10-12"),
    prefix("cloud access token", &["sbp_"], Hex, Exactly(40), &["a85c0df6264b688f7bd7c5312255493413cfd3f1"], "sbp_project"),
    prefix("cloud access token", &["sb_secret_"], Word, AtLeast(20), &["99dRVw9a_OOT6yoQ5UEh"], "sb_secret_name"),
    prefix("cloud access token", &["pscale_tkn_", "pscale_pw_", "pscale_oauth_"], Dotted, AtLeast(30), &["q2mmeUAKsHBaNkosgkIXFnn6vPBkBM"], "pscale_pw_rotation"),
    prefix("cloud access token", &["vercel_blob_rw_"], Word, AtLeast(30), &["KD21mryPl9jFrkUgSHPJa4xW7iROJt"], "vercel_blob_rw_token"),
    prefix("cloud access token", &["sl."], Word, AtLeast(100), &["TvN6GWvud8SyuRy45COdrjaH-dvYoduuUo7V-L51r-K4h3c1_qVRdC__UUDq4oZtAjxdFnjSuHG2dW_SiMR4KNfhyO4WdSAN408T"], "sl.Parameter"),
    prefix("vault token", &["hvs.", "hvb.", "hvr."], Word, AtLeast(24), &["J0kq_IWrGIrfyT3eDVrAZFK6"], "hvs.get_client()"),
    prefix("vault token", &["dp.pt.", "dp.st.", "dp.sa.", "dp.ct.", "dp.scim.", "dp.audit."], Dotted, AtLeast(38), &["T0ueUSMJvsZl8RbyKQUdiKb3elcBzDXzHyVlrG"], "dp.st.dev"),
    prefix("vault token", &["ops_eyJ"], Word, AtLeast(100), &["8n4CxTqNmJwm2jla3OX98E-aRwIW66ttdN3109RmtLI8mBm_F3okEHntAciWAgWGIOLqNIDnJsLNkZNpYGynJqiv0FX6taUeDwQJ"], "ops_eyJ is the prefix"),
    prefix("vault token", &["A3-"], UpperDash, AtLeast(30), &["EAXPIU6OAOUKIADL2MQFIXBKJK5HVX"], "A3-PAPER"),
    prefix("private key", &["AGE-SECRET-KEY-1"], Upper, AtLeast(40), &["E775E6G23WJAOFQ62TURV2LBLGOTO4QVW5VYHGTE"], "AGE-SECRET-KEY-1 begins the second line"),
    prefix("private key", &["MIIEvQIBADANBgkqh", "MIIEvgIBADANBgkqh", "MIIEvAIBADANBgkqh", "MIIEpAIBAAKCAQEA", "MIIEowIBAAKCAQEA", "MIIEogIBAAKCAQEA", "MHcCAQEEI"], Base64, AtLeast(40), &["Lg7k1ZFFOCJ9L8vAD4KemCy1E5t8tyShcWPt7ggS"], "MIIEpAIBAAKCAQEA begins every RSA key"),
    // Keys of a Mnemon server.
    prefix("server key", &["mnemon_"], Word, AtLeast(67), &["k7f2m9qa_8n4cxtqnmjwm2jya3qx98eaarwjw66ttdn3109rmtyk8mbmf3qkehntacjwa"], "mnemon_api_key_of_the_server"),
    // Repositories.
    prefix("repository token", &["ghp_", "gho_", "ghu_", "ghs_", "ghr_"], Alnum, AtLeast(30), &["T53pfk2HOpuPmaG06AaD1Ik2hyhEV4cgoENj"], "ghp_token_from_the_settings_page_of_the_account"),
    prefix("repository token", &["github_pat_"], Word, AtLeast(22), &["XgkCfNGaSudXQwlf6o3Tzl"], "github_pat_11"),
    prefix("repository token", &["glpat-", "gldt-", "glrt-", "glptt-", "glcbt-", "glft-", "glsoat-", "glffct-", "glagent-", "gloas-", "glimt-", "glwt-"], Dotted, AtLeast(20), &["W8jpqYP7zZ0jj0RJORaj"], "glpat-is-the-prefix"),
    prefix("repository token", &["GR1348941"], Word, AtLeast(20), &["QSNaBUsjJ_J_CLItjarO"], "GR1348941 is the prefix"),
    prefix("repository token", &["ATBB"], Alnum, AtLeast(24), &["74CpM1tn2wRKitwSzDKXr2G7"], "ATBB is the prefix"),
    prefix("repository token", &["ATCTT3xFfG", "ATATT3xFfG"], Base64, AtLeast(60), &["tWgWVdx+yPjsrE4u0Q39J+lwpK7v/5OGC1+VmKzXp9ZKoAyucct3i2OOCv9m"], "ATATT3xFfG is the prefix"),
    prefix("repository token", &["sgp_"], HexWord, AtLeast(40), &["28b65aa5279a055a17fd96c3ab7230e8fbb70fc5"], "sgp_local_"),
    prefix("repository token", &["slk_"], Hex, AtLeast(64), &["6e7221482cc337e3b72d1943cb221f4746bc62124e9ad186a9d4502a72ab5010"], "slk_mode"),
    // Chat.
    prefix("chat token", &["xoxe.xoxp-", "xoxe.xoxb-", "xoxb-", "xoxp-", "xoxa-", "xoxr-", "xoxs-", "xoxe-", "xoxc-", "xoxo-"], Word, AtLeast(20), &["NHwZsap0mVkZ7XjpvJ8i"], "xoxb-bot-token"),
    prefix("chat token", &["xoxd-"], Base64, AtLeast(20), &["ucQRVkzOeMmn0D0Amjs3"], "xoxd-is-a-cookie"),
    prefix("chat token", &["xapp-"], Word, AtLeast(20), &["ARc7QP_2Z3elpFc6WigE"], "xapp-app-level"),
    prefix("webhook", &["hooks.slack.com/services/", "hooks.slack.com/workflows/", "hooks.slack.com/triggers/"], Path, AtLeast(20), &["EIi1FBbslYvYGNeN9IRZ"], "hooks.slack.com/services/"),
    prefix("webhook", &["discord.com/api/webhooks/", "discordapp.com/api/webhooks/"], Path, AtLeast(30), &["TSERdjTdG7OCpJvLcRtwJWsX0h2ILT"], "discord.com/api/webhooks/"),
    prefix("webhook", &["outlook.office.com/webhook/", "outlook.office365.com/webhook/"], Path, AtLeast(36), &["Uyo7G3mmiyWEmzV5xvg7Exz0wzEsRo8L9MY1"], "outlook.office.com/webhook/"),
    prefix("webhook", &["webhook.office.com/webhookb2/"], Path, AtLeast(36), &["LJyGHA35xnFYtLQ2JMis0TWlVufs5zd8QhYZ"], "webhook.office.com/webhookb2/"),
    prefix("webhook", &["hooks.zapier.com/hooks/catch/"], Path, AtLeast(12), &["voYmRKa6CAGF"], "hooks.zapier.com/hooks/"),
    prefix("webhook", &["hook.integromat.com/", "hook.eu1.make.com/", "hook.us1.make.com/"], Path, AtLeast(24), &["vtkJkdPjuv6qIJey97dFhGV2"], "hook.eu1.make.com/docs"),
    prefix("webhook", &["open.feishu.cn/open-apis/bot/v2/hook/", "open.larksuite.com/open-apis/bot/v2/hook/"], Path, AtLeast(30), &["Uq7r9z7R7RR7XTTNdZCdXz9iUugxoQ"], "open.feishu.cn/open-apis/bot/v2/hook/"),
    // Models.
    prefix("model API key", &["sk-ant-"], Word, AtLeast(20), &["zRQYld04rnM7gEMqDDki"], "sk-ant-api03"),
    prefix("model API key", &["sk-proj-", "sk-svcacct-", "sk-admin-", "sk-or-v1-", "sk-lf-"], Word, AtLeast(20), &["KFLxRszx1L2tkCi3-Eq6"], "sk-proj-name"),
    drawn("model API key", &["sk-"], Word, AtLeast(20), &["gDifdF_YvKEfxMabxPJz"], "sk-learn-pipelines-and-transformers-explained"),
    prefix("model API key", &["gsk_"], Alnum, AtLeast(40), &["5MMRMiIBS8QK6TI2PVd6qgrvV8IsB0d2QbsBUw3z"], "gsk_widget_get_parent"),
    prefix("model API key", &["hf_", "api_org_"], Alnum, AtLeast(30), &["nTUKkiGoeoKjrbhj9kUlnXDc1AEjBr"], "hf_hub_download"),
    prefix("model API key", &["r8_"], Alnum, AtLeast(36), &["2UzqVBR1RJ5zoMzZiHcgo1kelAg7GdqY3Lc4"], "r8_register_of_the_machine"),
    prefix("model API key", &["pplx-"], Alnum, AtLeast(40), &["HdKy4s2W7aC4SBrB9O7UqAN2ZNihRmBODVDXrrt6"], "pplx-online"),
    prefix("model API key", &["xai-"], Alnum, AtLeast(60), &["DdiMRukz7vdfQT28gYt5dM87ischCbZ1fQ97fRIkLhPR9MpjJavCykEWLa0x"], "xai-explanations"),
    prefix("model API key", &["nvapi-"], Word, AtLeast(50), &["hv7nlQaVY5C0XQ3_gzG0V1bMgkGhFIWq3gACPMrKfIWuUjvZDL"], "nvapi-client"),
    prefix("model API key", &["jina_"], Alnum, AtLeast(50), &["dzXhUd9TG42V4tTC7htSWhgbyKJkBxHirZVCwkMbmRYEJxEHPZ"], "jina_embeddings_v3"),
    prefix("model API key", &["tvly-"], Word, AtLeast(28), &["ZfalP5vH1X8ncE4puMNRb314rYVr"], "tvly-dev-search"),
    prefix("model API key", &["csk-"], Alnum, AtLeast(40), &["0KEzWJE1MSBOeu2AAfmkiUoXFBkIK2Trwh2IfzdQ"], "csk-cluster"),
    prefix("model API key", &["tgp_v1_"], Word, AtLeast(40), &["KTMuib5zmQ88pfmTpf3Km-XGbf4J3iMxdlxEb4Hd"], "tgp_v1_model"),
    prefix("model API key", &["pcsk_"], Word, AtLeast(40), &["GxlNJCAht-6M9cr0PHhXSfyloe2cAjAx8MO04g90"], "pcsk_index"),
    prefix("model API key", &["lsv2_pt_", "lsv2_sk_"], HexWord, AtLeast(40), &["be2e57415686ad7ce15d593a619672a020746459"], "lsv2_pt_project"),
    drawn("model API key", &["sk_"], Hex, AtLeast(40), &["7b7d7a3cb2a24a0d8fe4c368eeb9f68b9610ebf6"], "sk_buff_alloc"),
    // Payment and shops.
    prefix("payment key", &["sk_live_", "sk_test_", "rk_live_", "rk_test_"], Alnum, AtLeast(16), &["tptqauoIZllR5LfD"], "sk_test_mode"),
    prefix("payment key", &["whsec_"], Base64, AtLeast(24), &["nsAHIo6axMZs983SfYtuWLQZ"], "whsec_header"),
    prefix("payment key", &["sq0atp-", "sq0csp-"], Word, AtLeast(22), &["zd5ilIOCy8wpFLkFB66HaO"], "sq0atp-short"),
    prefix("payment key", &["EAAA"], Word, AtLeast(60), &["9UgIn8SXCneYL1B4Cp9naE6WNniIohRYQ8-ijDjGe1z5OMG9j6nQd4NSJ84R"], "EAAA begins a token"),
    prefix("payment key", &["access_token$production$", "access_token$sandbox$"], Dollar, AtLeast(40), &["883b5d08904dd6b9d3d1ae48c591250155e8df29"], "access_token$production$"),
    prefix("payment key", &["FLWSECK-", "FLWSECK_TEST-"], Word, AtLeast(30), &["TYrYv6DIeIdP5WuB6hTUGrOGl_Drtv"], "FLWSECK-short"),
    prefix("payment key", &["access-production-", "access-sandbox-", "access-development-"], HexWord, AtLeast(36), &["b7dcc007-5d7e-4073-1ca6-e27b6b2fe1ca"], "access-production-systems-only-with-permission"),
    prefix("social media token", &["EAAC"], Alnum, AtLeast(80), &["Nz9x3Hlb5Ye6EHY0bqsTWDbwOOUdGesomptAMbzIWBiVo4liG8OwRdHLAOe9miFIu756reUNdh7I3Y3i"], "EAAC begins a token"),
    prefix("shop token", &["shpat_", "shpca_", "shppa_", "shpss_", "shpua_"], Hex, AtLeast(32), &["07573132d3ff75161036b0c988f9b2c0"], "shpat_is_the_prefix"),
    // Packages.
    prefix("package registry token", &["npm_"], Alnum, AtLeast(36), &["1k8xQIorSsOeE93YZpAsQpakKNXBdeVIwIck"], "npm_config_registry"),
    prefix("package registry token", &["pypi-"], Word, AtLeast(50), &["s505RCsSffI6-7XW8V1Th5IiPmFegZMS2hbckAX3IDfVvwUrih"], "pypi-publish-action"),
    prefix("package registry token", &["rubygems_"], Hex, AtLeast(40), &["b70ef5d8ce771846ad3fdb7c87110ba0053e154d"], "rubygems_mirror"),
    prefix("package registry token", &["dckr_pat_", "dckr_oat_"], Word, AtLeast(24), &["sah4mkBUB-CDZmPdrox00M6S"], "dckr_pat_name"),
    drawn("package registry token", &["cio"], Alnum, Exactly(32), &["A5H68FHtdnhbu8YGORvTA9pESauyLUMe"], "cioloopback"),
    prefix("package registry token", &["oy2"], LowerAlnum, Exactly(43), &["nfgb81spd6x2wn3ggrjlmm37i9n46u2pce1hgaya2hf"], "oy2 is the prefix"),
    prefix("package registry token", &["AKCp"], Alnum, AtLeast(60), &["rolEnzYtFnceTFyYyx63UhSYHpbvQm9cabT6KoTKlzArnDQh3VaQurx1Qpmt"], "AKCp is the prefix"),
    prefix("package registry token", &["CLOJARS_"], Hex, AtLeast(60), &["56fa4cbf2bd94840cc2d068878c88cdef0ceca79bd2a144fc678ba7aa51d"], "CLOJARS_USERNAME"),
    prefix("package registry token", &["CFPAT-"], Word, AtLeast(40), &["jUMQZ4NgIAZWZLY91PQYqyqdLlusmoIs-mkJZvto"], "CFPAT-name"),
    // Mail and messages.
    prefix("mail key", &["SG."], Dotted, AtLeast(40), &["KEiCJUPx1gh85XZBCP46Wd4IHblkmNxI7x2MF17Q"], "SG.Module.function"),
    prefix("mail key", &["key-"], Hex, Exactly(32), &["a601811775cdc661d5a92e71b9069e3c"], "key-value"),
    prefix("mail key", &["xkeysib-", "xsmtpsib-"], HexWord, AtLeast(60), &["e3c7045f841d068705dc220de5149bbf9172877a73a6c32a8d9e530ffbeb"], "xkeysib-name"),
    prefix("mail key", &["mlsn."], Hex, AtLeast(60), &["c21ea74541e2e205e890140f68f52f9ca42c31b936b98753604a52312e85"], "mlsn.com"),
    drawn("mail key", &["re_"], Word, AtLeast(26), &["TLGN-yKerNDYiHWomdNwoq4RdS"], "re_compile_all_the_patterns_of_the_table"),
    prefix("message service key", &["SK"], Hex, Exactly(32), &["e959c5fac202092639f9ca46053c92e3"], "SKU 0123456789"),
    prefix("API client key", &["PMAK-"], HexWord, AtLeast(50), &["3d75af360758faf8f87f3a14df3992728d3d43e4eda936cbdf"], "PMAK-name"),
    prefix("API client key", &["PMAT-"], Alnum, AtLeast(26), &["x5fkDHJxOSwk4UdV5h3vdQZcLQ"], "PMAT-name"),
    // Monitoring and building.
    prefix("monitoring key", &["NRAK-", "NRII-", "NRJS-"], Word, AtLeast(19), &["sVhyN91dk3KZnuuNHu1"], "NRAK-name"),
    prefix("monitoring key", &["glc_"], Base64, AtLeast(32), &["fp+j4P+n+qBToPsFQKyJCK0bsmOwAdfL"], "glc_client"),
    prefix("monitoring key", &["glsa_"], Word, AtLeast(40), &["AgNZwiHgJhTCRoA1KTCMHA1TTITSBMtZ3W1Bx-Ne"], "glsa_service_account"),
    prefix("monitoring key", &["sntrys_", "sntryu_"], Base64, AtLeast(60), &["t4rAV6TW2Y/Iw1nLOUQf/2xTV/wrOeez8fhgfa4T0oYP138kjJ/nkJF5DhO8"], "sntrys_name"),
    prefix("monitoring key", &["dt0c01.", "dt0s01."], Dotted, AtLeast(60), &["sUgDaoklQDdpxK6p6B88hNFG3c6DNdaPbsFEHNQ46VPlZvg0bkSOWMq6jm8M"], "dt0c01.sample"),
    prefix("monitoring key", &["phx_"], Alnum, AtLeast(40), &["7U0UpOKzvbjsQWumerfkeqPO0hSNjWMvUbxENxgh"], "phx_project"),
    prefix("build service token", &["CCIPAT_", "CCIPRJ_"], Word, AtLeast(30), &["uU1ZLAjE4g3-AOPF20OBDKEfUwJ9UL"], "CCIPAT_name"),
    prefix("build service token", &["bkua_"], Hex, Exactly(40), &["598af18f3a1a0d3708d63be3723aa067d8871db7"], "bkua_agent"),
    prefix("build service token", &["pnu_", "pnb_"], Alnum, AtLeast(36), &["52OAfO42m3LzHUCMd7ofFmy3oinN6O56FzNk"], "pnu_user"),
    // Office tools.
    prefix("office tool token", &["lin_api_", "lin_oauth_", "lin_wh_"], Alnum, AtLeast(32), &["RLYpc9V3DyR8pVFwZHbfvBZpptsnIz7Z"], "lin_api_client"),
    drawn("office tool token", &["secret_"], Alnum, Exactly(43), &["Q3Qj1Rak1PMxA6FIngmi2fAMvQrTEPjAP7BiUOKbxS8"], "secret_of_the_old_house_in_the_garden_street"),
    prefix("office tool token", &["ntn_"], Alnum, AtLeast(40), &["K2fjYRdcBfocFdvi6foZnkJpBjH64OEuH1vmTqyX"], "ntn_page"),
    prefix("office tool token", &["figd_"], Word, AtLeast(36), &["18adFk2Gmffm77oio-YIYB_LiZjWMT1U3GcL"], "figd_file"),
    prefix("office tool token", &["duffel_live_", "duffel_test_"], Word, AtLeast(40), &["p-nOHQz4Oiff43IgFF8LkYP_coFGn6PTv_FRE1Mq"], "duffel_test_mode"),
    prefix("office tool token", &["shippo_live_", "shippo_test_"], Hex, AtLeast(40), &["fc7b8d4209e52398f204f30ac25cfbea65cadac9"], "shippo_test_mode"),
    prefix("office tool token", &["EZAK", "EZTK"], Alnum, Exactly(54), &["Mc3Y14KJy6YzUVi7AllvsKlh3rA2adDvaL49qg7UbYD1KcZ8E2Aksf"], "EZAK is the prefix"),
    prefix("office tool token", &["waka_"], HexWord, AtLeast(36), &["c80754c6-c063-134f-6106-98ed065ae41c"], "waka_time"),
    prefix("office tool token", &["aio_"], Alnum, Exactly(28), &["rIrBQAcH80iMcRW0u4123hBZYexI"], "aio_read_and_write"),
    prefix("office tool token", &["ATTA"], Hex, AtLeast(60), &["da1f48324f657861a812f4cf8f611ff89c526769de703d4f0b241ee41485"], "ATTA is the prefix"),

    // Names. The word is the end of the name: `DB_PASSWORD`, `accessToken`, `X-Api-Key`.
    name(KEY, "apikey", Key, &["API", "KEY=a8Kd03LmQx7Zt5Rv1Yb9"], "apikey: str"),
    name(KEY, "khóa api", Key, &["khóa ", "API là a8Kd03LmQx7Zt5Rv1Yb9"], "khóa API là bắt buộc"),
    name(KEY, "khoá api", Key, &["khoá ", "API: a8Kd03LmQx7Zt5Rv1Yb9"], "khoá API: bắt buộc"),
    name(KEY, "apiキー", Key, &["API", "キーはa8Kd03LmQx7Zt5Rv1Yb9です"], "APIキーは環境変数にあります"),
    name(KEY, "api キー", Key, &["API ", "キー: a8Kd03LmQx7Zt5Rv1Yb9"], "API キー: 設定画面で確認"),
    name(KEY, "アクセスキー", Key, &["アクセス", "キーは「a8Kd03LmQx7Zt5Rv1Yb9」"], "アクセスキーは二つあります"),
    name(KEY, "トークン", Key, &["トーク", "ン: a8Kd03LmQx7Zt5Rv1Yb9"], "トークンは一時間で失効します"),
    name(KEY, "密钥", Key, &["密", "钥是a8Kd03LmQx7Zt5Rv1Yb9"], "密钥是必填项"),
    name(KEY, "令牌", Key, &["令", "牌：a8Kd03LmQx7Zt5Rv1Yb9"], "令牌：一小时后失效"),
    name(KEY, "토큰", Key, &["토", "큰은 a8Kd03LmQx7Zt5Rv1Yb9"], "토큰은 필수입니다"),
    name(KEY, "key", WeakKey, &["aws_secret_access_", "key = a8Kd03LmQx7Zt5Rv1Yb9/Nc2W+Ej6Hu0Pg8Fi3"], "key: sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="),
    name(KEY, "token", Key, &["\"access", "Token\": \"a8Kd03LmQx7Zt5Rv1Yb9\""], "next_page_token: a8Kd03LmQx7Zt5Rv1Yb9"),
    name(KEY, "secret", Key, &["client_", "secret = '9f86d081884c7d659a2feaa0c55ad015'"], "secret: kubernetes-secret-name-of-the-app"),
    name(KEY, "secrets", Key, &["app_", "secrets: a8Kd03LmQx7Zt5Rv1Yb9"], "secrets: inherit-all-of-the-workflow"),
    name(KEY, "credential", Key, &["credent", "ial=a8Kd03LmQx7Zt5Rv1Yb9"], "credential = load_credential_from_disk"),
    name(KEY, "credentials", Key, &["credent", "ials: a8Kd03LmQx7Zt5Rv1Yb9"], "credentials: service-account-credentials-file"),
    name(KEY, "jwt", Key, &["j", "wt=a8Kd03LmQx7Zt5Rv1Yb9"], "jwt = decode_json_web_token"),
    name(KEY, "sig", QuerySignature, &["https://a.example/c?sv=2022&s", "ig=a8Kd03LmQx7Zt5Rv1Yb9%2FNc2Ws4Ej6Hu0Pg8Fi3kQ%3D"], "sig: RWSjc0NhYjM5ZTQ3YjU2N2E4ZDM5ZjQ2"),
    name(KEY, "signature", QuerySignature, &["https://a.example/c?X-Amz-Sig", "nature=9f86d081884c7d659a2feaa0c55ad0159f86d081884c7d659a2feaa0c55ad015"], "signature: 9f86d081884c7d659a2feaa0c55ad015"),
    name(KEY, "bearer", Scheme, &["Authorization: Bea", "rer a8Kd03LmQx7Zt5Rv1Yb9"], "Bearer tokens-are-preferred-everywhere"),
    name(KEY, "basic", Scheme, &["Authorization: Ba", "sic YW5uOmh1bnRlcjIheA=="], "Basic authentication-is-off"),
    name(KEY, "auth", Auth, &["{\"au", "th\": \"YW5uOmh1bnRlcjIheA==\"}"], "auth: oauth2-proxy"),
    name(COOKIE, "cookie", Cookie, &["Set-Coo", "kie: session=a8Kd03LmQx7Zt5Rv1Yb9; Path=/"], "Cookie: theme=dark; lang=en-GB"),
    name(PASSWORD, "password", Password, &["DB_PASS", "WORD=s3cr3tpw9"], "password: at_least_8_chars"),
    name(PASSWORD, "passwd", Password, &["pass", "wd = \"hunter2!x\""], "passwd: files systemd"),
    name(PASSWORD, "passphrase", Password, &["pass", "phrase: Tr0ub4dor&3"], "passphrase: Option<String>"),
    name(PASSWORD, "passcode", Password, &["pass", "code: Tr0ub4dor&3"], "passcode: required"),
    name(PASSWORD, "pass", Password, &["smtp_", "pass: Tr0ub4dor&3"], "bypass: Tr0ub4dor&3"),
    name(PASSWORD, "pwd", Password, &["p", "wd: Tr0ub4dor&3"], "PWD=/srv/app1/data2"),
    name(PASSWORD, "pw", Password, &["db_", "pw=Tr0ub4dor&3"], "mpw=Tr0ub4dor&3"),
    name(PASSWORD, "identified by", Password, &["CREATE USER ann IDENTIFIED", " BY 'Tr0ub4dor&3'"], "The bird was identified by 'Miller, 2019'"),

    // The same in other languages.
    name(PASSWORD, "passwort", Password, &["Das Pass", "wort ist Xk9mQ2vL7pTz"], "Das Passwort ist erforderlich"),
    name(PASSWORD, "kennwort", Password, &["Kenn", "wort: Xk9mQ2vL7pTz"], "Kennwort: bitte beim Administrator erfragen"),
    name(PASSWORD, "wachtwoord", Password, &["Het wacht", "woord is Xk9mQ2vL7pTz"], "Het wachtwoord is verplicht"),
    name(PASSWORD, "lösenord", Password, &["lösen", "ord är Xk9mQ2vL7pTz"], "Ett lösenord är nödvändigt"),
    name(PASSWORD, "mot de passe", Password, &["le mot de ", "passe est Xk9mQ2vL7pTz"], "le mot de passe est obligatoire"),
    name(PASSWORD, "contraseña", Password, &["la contra", "seña es Xk9mQ2vL7pTz"], "la contraseña es obligatoria"),
    name(PASSWORD, "contrasena", Password, &["contra", "sena: Xk9mQ2vL7pTz"], "contrasena: obligatoria"),
    name(PASSWORD, "clave", Password, &["la cla", "ve es Xk9mQ2vL7pTz"], "la clave es preguntar temprano"),
    name(PASSWORD, "senha", Password, &["a sen", "ha é Xk9mQ2vL7pTz"], "a senha é obrigatória"),
    name(PASSWORD, "parola", Password, &["la paro", "la è Xk9mQ2vL7pTz"], "la parola è d'argento"),
    name(PASSWORD, "hasło", Password, &["has", "ło to Xk9mQ2vL7pTz"], "hasło jest wymagane"),
    name(PASSWORD, "heslo", Password, &["hes", "lo je Xk9mQ2vL7pTz"], "heslo je povinné"),
    name(PASSWORD, "jelszó", Password, &["jel", "szó: Xk9mQ2vL7pTz"], "jelszó: kötelező"),
    name(PASSWORD, "salasana", Password, &["sala", "sana on Xk9mQ2vL7pTz"], "salasana on pakollinen"),
    name(PASSWORD, "şifre", Password, &["şif", "re: Xk9mQ2vL7pTz"], "şifre: zorunlu"),
    name(PASSWORD, "пароль", Password, &["Парол", "ь — Xk9mQ2vL7pTz"], "Пароль — обязательное поле"),
    name(PASSWORD, "пароля", Password, &["парол", "я: Xk9mQ2vL7pTz"], "длина пароля: восемь"),
    name(PASSWORD, "mật khẩu", Password, &["mật ", "khẩu là Xk9mQ2vL7pTz"], "Mật khẩu: hãy hỏi quản trị viên"),
    name(PASSWORD, "mật mã", Password, &["mật ", "mã là Xk9mQ2vL7pTz"], "Mật mã: hãy hỏi quản trị viên"),
    name(PASSWORD, "mat khau", Password, &["mat ", "khau la Xk9mQ2vL7pTz"], "mat khau la bat buoc"),
    name(PASSWORD, "kata sandi", Password, &["kata ", "sandi adalah Xk9mQ2vL7pTz"], "kata sandi adalah wajib"),
    name(PASSWORD, "パスワード", Password, &["パスワー", "ドは Xk9mQ2vL7pTz です"], "パスワードは管理者に聞いてください"),
    name(PASSWORD, "暗証番号", Password, &["暗証番", "号は「Xk9mQ2vL7pTz」"], "暗証番号は四桁です"),
    name(PASSWORD, "密码", Password, &["密", "码是Xk9mQ2vL7pTz"], "密码是必填项"),
    name(PASSWORD, "密碼", Password, &["密", "碼：Xk9mQ2vL7pTz"], "密碼：必填"),
    name(PASSWORD, "口令", Password, &["口", "令为 Xk9mQ2vL7pTz"], "口令为必填项"),
    name(PASSWORD, "비밀번호", Password, &["비밀번", "호는 Xk9mQ2vL7pTz"], "비밀번호는 필수입니다"),
    name(PASSWORD, "암호", Password, &["암", "호: Xk9mQ2vL7pTz"], "암호: 필수"),
    name(PASSWORD, "รหัสผ่าน", Password, &["รหัส", "ผ่าน: Xk9mQ2vL7pTz"], "รหัสผ่าน: จำเป็น"),
    name(PASSWORD, "पासवर्ड", Password, &["पास", "वर्ड: Xk9mQ2vL7pTz"], "पासवर्ड: आवश्यक"),
    name(PASSWORD, "كلمة المرور", Password, &["كلمة ", "المرور: Xk9mQ2vL7pTz"], "كلمة المرور: مطلوبة"),

    // Shapes.
    shape(WEB_TOKEN, &["ey", "JhbGciOiJI.ey", "JzdWIiOiIx.a8Kd03LmQx7Zt5Rv1Yb9"], "eyJhbGciOiJI alone is a header"),
    shape(CHAT_TOKEN, &["MTk4NjIyNDgzNDcxOTI1MjQ4", ".Cl2FMQ.", "ZnCjm1XVW7vRze4b7Cq4se7kKWs"], "NamespaceOfTheModuleNames.method.anotherVeryLongIdentifierHere"),
    shape(CHAT_TOKEN, &["1234567890", ":AAa8Kd03LmQx7Zt5Rv1Yb9Nc2Ws4Ej6Hu0P"], "1234567890:AAPL"),
    shape(MAIL_KEY, &["9f86d081884c7d659a2feaa0c55ad015", "-us12"], "9f86d081884c7d659a2feaa0c55ad015-usage"),
    shape(OFFICE_TOKEN, &["pat", "a8Kd03LmQx7Zt5.", "9f86d081884c7d659a2feaa0c55ad0159f86d081884c7d659a2feaa0c55ad015"], "pattern.matching.of.the.whole.line"),
    shape(PRIVATE_KEY, &["-----BEGIN RSA PRI", "VATE KEY-----\nMIIEow\n-----END RSA PRI", "VATE KEY-----"], "-----BEGIN PUBLIC KEY-----\nMIIEow\n-----END PUBLIC KEY-----"),
    shape(PRIVATE_KEY, &["PuTTY-User-Key-", "File-3: ssh-ed25519\nPrivate-Lines: 1\nAAAAIEdk\nPrivate-", "MAC: 9f86d081"], "PuTTY-User-Key-File-3: is how a key file begins"),
    shape(ADDRESS, &["postgres://ann:", "hunter2@db.internal/app"], "https://example.org:8080/a@b:c"),
    shape(ADDRESS, &["https://ann:", "p/ss#w0rd@host/x"], "oci://registry:5000/image@sha256:9f86d081"),
    shape(ADDRESS, &["https://a8Kd03LmQx7Z", "t5Rv1Yb9@host/x"], "https://ann@example.org/x"),
    shape(PASSWORD, &["curl -u ann:", "Xk9mQ2vL7pTz https://example.org"], "docker run -u 1000:1000"),
    shape(PASSWORD, &["mysql -u root -p", "Xk9mQ2vL7pTz shop"], "docker run -p8080:80 shop"),
    shape(PASSWORD, &["machine host login ann pass", "word hunter2"], "password reset for the user"),
    shape(PASSWORD, &["define('DB_PASS", "WORD', 'Tr0ub4dor&3');"], "define('DB_PASSWORD', getenv('DB_PASSWORD'));"),
    shape(PASSWORD, &["<pass", "word>Tr0ub4dor&3</password>"], "<password>string</password>"),
    shape(PASSWORD, &["- name: DB_PASS", "WORD\n  value: Tr0ub4dor&3"], "- name: DB_HOST\n  value: Tr0ub4dor&3"),
    shape(CARD, &["4111 1111 ", "1111 1111"], "4111 1111 1111 1112"),
    shape(ACCOUNT, &["DE89 3704 0044 ", "0532 0130 00"], "DE88 3704 0044 0532 0130 00"),
];
