//! `cargo xtask start` and `serve`: the page on 127.0.0.1, with right types and the page's strict policy.

use std::fs;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crate::args::Args;
use crate::config::root;
use crate::process::{command, run};
use crate::{Outcome, package, tools};

const DEFAULT_PORT: u16 = 4173;

/// The page's policy; the page's own tests and any other host read the same file.
const POLICY_FILE: &str = "www/csp.txt";

/// Builds package and page, then serves.
pub fn start(args: &mut Args) -> Outcome {
    let port = args.number("--port")?;
    let dev = args.flag("--dev");
    args.finish()?;
    let listener = listen(port)?;
    package::build(dev)?;
    build_page()?;
    serve(&listener, &root().join("www/dist"))
}

/// Serves what is built already; for tests and for other folders.
pub fn task(args: &mut Args) -> Outcome {
    let port = args.number("--port")?;
    let dir = args.value("--dir")?.unwrap_or_else(|| "www/dist".into());
    args.finish()?;
    serve(&listen(port)?, &root().join(dir))
}

/// Bundles the page into `www/dist`.
pub fn build_page() -> Outcome {
    tools::npm("")?;
    run(command("node").arg("www/build.mjs"))
}

/// The port asked for; without one the default or the next that is free.
fn listen(port: Option<u64>) -> Outcome<TcpListener> {
    if let Some(port) = port {
        let port = u16::try_from(port).map_err(|_| format!("{port} is no port"))?;
        return TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(|error| format!("port {port}: {error}"));
    }
    for port in DEFAULT_PORT..DEFAULT_PORT + 50 {
        match TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
            Ok(listener) => return Ok(listener),
            Err(error) if error.kind() == ErrorKind::AddrInUse => {}
            Err(error) => return Err(format!("port {port}: {error}")),
        }
    }
    Err(format!("no free port from {DEFAULT_PORT} on: name one with --port"))
}

fn serve(listener: &TcpListener, dir: &Path) -> Outcome {
    let dir = dir.canonicalize().map_err(|error| format!("{}: {error}", dir.display()))?;
    let policy = fs::read_to_string(root().join(POLICY_FILE)).map_err(|error| format!("{POLICY_FILE}: {error}"))?;
    let policy: Arc<str> = policy.split_whitespace().collect::<Vec<_>>().join(" ").into();
    let address = listener.local_addr().map_err(|error| error.to_string())?;
    println!("sessionlog is ready at http://{address}/  (Ctrl-C ends it)");
    for stream in listener.incoming().flatten() {
        let (dir, policy) = (dir.clone(), Arc::clone(&policy));
        // One thread per connection: a browser opens a handful.
        thread::spawn(move || answer(stream, &dir, &policy));
    }
    Ok(())
}

fn answer(mut stream: TcpStream, dir: &Path, policy: &str) {
    let _ = stream.set_read_timeout(Some(Duration::from_secs(10)));
    let Some((method, target)) = read_request(&mut stream) else { return };
    let reply = if method != "GET" && method != "HEAD" {
        Reply::text(405, "only GET and HEAD")
    } else {
        find(dir, &target).map_or_else(|| Reply::text(404, "not found"), |path| Reply::file(&path))
    };
    // The browser may have gone away meanwhile.
    let _ = reply.write(&mut stream, policy, method == "HEAD");
}

fn read_request(stream: &mut TcpStream) -> Option<(String, String)> {
    let mut reader = BufReader::new(stream.take(64 * 1024));
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut parts = line.split_whitespace();
    let request = (parts.next()?.to_owned(), parts.next()?.to_owned());
    // The rest of the head is read so that closing does not reset the connection.
    loop {
        line.clear();
        if reader.read_line(&mut line).ok()? == 0 || line.trim().is_empty() {
            return Some(request);
        }
    }
}

/// The file a request names, inside `dir` even through links; a folder stands for its `index.html`.
fn find(dir: &Path, target: &str) -> Option<PathBuf> {
    let path = percent_decoded(target.split(['?', '#']).next()?)?;
    let mut found = dir.to_path_buf();
    for part in path.split('/').filter(|part| !part.is_empty()) {
        if part == "." || part == ".." || part.contains(['\\', '\0', ':']) {
            return None;
        }
        found.push(part);
    }
    if found.is_dir() {
        found.push("index.html");
    }
    let found = found.canonicalize().ok()?;
    (found.starts_with(dir) && found.is_file()).then_some(found)
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || char::from(rest.next()?).to_digit(16);
        bytes.push(u8::try_from(digit()? * 16 + digit()?).ok()?);
    }
    String::from_utf8(bytes).ok()
}

struct Reply {
    status: u16,
    media_type: &'static str,
    body: Vec<u8>,
}

impl Reply {
    fn text(status: u16, text: &str) -> Self {
        Self { status, media_type: "text/plain; charset=utf-8", body: text.into() }
    }

    fn file(path: &Path) -> Self {
        let media_type = media_type(path);
        fs::read(path).map_or_else(|_| Self::text(404, "not found"), |body| Self { status: 200, media_type, body })
    }

    fn write(&self, stream: &mut TcpStream, policy: &str, head_only: bool) -> std::io::Result<()> {
        let reason = match self.status {
            200 => "OK",
            405 => "Method Not Allowed",
            _ => "Not Found",
        };
        let head = format!(
            "HTTP/1.1 {} {reason}\r\nContent-Type: {}\r\nContent-Length: {}\r\nContent-Security-Policy: {policy}\r\n\
             Cross-Origin-Opener-Policy: same-origin\r\nX-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n\
             Cache-Control: no-cache\r\nConnection: close\r\n\r\n",
            self.status,
            self.media_type,
            self.body.len(),
        );
        stream.write_all(head.as_bytes())?;
        if !head_only {
            stream.write_all(&self.body)?;
        }
        stream.flush()
    }
}

fn media_type(path: &Path) -> &'static str {
    match path.extension().and_then(|ext| ext.to_str()).unwrap_or_default() {
        "html" => "text/html; charset=utf-8",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "json" | "map" => "application/json",
        "webmanifest" => "application/manifest+json",
        "wasm" => "application/wasm",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "ico" => "image/x-icon",
        "woff2" => "font/woff2",
        "txt" | "md" => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_found_inside_the_folder_only() {
        let dir = root().join("xtask").canonicalize().expect("the folder of xtask");
        let shown =
            |target: &str| find(&dir, target).map(|path| path.strip_prefix(&dir).expect("inside").to_path_buf());
        assert_eq!(shown("/src/main.rs?x=1"), Some("src/main.rs".into()));
        assert_eq!(shown("/src/%6dain.rs"), Some("src/main.rs".into()));
        for outside in
            ["/../Cargo.toml", "/%2e%2e/Cargo.toml", "/src/../Cargo.toml", "/..%2fCargo.toml", "/src", "/%zz", "/%00"]
        {
            assert_eq!(shown(outside), None, "{outside}");
        }
    }

    #[test]
    fn types_are_what_browsers_insist_on() {
        assert_eq!(media_type(Path::new("a/x.wasm")), "application/wasm");
        assert!(media_type(Path::new("x.js")).starts_with("text/javascript"));
        assert_eq!(media_type(Path::new("x")), "application/octet-stream");
    }
}
