//! The signals and their names.

use std::fmt;
use std::hash::{Hash, Hasher};

use rustix::process::Signal as Number;

/// A signal. The constants have the names from signal(7), without the prefix `SIG`.
///
/// Real-time signals are not included.
///
/// # Examples
/// ```
/// use tussah::signal::Signal;
/// assert_eq!(Signal::TERM.to_string(), "SIGTERM");
/// assert_eq!(Signal::from_raw(15), Some(Signal::TERM));
/// assert_eq!(Signal::from_raw(0), None);
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Signal(Number);

/// Defines the constants and their names from one list.
macro_rules! signals {
    ($($name:ident = $number:ident, $what:literal;)*) => {
        impl Signal {
            $(#[doc = $what] pub const $name: Self = Self(Number::$number);)*

            /// Returns the name, such as `SIGTERM`.
            fn name(self) -> Option<&'static str> {
                match self {
                    $(Self::$name => Some(concat!("SIG", stringify!($name))),)*
                    _ => None,
                }
            }
        }
    };
}

signals! {
    HUP = HUP, "The terminal was closed. By convention: reload the configuration.";
    INT = INT, "Ctrl-C.";
    QUIT = QUIT, "Ctrl-\\.";
    ILL = ILL, "An illegal instruction.";
    TRAP = TRAP, "A breakpoint.";
    ABRT = ABORT, "The process aborts itself.";
    BUS = BUS, "An access to memory that does not exist.";
    FPE = FPE, "An arithmetic error.";
    KILL = KILL, "Kills the process; cannot be handled.";
    USR1 = USR1, "Defined by the program.";
    SEGV = SEGV, "An invalid memory access.";
    USR2 = USR2, "Defined by the program.";
    PIPE = PIPE, "A write without a reader. Rust programs ignore it and get an error.";
    ALRM = ALARM, "The alarm clock of alarm(2).";
    TERM = TERM, "A request to terminate.";
    CHLD = CHILD, "A child has exited or stopped.";
    CONT = CONT, "Continues a stopped process.";
    STOP = STOP, "Stops the process; cannot be handled.";
    TSTP = TSTP, "Ctrl-Z.";
    TTIN = TTIN, "A read from the terminal in the background.";
    TTOU = TTOU, "A write to the terminal in the background.";
    URG = URG, "Urgent data at a socket.";
    XCPU = XCPU, "The CPU time limit was reached.";
    XFSZ = XFSZ, "The file size limit was reached.";
    VTALRM = VTALARM, "The timer of CPU time used by the process.";
    PROF = PROF, "The profiling timer.";
    WINCH = WINCH, "The terminal has a new size.";
    IO = IO, "A descriptor is ready.";
    PWR = POWER, "A power failure.";
    SYS = SYS, "An invalid system call.";
}

impl Signal {
    /// Returns the signal with the given number, or `None` if none of the constants has that
    /// number.
    #[must_use]
    pub fn from_raw(number: i32) -> Option<Self> {
        let signal = Number::from_named_raw(number).map(Self);
        signal.filter(|signal| signal.name().is_some())
    }

    /// Returns the signal's number, which depends on the platform.
    #[must_use]
    pub fn as_raw(self) -> i32 {
        self.0.as_raw()
    }

    pub(crate) fn number(self) -> Number {
        self.0
    }

    /// Returns the reason why the signal cannot be listened for, if there is one.
    pub(super) fn is_forbidden(self) -> Option<&'static str> {
        match self {
            Self::KILL | Self::STOP => Some("the kernel does not allow handling it"),
            Self::ILL | Self::FPE | Self::SEGV => {
                Some("a handler would return to the instruction that caused it")
            }
            _ => None,
        }
    }
}

impl Hash for Signal {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_raw().hash(state);
    }
}

impl fmt::Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name().expect("each has one"))
    }
}

impl fmt::Debug for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name().expect("each has one"))
    }
}
