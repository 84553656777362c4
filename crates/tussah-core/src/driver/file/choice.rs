//! The choice between io_uring and the blocking pool, made when a runtime is built.

use std::ffi::OsStr;
use std::panic::resume_unwind;
use std::sync::OnceLock;
use std::{fmt, io};

use io_uring::{IoUring, Probe, opcode, squeue, types};
use rustix::io::Errno;

use super::ring::{self, Size};

/// The environment variable that decides if the builder does not.
const VARIABLE: &str = "TUSSAH_FILES";

/// If one of these operations is missing, the pool performs all operations. Other missing
/// operations go to the pool one by one.
const NEEDED: [(u8, &str); 7] = [
    (opcode::Nop::CODE, "nop"),
    (opcode::AsyncCancel::CODE, "cancel"),
    (opcode::OpenAt::CODE, "openat"),
    (opcode::Close::CODE, "close"),
    (opcode::Read::CODE, "read"),
    (opcode::Write::CODE, "write"),
    (opcode::Statx::CODE, "statx"),
];

/// The way in which a runtime performs file operations; see
/// [`Builder::files`](crate::Builder::files).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum FileDriver {
    /// Uses io_uring if the kernel supports and permits it, and otherwise the blocking pool. The
    /// environment variable `TUSSAH_FILES` (`io_uring` or `pool`) overrides this choice.
    #[default]
    Auto,
    /// Uses io_uring. If io_uring is not available, building the runtime fails.
    IoUring,
    /// Uses the blocking pool.
    Pool,
}

impl FileDriver {
    /// Parses the value of the environment variable.
    ///
    /// # Errors
    /// Returns `InvalidInput`, with the expected values.
    fn parse(value: &OsStr) -> io::Result<Self> {
        match value.to_str() {
            Some("") => Ok(Self::Auto),
            Some("io_uring") => Ok(Self::IoUring),
            Some("pool") => Ok(Self::Pool),
            _ => Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("{VARIABLE}: expected \"io_uring\" or \"pool\", got {value:?}"),
            )),
        }
    }
}

/// The way in which a runtime performs file operations, and the reason.
#[derive(Clone, Debug)]
pub(crate) enum Files {
    IoUring(Codes),
    /// The reason why io_uring was refused, if it was tried.
    Pool(Option<Refused>),
}

impl Files {
    /// Decides, and probes io_uring if the decision requires it.
    ///
    /// # Errors
    /// Returns `InvalidInput` if the environment variable has another value. Returns the kernel's
    /// error if io_uring is required and the kernel refuses it.
    pub(crate) fn choose(driver: FileDriver) -> io::Result<Self> {
        let value = std::env::var_os(VARIABLE);
        Self::choose_with(driver, value.as_deref(), || {
            static PROBED: OnceLock<Codes> = OnceLock::new();
            once(&PROBED, probe_aside)
        })
    }

    fn choose_with(
        driver: FileDriver,
        variable: Option<&OsStr>,
        probe: impl FnOnce() -> Result<Codes, Refused>,
    ) -> io::Result<Self> {
        let driver = match (driver, variable) {
            (FileDriver::Auto, Some(value)) => FileDriver::parse(value)?,
            _ => driver,
        };
        if driver == FileDriver::Pool {
            return Ok(Self::Pool(None));
        }
        match probe() {
            Ok(codes) => Ok(Self::IoUring(codes)),
            Err(refused) if driver == FileDriver::Auto => Ok(Self::Pool(Some(refused))),
            Err(refused) => Err(refused.into()),
        }
    }

    /// Returns whether the ring supports an operation.
    #[inline]
    pub(super) fn has(&self, code: u8) -> bool {
        match self {
            Self::IoUring(codes) => codes.has(code),
            Self::Pool(_) => false,
        }
    }
}

impl fmt::Display for Files {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::IoUring(_) => f.write_str("io_uring"),
            Self::Pool(None) => f.write_str("blocking pool"),
            Self::Pool(Some(refused)) => {
                write!(f, "blocking pool (io_uring refused: {refused})")
            }
        }
    }
}

/// The operations that the kernel's rings support.
#[derive(Clone, Debug)]
pub(crate) struct Codes([u64; 4]);

impl Codes {
    fn of(probe: &Probe) -> Self {
        let mut codes = Self([0; 4]);
        for code in (0..=u8::MAX).filter(|code| probe.is_supported(*code)) {
            codes.0[usize::from(code / 64)] |= 1 << (code % 64);
        }
        codes
    }

    #[inline]
    fn has(&self, code: u8) -> bool {
        self.0[usize::from(code / 64)] >> (code % 64) & 1 == 1
    }
}

/// The reason why io_uring cannot be used: what was tried, and its error.
#[derive(Clone, Debug)]
pub(crate) struct Refused {
    tried: &'static str,
    came: Came,
}

#[derive(Clone, Debug)]
enum Came {
    Error(Errno),
    Missing(&'static str),
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.tried)?;
        match &self.came {
            Came::Error(error) => io::Error::from(*error).fmt(f),
            Came::Missing(name) => write!(f, "the kernel has no {name}"),
        }
    }
}

