//! The signals by name.

use std::fmt;
use std::hash::{Hash, Hasher};

use rustix::process::Signal as Number;

/// A signal, by the name that signal(7) has for it, without its `SIG`.
///
/// Real-time signals are not among them.
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

/// Constants and their names, from one list.
macro_rules! signals {
    ($($name:ident = $number:ident, $what:literal;)*) => {
        impl Signal {
            $(#[doc = $what] pub const $name: Self = Self(Number::$number);)*

            /// The name, as in `SIGTERM`.
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
    HUP = HUP, "The terminal is gone; by custom: read the configuration again.";
    INT = INT, "Ctrl-C.";
    QUIT = QUIT, "Ctrl-\\.";
    ILL = ILL, "An instruction that there is not.";
    TRAP = TRAP, "A breakpoint.";
    ABRT = ABORT, "The process ends itself.";
    BUS = BUS, "Memory that is not there.";
    FPE = FPE, "Arithmetic that has no result.";
    KILL = KILL, "The process ends, whatever it does.";
    USR1 = USR1, "What the program says it is.";
    SEGV = SEGV, "Memory that is not the process's.";
    USR2 = USR2, "What the program says it is.";
    PIPE = PIPE, "A write that nobody will read. Rust programs ignore it, and get an error.";
    ALRM = ALARM, "The alarm clock of alarm(2).";
    TERM = TERM, "A request to end.";
    CHLD = CHILD, "A child has ended or stopped.";
    CONT = CONT, "A stopped process goes on.";
    STOP = STOP, "The process stops, whatever it does.";
    TSTP = TSTP, "Ctrl-Z.";
    TTIN = TTIN, "A read from the terminal in the background.";
    TTOU = TTOU, "A write to the terminal in the background.";
    URG = URG, "Urgent data at a socket.";
    XCPU = XCPU, "The limit of processor time is reached.";
    XFSZ = XFSZ, "The limit of a file's size is reached.";
    VTALRM = VTALARM, "The timer of time in this process.";
    PROF = PROF, "The timer of a profiler.";
    WINCH = WINCH, "The terminal has a new size.";
    IO = IO, "A descriptor is ready.";
    PWR = POWER, "The power fails.";
    SYS = SYS, "A system call that there is not.";
}

impl Signal {
    /// The signal with a number; `None` if none of the above has it.
    #[must_use]
    pub fn from_raw(number: i32) -> Option<Self> {
        let signal = Number::from_named_raw(number).map(Self);
        signal.filter(|signal| signal.name().is_some())
    }

    /// Its number here; it differs from platform to platform.
    #[must_use]
    pub fn as_raw(self) -> i32 {
        self.0.as_raw()
    }

    pub(crate) fn number(self) -> Number {
        self.0
    }

    /// Why it can't be listened for, if it can't.
    pub(super) fn is_forbidden(self) -> Option<&'static str> {
        match self {
            Self::KILL | Self::STOP => Some("the kernel lets nobody handle it"),
            Self::ILL | Self::FPE | Self::SEGV => {
                Some("it ends the process: what caused it would be done again")
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
