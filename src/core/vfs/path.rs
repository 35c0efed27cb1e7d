//! Paths: `/`-separated, from one root, compared byte by byte.

use super::errno::{Errno, Result};

/// Longest name of one entry, in bytes of UTF-8.
pub const MAX_NAME: usize = 255;

/// Longest path given to a call, in bytes (Linux: 4,096 with its closing NUL).
pub const MAX_PATH: usize = 4_095;

/// Most links followed in one call (Linux: 40).
pub const MAX_HOPS: u32 = 40;

/// Refuses what no call can use: the empty path, a NUL, more than [`MAX_PATH`] bytes.
pub fn check(path: &str) -> Result<()> {
    if path.is_empty() {
        return Err(Errno::ENOENT);
    }
    if path.as_bytes().contains(&0) {
        return Err(Errno::EINVAL);
    }
    if path.len() > MAX_PATH {
        return Err(Errno::ENAMETOOLONG);
    }
    Ok(())
}

/// Says whether a path surely has the form that journals use; a name that begins with a dot counts as doubtful.
pub fn is_plain(path: &str) -> bool {
    let mut before = b'/';
    let mut bytes = path.bytes();
    bytes.next() == Some(b'/')
        && bytes.all(|byte| !(std::mem::replace(&mut before, byte) == b'/' && matches!(byte, b'/' | b'.')))
        && before != b'/'
}

/// Returns the path of the parent of a canonical path; the root has none.
pub fn parent(path: &str) -> Option<&str> {
    match path.rfind('/') {
        _ if path == "/" => None,
        Some(0) => Some("/"),
        Some(at) => path.get(..at),
        None => None,
    }
}

/// Appends a name to a canonical path.
pub fn push(path: &mut String, name: &str) {
    if !path.ends_with('/') {
        path.push('/');
    }
    path.push_str(name);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_paths() {
        for path in ["/a", "/a/b.c", "/a/b./c"] {
            assert!(is_plain(path), "{path}");
        }
        for path in ["", "/", "a", "//a", "/a//b", "/a/", "/./a", "/a/..", "/.git"] {
            assert!(!is_plain(path), "{path}");
        }
    }

    #[test]
    fn parents() {
        assert_eq!(parent("/"), None);
        assert_eq!(parent("/a"), Some("/"));
        assert_eq!(parent("/a/b"), Some("/a"));
    }
}
