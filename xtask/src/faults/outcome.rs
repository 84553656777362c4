//! Classifies the behavior of a program after a failed system call.

use std::fmt;
use std::process::ExitStatus;

/// The result of one step of a workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The step had the same result as without a failure.
    Right,
    /// The program reported that it could not do the step.
    Refused(String),
    /// The connection was closed without a response.
    Cut(String),
    /// The response was wrong, or did not arrive in time.
    Wrong(String),
}

/// The observed behavior of a program.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// The number of times that strace injected the error.
    pub(super) injected: usize,
    pub(super) steps: Vec<Step>,
    /// The number of requests or lines that have to be in the log, if there is one.
    pub(super) answered: usize,
    /// True if the program was still running after the steps, and then did a last step correctly.
    pub(super) answers: bool,
    /// The exit status; `None` if the program had to be killed.
    pub(super) exit: Option<ExitStatus>,
    /// True if the program ended before it was asked to.
    pub(super) ended_early: bool,
    /// The program's messages: standard error, and the errors on standard output.
    pub(super) said: String,
}

impl Seen {
    /// Returns the number of steps with the right result.
    pub(super) fn right(&self) -> usize {
        let is_right = |step: &&Step| **step == Step::Right;
        self.steps.iter().filter(is_right).count()
    }
}

/// The outcome of a trial. The table in `docs/faults.md` explains them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Outcome {
    /// The program made fewer calls of this kind.
    NotReached,
    /// The failure had no visible effect.
    Retried,
    /// The client got an error.
    Refused,
    /// A connection was closed or a message was printed, and everything else continued.
    Reported,
    /// The program ended with a message and a status other than zero.
    Ended,
    /// A connection was closed, or the program ended, without a message.
    Silent,
    /// A wrong answer, or an interrupted call that was not retried.
    Wrong,
    /// The program kept running but no longer responded, or did not end when asked to.
    Deaf,
}

impl Outcome {
    pub(super) fn is_defect(self) -> bool {
        self >= Self::Silent
    }

    /// Classifies the observations of a program after an error.
    pub(super) fn of(seen: &Seen, error: &str) -> Self {
        match Self::observed(seen, is_peers(error)) {
            Self::Refused | Self::Reported | Self::Ended if error == "EINTR" => Self::Wrong,
            outcome => outcome,
        }
    }

    fn observed(seen: &Seen, is_peers: bool) -> Self {
        let any = |test: fn(&Step) -> bool| seen.steps.iter().any(test);
        let success = seen.exit.is_some_and(|status| status.success());
        if seen.ended_early {
            return match (seen.injected, seen.exit) {
                (_, None) => Self::Deaf,
                _ if success || seen.said.trim().is_empty() => Self::Silent,
                _ => Self::Ended,
            };
        }
        if any(|step| matches!(step, Step::Wrong(_))) {
            return Self::Wrong;
        }
        if !seen.answers || seen.exit.is_none() {
            return Self::Deaf;
        }
        if seen.injected == 0 {
            return Self::NotReached;
        }
        if any(|step| matches!(step, Step::Cut(_))) && seen.said.trim().is_empty() && !is_peers {
            return Self::Silent;
        }
        if any(|step| matches!(step, Step::Cut(_))) || !success {
            return Self::Reported;
        }
        if any(|step| matches!(step, Step::Refused(_))) {
            return Self::Refused;
        }
        match seen.said.trim().is_empty() {
            true => Self::Retried,
            false => Self::Reported,
        }
    }
}

/// Returns whether the peer or the network ended the connection, so that its end needs no report.
fn is_peers(error: &str) -> bool {
    matches!(
        error,
        "ECONNRESET" | "EPIPE" | "ECONNABORTED" | "ENOTCONN" | "ETIMEDOUT"
    )
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotReached => "-",
            Self::Retried => "retried",
            Self::Refused => "refused",
            Self::Reported => "reported",
            Self::Ended => "ended",
            Self::Silent => "SILENT",
            Self::Wrong => "WRONG",
            Self::Deaf => "DEAF",
        })
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;

    use super::*;

    fn seen(step: Step, said: &str) -> Seen {
        Seen {
            injected: 1,
            steps: vec![Step::Right, step],
            answered: 0,
            answers: true,
            exit: Some(ExitStatus::from_raw(0)),
            ended_early: false,
            said: said.to_owned(),
        }
    }

    #[test]
    fn outcome_table() {
        let check =
            |seen: Seen, expected| assert_eq!(Outcome::of(&seen, "EIO"), expected, "{seen:?}");
        let text = String::new;
        check(seen(Step::Right, ""), Outcome::Retried);
        check(seen(Step::Right, "a warning"), Outcome::Reported);
        check(seen(Step::Refused(text()), ""), Outcome::Refused);
        check(seen(Step::Cut(text()), ""), Outcome::Silent);
        check(seen(Step::Cut(text()), "a warning"), Outcome::Reported);
        check(seen(Step::Wrong(text()), "a warning"), Outcome::Wrong);
        check(
            Seen {
                injected: 0,
                ..seen(Step::Right, "")
            },
            Outcome::NotReached,
        );
        check(
            Seen {
                answers: false,
                ..seen(Step::Right, "a warning")
            },
            Outcome::Deaf,
        );
        check(
            Seen {
                exit: None,
                ..seen(Step::Right, "a warning")
            },
            Outcome::Deaf,
        );
        let ended = |code: i32, said| Seen {
            ended_early: true,
            exit: Some(ExitStatus::from_raw(code << 8)),
            ..seen(Step::Right, said)
        };
        check(ended(1, "an error"), Outcome::Ended);
        check(ended(1, ""), Outcome::Silent);
        check(ended(0, "an error"), Outcome::Silent);
        let cut = seen(Step::Cut(text()), "");
        assert_eq!(Outcome::of(&cut, "EPIPE"), Outcome::Reported);
        let refused = seen(Step::Refused(text()), "");
        assert_eq!(Outcome::of(&refused, "EINTR"), Outcome::Wrong);
    }
}