impl From<Refused> for io::Error {
    fn from(refused: Refused) -> Self {
        let kind = match refused.came {
            Came::Error(error) => io::Error::from(error).kind(),
            Came::Missing(_) => io::ErrorKind::Unsupported,
        };
        Self::new(
            kind,
            format!("io_uring was asked for, and refused: {refused}"),
        )
    }
}

/// Probes until a probe succeeds. A refusal may pass, for example if the process had too many open
/// files.
fn once(
    known: &OnceLock<Codes>,
    probe: impl FnOnce() -> Result<Codes, Refused>,
) -> Result<Codes, Refused> {
    match known.get() {
        Some(codes) => Ok(codes.clone()),
        None => probe().inspect(|codes| drop(known.set(codes.clone()))),
    }
}

/// Probes in an OS thread of its own. Some time after a ring was closed, the kernel interrupts the
/// OS threads that have used it: a read with a time limit (`SO_RCVTIMEO`) then fails with EINTR.
fn probe_aside() -> Result<Codes, Refused> {
    let thread = std::thread::Builder::new().name("tussah probe".to_owned());
    let thread = thread
        .spawn(probe)
        .map_err(refused("an OS thread for the probe"))?;
    thread.join().unwrap_or_else(|panic| resume_unwind(panic))
}

/// Tries the operations that files need. Some sandboxes permit a ring and then refuse its
/// operations, so the probe also opens a file.
fn probe() -> Result<Codes, Refused> {
    if cfg!(miri) {
        return Err(refused("io_uring_setup")(Errno::NOSYS.into()));
    }
    // The ring has its final size, because memory may be limited.
    let mut ring = ring::make(Size::default()).map_err(refused("io_uring_setup"))?;
    let mut probe = Probe::new();
    ring.submitter()
        .register_probe(&mut probe)
        .map_err(refused("io_uring_register"))?;
    if let Some((_, name)) = NEEDED.iter().find(|(code, _)| !probe.is_supported(*code)) {
        return Err(Refused {
            tried: "io_uring_register",
            came: Came::Missing(name),
        });
    }
    let nop = opcode::Nop::new().build();
    try_one(&mut ring, &nop).map_err(refused("nop"))?;
    let flags = rustix::fs::OFlags::PATH | rustix::fs::OFlags::CLOEXEC;
    let open = opcode::OpenAt::new(types::Fd(-1), c"/".as_ptr())
        .flags(flags.bits() as i32)
        .build();
    let fd = try_one(&mut ring, &open).map_err(refused("openat"))?;
    let close = opcode::Close::new(types::Fd(fd as i32)).build();
    try_one(&mut ring, &close).map_err(refused("close"))?;
    Ok(Codes::of(&probe))
}

/// Returns a function that makes an error of `tried` the reason.
fn refused(tried: &'static str) -> impl FnOnce(io::Error) -> Refused {
    move |error| Refused {
        tried,
        came: Came::Error(Errno::from_io_error(&error).unwrap_or(Errno::IO)),
    }
}

/// Runs one operation on an otherwise empty ring. Its entry points only at static data.
fn try_one(ring: &mut IoUring, entry: &squeue::Entry) -> io::Result<u32> {
    // SAFETY: `probe` shows the kernel only static text. Every runtime that finds io_uring tests
    // this.
    unsafe { ring.submission().push(entry) }.expect("the queue is empty");
    loop {
        match ring.submit_and_wait(1) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
            Ok(_) => {
                if let Some(completion) = ring.completion().next() {
                    return u32::try_from(completion.result())
                        .map_err(|_| io::Error::from_raw_os_error(-completion.result()));
                }
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn refuse() -> Result<Codes, Refused> {
        Err(Refused {
            tried: "io_uring_setup",
            came: Came::Error(Errno::PERM),
        })
    }

    #[test]
    fn a_refusal_is_not_remembered() {
        let known = OnceLock::new();
        assert!(once(&known, refuse).is_err());
        assert!(once(&known, || Ok(Codes([1; 4]))).is_ok());
        let codes = once(&known, refuse).expect("it is known now");
        assert!(codes.has(0));
    }

    fn check(driver: FileDriver, variable: Option<&str>, expected: &str) {
        let variable = variable.map(OsStr::new);
        let refused = Files::choose_with(driver, variable, refuse);
        let text = refused.map_or_else(|error| error.to_string(), |files| files.to_string());
        assert_eq!(text, expected, "{driver:?}, {variable:?}");
    }

    #[test]
    fn choice_table() {
        let why = "io_uring_setup: Operation not permitted (os error 1)";
        let pool = format!("blocking pool (io_uring refused: {why})");
        let error = format!("io_uring was asked for, and refused: {why}");
        let value = "TUSSAH_FILES: expected \"io_uring\" or \"pool\", got \"uring\"";
        check(FileDriver::Auto, None, &pool);
        check(FileDriver::Auto, Some(""), &pool);
        check(FileDriver::Auto, Some("pool"), "blocking pool");
        check(FileDriver::Auto, Some("io_uring"), &error);
        check(FileDriver::Auto, Some("uring"), value);
        check(FileDriver::IoUring, None, &error);
        check(FileDriver::IoUring, Some("pool"), &error);
        check(FileDriver::Pool, Some("io_uring"), "blocking pool");
        let works = Files::choose_with(FileDriver::Auto, None, || Ok(Codes([0; 4])));
        assert_eq!(works.expect("it works").to_string(), "io_uring");
    }
}
