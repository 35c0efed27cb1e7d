//! What can go wrong with a file call: POSIX codes with Node's words for them.

use crate::core::error::{Error, Kind};

macro_rules! errnos {
    ($($name:ident $number:literal $kind:ident $text:literal)+) => {
        /// A POSIX error code; numbers are those of Linux.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(clippy::upper_case_acronyms, reason = "these are the names of POSIX")]
        pub enum Errno { $(#[doc = $text] $name = $number,)+ }

        impl Errno {
            /// Every code.
            pub const ALL: &'static [Errno] = &[$(Errno::$name,)+];

            /// Returns the name, such as `ENOENT`.
            pub const fn name(self) -> &'static str {
                match self { $(Errno::$name => stringify!($name),)+ }
            }

            /// Returns Node's description.
            pub const fn text(self) -> &'static str {
                match self { $(Errno::$name => $text,)+ }
            }

            /// Returns the kind that JavaScript sees as `code`.
            pub const fn kind(self) -> Kind {
                match self { $(Errno::$name => Kind::$kind,)+ }
            }
        }
    };
}

errnos! {
    EPERM 1 InvalidArgument "operation not permitted"
    ENOENT 2 NotFound "no such file or directory"
    EIO 5 Corrupt "i/o error"
    EBADF 9 InvalidArgument "bad file descriptor"
    EACCES 13 InvalidArgument "permission denied"
    EBUSY 16 InvalidArgument "resource busy or locked"
    EEXIST 17 AlreadyExists "file already exists"
    ENOTDIR 20 InvalidArgument "not a directory"
    EISDIR 21 InvalidArgument "illegal operation on a directory"
    EINVAL 22 InvalidArgument "invalid argument"
    EFBIG 27 Quota "file too large"
    ENOSPC 28 Quota "no space left on device"
    ENAMETOOLONG 36 InvalidPath "name too long"
    ENOTEMPTY 39 InvalidArgument "directory not empty"
    ELOOP 40 InvalidPath "too many symbolic links encountered"
    EILSEQ 84 InvalidPath "illegal byte sequence"
}

/// The result of a file call.
pub type Result<T> = std::result::Result<T, Errno>;

impl Errno {
    /// Returns the Linux number.
    pub const fn number(self) -> u8 {
        self as u8
    }
}

impl From<Errno> for Error {
    fn from(errno: Errno) -> Error {
        Error::new(errno.kind(), format!("{}: {}", errno.name(), errno.text())).with("errno", errno.name())
    }
}
