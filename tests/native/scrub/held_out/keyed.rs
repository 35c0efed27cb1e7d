//! Values that are secrets because of what stands before them, and numbers of persons.

use super::Rng;
use super::tokens::{B36, B62, B64, DIGITS, HEX, HEX_UPPER, LOWER, U64, UPPER, base64, uuid};

/// A type, how a value is made, and the texts it stands in.
pub(super) type Keyed = (&'static str, fn(&mut Rng) -> String, &'static [&'static str]);

fn password(r: &mut Rng) -> String {
    let word = *r.of(&[
        "Tr0ub", "Fj0rd", "V1per", "cOrr3", "Mo0nl", "Gl4ss", "Winter", "Hunter", "kestrel", "Pa$$", "s3cr3t", "Zebra",
    ]);
    let symbol = r.run("!#$%^*_.-~+=", 1);
    let tail = r.range(5, 12);
    let digits = r.run(DIGITS, 1);
    format!("{word}{symbol}{digits}{}", r.run(B62, tail))
}

/// For places where `$`, `#` and `%` have another meaning.
fn plain_password(r: &mut Rng) -> String {
    let word = *r.of(&["Tr0ub", "Fj0rd", "V1per", "cOrr3", "Mo0nl", "Gl4ss", "Winter", "Hunter", "kestrel", "Zebra"]);
    let (symbol, digits, tail) = (r.run("_.-~!", 1), r.run(DIGITS, 1), r.range(5, 12));
    format!("{word}{symbol}{digits}{}", r.run(B62, tail))
}

fn generic(r: &mut Rng) -> String {
    let n = r.range(20, 64);
    match r.range(0, 4) {
        0 => r.run(HEX, n.max(32)),
        1 => r.run(B62, n),
        2 => r.run(U64, n),
        3 => r.run(B36, n),
        _ => format!("{}=", r.run(B64, 43)),
    }
}

fn basic(r: &mut Rng) -> String {
    let user = r.run(LOWER, 6);
    let pair = format!("{user}:{}", password(r));
    base64(pair.as_bytes(), B64, true)
}

fn bearer(r: &mut Rng) -> String {
    let n = r.range(24, 80);
    match r.range(0, 2) {
        0 => r.run(HEX, 40),
        1 => r.run(U64, n),
        _ => r.run(B62, n),
    }
}

fn sas(r: &mut Rng) -> String {
    format!("{}%3D", r.run(B64, 43).replace('+', "%2B").replace('/', "%2F"))
}

pub(super) const KEYED: &[Keyed] = &[
    (
        "aws-secret-key",
        |r| r.run(B64, 40),
        &[
            "AWS_SECRET_ACCESS_KEY={T}\n",
            "export AWS_SECRET_ACCESS_KEY=\"{T}\"\n",
            "[default]\naws_access_key_id = x\naws_secret_access_key = {T}\n",
            "{\"AccessKeyId\":\"x\",\"SecretAccessKey\":\"{T}\",\"Token\":null}",
            "{\"body\":\"{\\\"SecretAccessKey\\\":\\\"{T}\\\"}\"}",
            "new S3({ secretAccessKey: '{T}', region: 'eu' })",
            "secret_access_key: {T}",
            "AWS Secret Access Key: {T}",
            "secret_key = \"{T}\" # terraform",
        ],
    ),
    (
        "twilio-key",
        |r| r.run(HEX, 32),
        &[
            "TWILIO_AUTH_TOKEN={T}\n",
            "twilio_auth_token: \"{T}\"",
            "{\"authToken\":\"{T}\"}",
            "export TWILIO_AUTH_TOKEN='{T}'",
        ],
    ),
    (
        "twilio-sk",
        |r| format!("SK{}", r.run(HEX, 32)),
        &["TWILIO_API_KEY={T}\n", "twilio_api_key = '{T}'", "{\"apiKey\": \"{T}\"}"],
    ),
    (
        "azure-sb-key",
        |r| format!("{}=", r.run(B64, 43)),
        &[
            "Endpoint=sb://ns{n}.servicebus.windows.net/;SharedAccessKeyName=Root;SharedAccessKey={T}",
            "{\"conn\":\"Endpoint=sb://a.servicebus.windows.net/;SharedAccessKeyName=R;SharedAccessKey={T};EntityPath=q\"}",
            "HostName=h.azure-devices.net;DeviceId=d{n};SharedAccessKey={T}\n",
        ],
    ),
    (
        "azure-account-key",
        |r| format!("{}==", r.run(B64, 86)),
        &[
            "DefaultEndpointsProtocol=https;AccountName=acct{n};AccountKey={T};EndpointSuffix=core.windows.net",
            "AZURE_STORAGE_CONNECTION_STRING=\"DefaultEndpointsProtocol=https;AccountName=a;AccountKey={T}\"",
            "AccountEndpoint=https://a.documents.azure.com:443/;AccountKey={T};",
        ],
    ),
    (
        "azure-sas",
        sas,
        &[
            "GET https://st.blob.core.windows.net/c/b.txt?sv=2024-11-04&se=2026-12-01T00%3A00%3A00Z&sr=b&sp=r&sig={T}",
            "https://st.blob.core.windows.net/c?sp=rl&sig={T}&se=2027",
            "SharedAccessSignature=sv=2024&sig={T}",
        ],
    ),
    (
        "url-password",
        plain_password,
        &[
            "DATABASE_URL=postgres://app:{T}@db-2.internal:5432/main?sslmode=require\n",
            "connecting to mongodb+srv://svc_user:{T}@cluster0.ab1cd.mongodb.net/prod ...",
            "redis://:{T}@10.0.3.7:6379/0",
            "remote: https://{w}:{T}@git.example.com/{w}.git",
            "{\"url\":\"amqp://guest:{T}@mq:5672/\"}",
            "mysql+pymysql://root:{T}@localhost/{w}",
            "ftp://{w}:{T}@ftp.example.com",
            "jdbc:postgresql://u:{T}@h/d",
            "curl -u {w}:{T} https://repo.example.com",
            "curl --user \"{w}:{T}\" https://repo.example.com",
            "https_proxy=http://{w}:{T}@proxy:3128\n",
            "pip install --index-url https://{w}:{T}@pypi.example.com/simple {w}",
        ],
    ),
    (
        "bearer",
        bearer,
        &[
            "> Authorization: Bearer {T}\n> Accept: */*\n",
            "Authorization: Bearer {T}\r\n",
            "curl -H 'Authorization: Bearer {T}' https://x.example",
            "curl -H \"authorization: token {T}\" https://x.example",
            "{\"headers\":{\"Authorization\":\"Bearer {T}\"}}",
            "{\"h\":\"{\\\"Authorization\\\":\\\"Bearer {T}\\\"}\"}",
            "headers = {'Authorization': 'Bearer {T}'}",
            "axios.get(u, { headers: { Authorization: `Bearer {T}` } })",
            "Proxy-Authorization: Bearer {T}\r\n",
            "sent Bearer {T} and got 401",
            "req.setHeader(\"Authorization\", \"Bearer {T}\")",
            "'authorization: Bearer {T}' \\\n",
        ],
    ),
    (
        "basic-auth",
        basic,
        &[
            "> Authorization: Basic {T}\n< HTTP/1.1 200 OK\n",
            "{\"Authorization\":\"Basic {T}\"}",
            "curl -H 'Authorization: Basic {T}' https://x",
            "Proxy-Authorization: Basic {T}\r\n",
            "headers: { Authorization: 'Basic {T}' }",
        ],
    ),
    (
        "api-key-header",
        generic,
        &[
            "X-Api-Key: {T}\r\n",
            "headers: { 'X-Api-Key': '{T}', accept: '*/*' }",
            "curl -H \"x-api-key: {T}\" https://api.example.com",
            "{\"x-api-key\":\"{T}\"}",
            "X-Auth-Token: {T}\n",
            "PRIVATE-TOKEN: {T}\n",
            "Ocp-Apim-Subscription-Key: {T}\n",
            "> x-goog-api-key: {T}\n",
        ],
    ),
    (
        "password",
        password,
        &[
            "# config\nDEBUG=0\nDB_PASSWORD={T}\nDB_HOST=localhost\n",
            "auth:\n  user: admin\n  password: \"{T}\"\n",
            "{\"user\":\"svc\",\"password\":\"{T}\",\"retries\":3}",
            "{\"args\":\"{\\\"password\\\":\\\"{T}\\\"}\"}",
            "password = '{T}'\n",
            "const password = \"{T}\";",
            "db.connect({ user: 'a', passwd: '{T}' })",
            "MYSQL_ROOT_PASSWORD: '{T}'\n",
            "PGPASSWORD='{T}' psql -h db",
            "passphrase: \"{T}\"",
            "admin_pwd=\"{T}\"",
            "DB_PASS=\"{T}\"\n",
            "<password>{T}</password>",
            "tool --password '{T}' --host db",
            "Server=db;User Id=sa;Password=\"{T}\";",
            "$password = '{T}';",
            "spring.datasource.password={T}\n",
        ],
    ),
    (
        "generic-secret",
        generic,
        &[
            "SECRET_KEY = \"{T}\"\nALLOWED_HOSTS = []\n",
            "client_secret={T}&grant_type=client_credentials",
            "{\"access_token\":\"{T}\",\"expires_in\":3600}",
            "{\"body\":\"{\\\"refresh_token\\\":\\\"{T}\\\"}\"}",
            "API_KEY={T}\n",
            "export SERVICE_API_KEY=\"{T}\"\n",
            "apiKey: '{T}',",
            "const apiSecret = \"{T}\";",
            "api_token: {T}\n",
            "JWT_SECRET={T}\n",
            "webhook_secret = \"{T}\"",
            "?access_token={T}&x=1",
            "private_key: \"{T}\"",
            "tool --api-key {T} --dry-run",
            "tool --token={T}",
            "ENCRYPTION_KEY={T}\n",
            "auth_token={T}",
            "let token: String = \"{T}\".into();",
            "- name: APP_SECRET\n  value: \"{T}\"\n",
            "<add key=\"ApiKey\" value=\"{T}\" />",
            "session_secret: {T}\n",
            "'secret' => '{T}',",
            "ENV API_KEY={T}\n",
            "{\"name\":\"API_TOKEN\",\"value\":\"{T}\"}",
            "credentials: \"{T}\"",
            "The API key: {T}",
            "{\"API Key\":\"{T}\"}",
            "Secret key: {T}\n",
            "$ {w} login --token={T}",
            "token: '{T}' # {w}\n",
            "apikey={T};host={w}",
            "os.environ['API_KEY'] = '{T}'",
            "process.env.API_KEY = \"{T}\";",
            "config.auth_token = \"{T}\"\n",
            "{ :api_key => \"{T}\" }",
            "set_secret(\"{w}\")\nmy_secret = \"{T}\"\n",
            "APP_KEY=base64:{T}\n",
            "\"clientSecret\" : \"{T}\"",
            "-e API_TOKEN={T} -p 80:80",
            "--set auth.token={T}",
            "  api_key   =   \"{T}\"\n",
            "headers['x-auth-token'] = '{T}'",
        ],
    ),
    (
        "npmrc-token",
        |r| if r.range(0, 1) == 0 { uuid(r) } else { r.run(B62, 36) },
        &[
            "registry=https://r.example.com/\n//r.example.com/:_authToken={T}\n",
            "//npm.example.org/{w}/:_authToken={T}",
        ],
    ),
];

fn luhn(mut body: String) -> String {
    let sum: u32 = body
        .bytes()
        .rev()
        .enumerate()
        .map(|(at, b)| {
            let d = u32::from(b - b'0') * if at % 2 == 0 { 2 } else { 1 };
            d / 10 + d % 10
        })
        .sum();
    body.push((b'0' + ((10 - sum % 10) % 10) as u8) as char);
    body
}

fn card(r: &mut Rng) -> String {
    let whole = match r.range(0, 3) {
        0 => luhn(format!("4{}", r.run(DIGITS, 14))),
        1 => luhn(format!("5{}{}", r.range(1, 5), r.run(DIGITS, 13))),
        2 => luhn(format!("37{}", r.run(DIGITS, 12))),
        _ => luhn(format!("6011{}", r.run(DIGITS, 11))),
    };
    let gap = *r.of(&["", " ", "-"]);
    let sizes: &[usize] = if whole.len() == 15 { &[4, 6, 5] } else { &[4, 4, 4, 4] };
    let mut at = 0;
    let groups = sizes.iter().map(|n| {
        at += n;
        &whole[at - n..at]
    });
    groups.collect::<Vec<_>>().join(gap)
}

fn iban(r: &mut Rng) -> String {
    let (country, bban) = match r.range(0, 4) {
        0 => ("DE", r.run(DIGITS, 18)),
        1 => ("GB", format!("{}{}", r.run(UPPER, 4), r.run(DIGITS, 14))),
        2 => (
            "FR",
            format!("{}{}{}", r.run(DIGITS, 10), r.run("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ", 11), r.run(DIGITS, 2)),
        ),
        3 => ("NL", format!("{}{}", r.run(UPPER, 4), r.run(DIGITS, 10))),
        _ => ("CH", r.run(DIGITS, 17)),
    };
    let value = |text: &str| {
        text.bytes().fold(0u32, |n, b| match b {
            b'0'..=b'9' => (n * 10 + u32::from(b - b'0')) % 97,
            _ => (n * 100 + u32::from(b - b'A') + 10) % 97,
        })
    };
    let check = 98 - value(&format!("{bban}{country}00"));
    let whole = format!("{country}{check:02}{bban}");
    if r.range(0, 1) == 0 {
        return whole;
    }
    whole.as_bytes().chunks(4).map(|c| std::str::from_utf8(c).unwrap()).collect::<Vec<_>>().join(" ")
}

fn email(r: &mut Rng) -> String {
    let (n, m) = (r.range(2, 9), r.range(3, 9));
    let (name, host) = (r.run(LOWER, n), r.run(LOWER, m));
    let tag = *r.of(&["", "+dev", ".smith", "_x", "-y2"]);
    format!("{name}{tag}@{host}.{}", r.pick(&["com", "example.co.uk", "io", "de", "museum"]))
}

fn phone(r: &mut Rng) -> String {
    let (area, line) = (r.range(2, 9), r.run(DIGITS, 4));
    match r.range(0, 4) {
        0 => format!("+1 ({area}{}) {}{}-{line}", r.run(DIGITS, 2), r.range(2, 9), r.run(DIGITS, 2)),
        1 => format!("+1-{area}{}-{}{}-{line}", r.run(DIGITS, 2), r.range(2, 9), r.run(DIGITS, 2)),
        2 => format!("+44 20 {} {line}", r.run(DIGITS, 4)),
        3 => format!("+49 {}{} {}", r.range(15, 17), r.run(DIGITS, 1), r.run(DIGITS, 8)),
        _ => format!("({area}{}) {}{}-{line}", r.run(DIGITS, 2), r.range(2, 9), r.run(DIGITS, 2)),
    }
}

fn ssn(r: &mut Rng) -> String {
    format!("{}-{:02}-{:04}", r.range(100, 665), r.range(1, 99), r.range(1, 9_999))
}

const PERSON: &[&str] = &[
    "{T}",
    "on file: {T} for {w}",
    "{\"{w}\":\"{T}\",\"n\":{n}}",
    "{\"a\":\"{\\\"{w}\\\":\\\"{T}\\\"}\"}",
    "{w}\t{T}\t{n}\n",
    "{n},{T},{w}\n",
    "call {T}.",
    "<td>{T}</td>",
    "| {T} | {w} |",
    "请联系 {T} 谢谢",
    "{w}: {T}\r\n",
    "({T})",
    "`{T}`",
    "{w}='{T}'",
];

/// Personal data; for the optional rules.
pub(super) const PERSONS: &[Keyed] = &[
    ("card", card, PERSON),
    ("iban", iban, PERSON),
    ("email", email, PERSON),
    ("phone", phone, PERSON),
    ("ssn", ssn, &["SSN: {T} on file", "ssn={T}", "{\"ssn\":\"{T}\"}", "his social security number is {T}"]),
];

/// Fillers that are no secret.
pub(super) fn fill(r: &mut Rng, template: &str) -> String {
    let mut out = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('⟨') {
        let (what, after) = after.split_once('⟩').unwrap();
        out.push_str(before);
        out.push_str(&filler(r, what));
        rest = after;
    }
    out + rest
}

fn filler(r: &mut Rng, what: &str) -> String {
    let (kind, length) = what.split_once(' ').unwrap_or((what, "8"));
    let n: usize = length.parse().unwrap();
    match kind {
        "hex" => r.run(HEX, n),
        "HEX" => r.run(HEX_UPPER, n),
        "uuid" => uuid(r),
        "b64" => r.run(B64, n),
        "u64" => r.run(U64, n),
        "b62" => r.run(B62, n),
        "b36" => r.run(B36, n),
        "B36" => r.run(B36, n).to_uppercase(),
        "d" => r.run(DIGITS, n),
        "a" => r.run(LOWER, n),
        "A" => r.run(UPPER, n),
        "w" => r.word().to_owned(),
        "W" => r.word().to_uppercase(),
        "name" => (0..n).map(|at| if at == 0 { r.word().to_owned() } else { capital(r.word()) }).collect(),
        "snake" => (0..n).map(|_| r.word()).collect::<Vec<_>>().join("_"),
        "kebab" => (0..n).map(|_| r.word()).collect::<Vec<_>>().join("-"),
        "words" => (0..n).map(|_| r.word()).collect::<Vec<_>>().join(" "),
        other => panic!("no filler {other}"),
    }
}

fn capital(word: &str) -> String {
    word[..1].to_uppercase() + &word[1..]
}
