//! Random tokens of every family, made from the published formats, with valid checksums where these are public.

use super::Rng;

pub(super) const DIGITS: &str = "0123456789";
pub(super) const LOWER: &str = "abcdefghijklmnopqrstuvwxyz";
pub(super) const UPPER: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
pub(super) const HEX: &str = "0123456789abcdef";
pub(super) const HEX_UPPER: &str = "0123456789ABCDEF";
pub(super) const B32: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
pub(super) const B36: &str = "0123456789abcdefghijklmnopqrstuvwxyz";
pub(super) const B62: &str = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
pub(super) const B64: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
pub(super) const U64: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// A kind of token: its type and how one is made.
pub(super) type Maker = (&'static str, fn(&mut Rng) -> String);

/// Tokens that are known wherever they stand.
pub(super) const TOKENS: &[Maker] = &[
    ("aws-access-key-id", |r| format!("{}{}", r.pick(&["AKIA", "ASIA", "ABIA", "ACCA"]), r.run(B32, 16))),
    ("aws-session-token", |r| {
        let n = r.range(300, 900);
        format!("IQoJb3JpZ2lu{}", r.run(B64, n))
    }),
    ("aws-bedrock-key", |r| {
        let n = r.range(109, 269);
        format!("ABSK{}", r.run(B64, n))
    }),
    ("github-pat", |r| github(r, "ghp_", 30)),
    ("github-oauth", |r| github(r, "gho_", 30)),
    ("github-app-user", |r| github(r, "ghu_", 30)),
    ("github-app-server", |r| github(r, "ghs_", 30)),
    ("github-refresh", |r| github(r, "ghr_", 70)),
    ("github-fine-grained", |r| format!("github_pat_{}_{}", r.run(B62, 22), r.run(B62, 59))),
    ("github-app-server-jwt", |r| format!("ghs_{}_{}", r.range(1000, 9_999_999), jwt(r))),
    ("gitlab-pat", |r| format!("glpat-{}", r.run(U64, 20))),
    ("gitlab-routable", |r| {
        let body = r.bytes(24);
        let head = format!("glpat-{}", base64(&body, U64, false));
        let tail = format!("01.{}", base36(head.len() as u64, 2));
        let whole = format!("{head}.{tail}");
        format!("{whole}{}", base36(crc32(whole.as_bytes()).into(), 7))
    }),
    ("gitlab-deploy", |r| {
        format!("{}{}", r.pick(&["gldt-", "glrt-", "glcbt-", "glft-", "glimt-", "glsoat-", "glffct-"]), r.run(U64, 20))
    }),
    ("gitlab-trigger", |r| format!("glptt-{}", r.run(HEX, 40))),
    ("gitlab-agent", |r| format!("glagent-{}", r.run(U64, 50))),
    ("gitlab-oauth", |r| format!("gloas-{}", r.run(HEX, 64))),
    ("npm-token", |r| github(r, "npm_", 30)),
    ("pypi-token", |r| {
        let n = r.range(130, 180);
        format!("pypi-AgEIcHlwaS5vcmc{}", r.run(U64, n))
    }),
    ("slack-bot", |r| {
        let (a, b) = (r.range(10, 13), r.range(10, 13));
        format!("xoxb-{}-{}-{}", r.run(DIGITS, a), r.run(DIGITS, b), r.run(B62, 24))
    }),
    ("slack-user", |r| {
        format!("xoxp-{}-{}-{}-{}", r.run(DIGITS, 12), r.run(DIGITS, 12), r.run(DIGITS, 13), r.run(HEX, 32))
    }),
    ("slack-refresh", |r| format!("xoxe-1-{}", r.run(B62, 146))),
    ("slack-config", |r| format!("xoxe.xoxp-1-{}", r.run(B62, 166))),
    ("slack-app", |r| format!("xapp-1-A{}-{}-{}", r.run(B36, 10).to_uppercase(), r.run(DIGITS, 13), r.run(HEX, 64))),
    ("slack-webhook", |r| {
        format!(
            "https://hooks.slack.com/services/T{}/B{}/{}",
            r.run(B36, 10).to_uppercase(),
            r.run(B36, 10).to_uppercase(),
            r.run(B62, 24)
        )
    }),
    ("stripe-secret", |r| {
        let n = *r.of(&[24, 99]);
        format!("{}{}", r.pick(&["sk_live_", "sk_test_", "rk_live_", "rk_test_"]), r.run(B62, n))
    }),
    ("stripe-webhook", |r| format!("whsec_{}", r.run(B62, 32))),
    ("openai-legacy", |r| format!("sk-{}T3BlbkFJ{}", r.run(B62, 20), r.run(B62, 20))),
    ("openai-project", |r| {
        let n = *r.of(&[58, 74]);
        format!("{}{}T3BlbkFJ{}", r.pick(&["sk-proj-", "sk-svcacct-", "sk-admin-"]), r.run(U64, n), r.run(U64, n))
    }),
    ("anthropic-api", |r| format!("{}{}AA", r.pick(&["sk-ant-api03-", "sk-ant-admin01-"]), r.run(U64, 93))),
    ("anthropic-oauth", |r| {
        format!("{}{}AA", r.pick(&["sk-ant-oat01-", "sk-ant-ort01-", "sk-ant-sid01-"]), r.run(U64, 86))
    }),
    ("google-api-key", |r| format!("AIza{}", r.run(U64, 35))),
    ("google-oauth-secret", |r| format!("GOCSPX-{}", r.run(U64, 28))),
    ("google-oauth-token", |r| {
        let n = r.range(100, 220);
        format!("ya29.a0{}", r.run(U64, n))
    }),
    ("azure-ad-secret", |r| {
        format!(
            "{}{}Q~{}",
            r.run(B62, 3),
            r.run(DIGITS, 1),
            r.run("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.~", 34)
        )
    }),
    ("azure-storage-key", |r| {
        format!("{}{}{}==", r.run(B64, 76), r.pick(&["+ASt", "ACDb", "+ABa", "+AMC", "APIM"]), r.run(B64, 6))
    }),
    ("azure-event-key", |r| format!("{}{}{}=", r.run(B64, 33), r.pick(&["AIoT", "+ASb", "+AEh"]), r.run(B64, 6))),
    ("azure-search-key", |r| format!("{}AzSe{}", r.run(B62, 42), r.run(B62, 6))),
    ("azure-key", |r| format!("{}JQQJ99{}", r.run(B62, 52), r.run(B62, 26))),
    ("huggingface", |r| format!("hf_{}", r.run("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", 34))),
    ("groq", |r| format!("gsk_{}", r.run(B62, 52))),
    ("xai", |r| format!("xai-{}", r.run(B62, 80))),
    ("perplexity", |r| format!("pplx-{}", r.run(B62, 48))),
    ("replicate", |r| format!("r8_{}", r.run(B62, 37))),
    ("openrouter", |r| format!("sk-or-v1-{}", r.run(HEX, 64))),
    ("langsmith", |r| format!("{}{}_{}", r.pick(&["lsv2_pt_", "lsv2_sk_"]), r.run(HEX, 32), r.run(HEX, 10))),
    ("langfuse", |r| format!("sk-lf-{}", uuid(r))),
    ("pinecone", |r| {
        let n = r.range(5, 6);
        format!("pcsk_{}_{}", r.run(B62, n), r.run(B62, 63))
    }),
    ("elevenlabs", |r| format!("sk_{}", r.run(HEX, 48))),
    ("tavily", |r| format!("tvly-{}{}", r.pick(&["", "dev-"]), r.run(B62, 32))),
    ("cerebras", |r| format!("csk-{}", r.run(B36, 48))),
    ("fireworks", |r| format!("fw_{}", r.run(B62, 24))),
    ("telegram-bot", |r| {
        let n = r.range(8, 10);
        let first = r.range(1, 9);
        format!("{first}{}:AA{}", r.run(DIGITS, n - 1), r.run(U64, 33))
    }),
    ("discord-bot", |r| {
        let n = r.range(17, 19);
        let first = r.range(1, 9);
        let id = format!("{first}{}", r.run(DIGITS, n - 1));
        let tail = *r.of(&[27, 38]);
        format!("{}.{}.{}", base64(id.as_bytes(), U64, false), r.run(U64, 6), r.run(U64, tail))
    }),
    ("discord-webhook", |r| {
        let n = r.range(17, 19);
        format!(
            "https://{}.com/api/webhooks/1{}/{}",
            r.pick(&["discord", "discordapp"]),
            r.run(DIGITS, n),
            r.run(U64, 68)
        )
    }),
    ("sendgrid", |r| format!("SG.{}.{}", r.run(U64, 22), r.run(U64, 43))),
    ("mailgun", |r| format!("key-{}", r.run(HEX, 32))),
    ("mailchimp", |r| format!("{}-us{}", r.run(HEX, 32), r.range(1, 21))),
    ("brevo", |r| format!("xkeysib-{}-{}", r.run(HEX, 64), r.run(B62, 16))),
    ("digitalocean", |r| format!("{}{}", r.pick(&["dop_v1_", "doo_v1_", "dor_v1_"]), r.run(HEX, 64))),
    ("databricks", |r| format!("dapi{}{}", r.run(HEX, 32), r.pick(&["", "-2"]))),
    ("shopify", |r| format!("{}{}", r.pick(&["shpat_", "shpss_", "shpca_", "shppa_"]), r.run(HEX, 32))),
    ("docker-pat", |r| format!("dckr_pat_{}", r.run(U64, 27))),
    ("docker-org", |r| format!("dckr_oat_{}", r.run(U64, 32))),
    ("linear", |r| format!("lin_api_{}", r.run(B62, 40))),
    ("sentry-user", |r| format!("sntryu_{}", r.run(HEX, 64))),
    ("sentry-org", |r| {
        let body = format!(
            "{{\"iat\":1{}.{},\"url\":\"https://sentry.io\",\"org\":\"acme\"}}",
            r.run(DIGITS, 9),
            r.run(DIGITS, 6)
        );
        format!("sntrys_{}_{}", base64(body.as_bytes(), B64, true), r.run(B64, 43))
    }),
    ("newrelic", |r| format!("NRAK-{}", r.run(&format!("{UPPER}{DIGITS}"), 27))),
    ("dynatrace", |r| format!("dt0c01.{}.{}", r.run(B32, 24), r.run(B32, 64))),
    ("rubygems", |r| format!("rubygems_{}", r.run(HEX, 48))),
    ("crates-io", |r| format!("cio{}", r.run(B62, 32))),
    ("nuget", |r| format!("oy2{}", r.run(B36, 43))),
    ("square", |r| format!("sq0atp-{}", r.run(U64, 22))),
    ("pulumi", |r| format!("pul-{}", r.run(HEX, 40))),
    ("doppler", |r| format!("dp.pt.{}", r.run(B62, 43))),
    ("planetscale", |r| {
        let n = r.range(32, 64);
        format!("{}{}", r.pick(&["pscale_tkn_", "pscale_pw_", "pscale_oauth_"]), r.run(U64, n))
    }),
    ("heroku", |r| format!("HRKU-AA{}", r.run(U64, 58))),
    ("fly-io", |r| format!("fm2_{}", r.run(B64, 200))),
    ("netlify", |r| format!("nfp_{}", r.run(B62, 36))),
    ("postman", |r| format!("PMAK-{}-{}", r.run(HEX, 24), r.run(HEX, 34))),
    ("notion", |r| format!("ntn_{}{}", r.run(DIGITS, 11), r.run(B62, 35))),
    ("figma", |r| format!("figd_{}", r.run(U64, 40))),
    ("airtable", |r| format!("pat{}.{}", r.run(B62, 14), r.run(HEX, 64))),
    ("artifactory", |r| format!("AKCp{}", r.run(B62, 69))),
    ("alibaba-key", |r| format!("LTAI{}", r.run(B62, 20))),
    ("supabase", |r| format!("sbp_{}", r.run(HEX, 40))),
    ("supabase-secret", |r| format!("sb_secret_{}_{}", r.run(U64, 22), r.run(B62, 8))),
    ("vault-token", |r| {
        let n = r.range(24, 120);
        format!("hvs.{}", r.run(U64, n))
    }),
    ("vault-batch", |r| {
        let n = r.range(138, 200);
        format!("hvb.AAAAAQ{}", r.run(U64, n))
    }),
    ("terraform-cloud", |r| {
        let n = r.range(60, 70);
        format!("{}.atlasv1.{}", r.run(B62, 14), r.run(B62, n))
    }),
    ("grafana-sa", |r| {
        let body = format!("glsa_{}", r.run(B62, 32));
        format!("{body}_{:08x}", crc32(body.as_bytes()).swap_bytes())
    }),
    ("atlassian", |r| {
        let n = r.range(170, 180);
        let body = format!("ATATT3xFfGF0{}=", r.run(U64, n));
        format!("{body}{:08X}", crc32(body.as_bytes()))
    }),
    ("cloudflare", |r| format!("{}{}{}", r.pick(&["cfut_", "cfat_"]), r.run(B62, 40), r.run(HEX, 8))),
    ("cloudflare-origin", |r| format!("v1.0-{}-{}", r.run(HEX, 24), r.run(HEX, 146))),
    ("age-key", |r| format!("AGE-SECRET-KEY-1{}", r.run("QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", 58))),
    ("1password", |r| format!("ops_eyJ{}", r.run(B64, 400))),
    ("1password-secret-key", |r| {
        let set = format!("{UPPER}{DIGITS}");
        let groups: Vec<String> = [6, 6, 5, 5, 5, 5].iter().map(|n| r.run(&set, *n)).collect();
        format!("A3-{}", groups.join("-"))
    }),
    ("jwt", jwt),
];

fn github(r: &mut Rng, prefix: &str, n: usize) -> String {
    let body = r.run(B62, n);
    format!("{prefix}{body}{}", base62(crc32(body.as_bytes()).into(), 6))
}

pub(super) fn jwt(r: &mut Rng) -> String {
    let header = match r.range(0, 3) {
        0 => r#"{"alg":"HS256","typ":"JWT"}"#.to_owned(),
        1 => format!(r#"{{"typ":"JWT","alg":"RS256","kid":"{}"}}"#, r.run(HEX, 16)),
        2 => format!(r#"{{"kid":"{}","alg":"ES384"}}"#, r.run(U64, 22)),
        _ => "{\n  \"alg\": \"EdDSA\",\n  \"typ\": \"JWT\"\n}".to_owned(),
    };
    let payload = format!(
        r#"{{"sub":"{}","name":"{}","iat":1{},"exp":1{},"scope":"{} {}"}}"#,
        r.run(DIGITS, 9),
        r.run(LOWER, 6),
        r.run(DIGITS, 9),
        r.run(DIGITS, 9),
        r.run(LOWER, 9),
        r.run(LOWER, 7)
    );
    let signature = *r.of(&[43, 86, 342]);
    format!(
        "{}.{}.{}",
        base64(header.as_bytes(), U64, false),
        base64(payload.as_bytes(), U64, false),
        r.run(U64, signature)
    )
}

pub(super) fn uuid(r: &mut Rng) -> String {
    format!("{}-{}-4{}-a{}-{}", r.run(HEX, 8), r.run(HEX, 4), r.run(HEX, 3), r.run(HEX, 3), r.run(HEX, 12))
}

/// A private key in armour: lines of 64 and a rest.
pub(super) fn pem(r: &mut Rng) -> String {
    let label = r
        .pick(&[
            "RSA PRIVATE KEY",
            "EC PRIVATE KEY",
            "PRIVATE KEY",
            "ENCRYPTED PRIVATE KEY",
            "OPENSSH PRIVATE KEY",
            "DSA PRIVATE KEY",
            "PGP PRIVATE KEY BLOCK",
        ])
        .to_owned();
    let head = match label.as_str() {
        "RSA PRIVATE KEY" => "MIIEowIBAAKCAQEA",
        "EC PRIVATE KEY" => "MHcCAQEEI",
        "OPENSSH PRIVATE KEY" => "b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAAB",
        "PGP PRIVATE KEY BLOCK" => "lQVYBF",
        _ => "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC",
    };
    let length = r.range(160, 1_700);
    let body = format!("{head}{}==", r.run(B64, length));
    let mut out = format!("-----BEGIN {label}-----\n");
    if label == "RSA PRIVATE KEY" && r.range(0, 3) == 0 {
        out.push_str(&format!("Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,{}\n\n", r.run(HEX_UPPER, 32)));
    }
    if label.starts_with("PGP") {
        out.push('\n');
    }
    let chars: Vec<char> = body.chars().collect();
    for line in chars.chunks(64) {
        out.extend(line);
        out.push('\n');
    }
    if label.starts_with("PGP") {
        out.push_str(&format!("={}\n", r.run(B64, 4)));
    }
    out.push_str(&format!("-----END {label}-----"));
    out
}

pub(super) fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, b| {
        (0..8).fold(crc ^ u32::from(*b), |c, _| if c & 1 == 1 { c >> 1 ^ 0xedb8_8320 } else { c >> 1 })
    })
}

fn digits(mut n: u64, base: &str, width: usize) -> String {
    let (set, mut out) = (base.as_bytes(), Vec::new());
    while n > 0 || out.len() < width {
        out.push(set[(n % set.len() as u64) as usize] as char);
        n /= set.len() as u64;
    }
    out.iter().rev().collect()
}

fn base62(n: u64, width: usize) -> String {
    digits(n, B62, width)
}

fn base36(n: u64, width: usize) -> String {
    digits(n, B36, width)
}

pub(super) fn base64(bytes: &[u8], set: &str, pad: bool) -> String {
    let set = set.as_bytes();
    let mut out = String::new();
    for chunk in bytes.chunks(3) {
        let n = chunk.iter().fold(0u32, |n, b| n << 8 | u32::from(*b)) << (8 * (3 - chunk.len()));
        for at in 0..4 {
            if at <= chunk.len() {
                out.push(set[(n >> (18 - 6 * at) & 63) as usize] as char);
            } else if pad {
                out.push('=');
            }
        }
    }
    out
}
