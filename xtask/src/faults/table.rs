//! The system calls that fail in the sweep, each with the errors that its manual page documents.

/// The call that writes the access log. Other writes go to pipes and eventfds, which never fail:
/// signal handlers rely on that.
pub(super) const LOG_CALL: &str = "write";

/// The system calls under the names that strace uses, each with its errors. `EINTR` and `EAGAIN`
/// are injected where the manual page says that the call can fail with them.
///
/// An injected call is not made, so an error is left out if it would then say something false:
///
/// - `close`: Linux would have closed the descriptor.
/// - `futex`: no thread is woken.
/// - `brk`: it returns an address even if it fails, and an injected error looks like one.
/// - `connect` with `EINTR`: the connection attempt would continue.
/// - `EAGAIN` of a socket or pipe: the descriptor would not be ready, and the driver would report
///   when it is.
///
/// [`LOG_CALL`] fails for the access log only.
pub(super) const CALLS: &[(&str, &[&str])] = &[
    // Waiting.
    ("epoll_create1", &["EMFILE", "ENOMEM"]),
    ("epoll_ctl", &["ENOMEM", "ENOSPC"]),
    ("epoll_wait", &["EINTR", "ENOMEM", "EBADF"]),
    ("epoll_pwait", &["EINTR", "ENOMEM", "EBADF"]),
    ("epoll_pwait2", &["EINTR", "ENOMEM", "EBADF"]),
    ("poll", &["EINTR", "EINVAL", "ENOMEM"]),
    ("ppoll", &["EINTR", "EINVAL", "ENOMEM"]),
    ("eventfd2", &["EMFILE", "ENOMEM"]),
    // Files.
    ("io_uring_setup", &["EMFILE", "ENOMEM", "EPERM"]),
    ("io_uring_enter", &["EINTR", "EAGAIN", "EBUSY", "EBADF"]),
    ("io_uring_register", &["ENOMEM", "EINVAL"]),
    ("openat", &["EINTR", "EMFILE", "ENOMEM"]),
    (
        "openat2",
        &["EINTR", "EAGAIN", "EMFILE", "ENOMEM", "ENOSYS"],
    ),
    ("statx", &["ENOMEM"]),
    ("newfstatat", &["ENOMEM"]),
    ("fstat", &["ENOMEM"]),
    ("readlink", &["EIO", "ENOMEM"]),
    ("getcwd", &["ENOENT", "ENOMEM"]),
    ("lseek", &["EINVAL"]),
    ("fcntl", &["EMFILE", "EINVAL"]),
    ("read", &["EINTR", "EIO"]),
    ("pread64", &["EINTR", "EIO"]),
    ("pwrite64", &["EINTR", "ENOSPC"]),
    ("pwritev2", &["EINTR", "ENOSPC", "EOPNOTSUPP"]),
    (LOG_CALL, &["EINTR", "ENOSPC", "EIO"]),
    (
        "preadv2",
        &["EINTR", "EAGAIN", "EOPNOTSUPP", "ENOSYS", "EIO"],
    ),
    ("sendfile", &["EINVAL", "EIO", "ENOMEM"]),
    ("fadvise64", &["EINVAL", "ESPIPE"]),
    ("ftruncate", &["EINTR", "EIO"]),
    ("fsync", &["EINTR", "EIO"]),
    ("fdatasync", &["EINTR", "EIO"]),
    ("rename", &["ENOSPC", "EIO"]),
    ("renameat", &["ENOSPC", "EIO"]),
    ("renameat2", &["ENOSPC", "EIO"]),
    ("linkat", &["ENOSPC", "EIO"]),
    ("symlinkat", &["ENOSPC", "EIO"]),
    ("mkdirat", &["ENOSPC", "EACCES"]),
    ("unlink", &["EIO", "EACCES"]),
    ("unlinkat", &["EIO", "EACCES"]),
    ("getdents64", &["EIO", "ENOMEM"]),
    // Sockets.
    ("socket", &["EMFILE", "ENOBUFS"]),
    ("socketpair", &["EMFILE", "ENFILE"]),
    ("bind", &["EADDRINUSE", "EACCES"]),
    ("listen", &["EADDRINUSE"]),
    ("connect", &["ECONNREFUSED", "EADDRNOTAVAIL", "ETIMEDOUT"]),
    (
        "accept4",
        &[
            "EINTR",
            "ECONNABORTED",
            "EMFILE",
            "ENFILE",
            "ENOBUFS",
            "EPERM",
        ],
    ),
    ("setsockopt", &["ENOPROTOOPT"]),
    ("getsockopt", &["ENOPROTOOPT"]),
    ("getsockname", &["ENOBUFS"]),
    ("getpeername", &["ENOTCONN", "ENOBUFS"]),
    ("sendto", &["EINTR", "ENOBUFS", "ECONNRESET"]),
    ("sendmsg", &["EINTR", "ENOBUFS", "EPIPE"]),
    ("sendmmsg", &["EINTR", "ENOBUFS", "ECONNREFUSED"]),
    ("recvfrom", &["EINTR", "ENOMEM", "ECONNRESET"]),
    ("recvmsg", &["EINTR", "ENOMEM", "ECONNRESET"]),
    ("recvmmsg", &["EINTR", "ENOMEM"]),
    ("readv", &["EINTR", "ENOMEM", "ECONNRESET"]),
    ("writev", &["EINTR", "ENOBUFS", "ECONNRESET"]),
    ("shutdown", &["ENOTCONN"]),
    ("ioctl", &["ENOTTY"]),
    // The process.
    ("mmap", &["ENOMEM"]),
    ("mprotect", &["ENOMEM"]),
    ("munmap", &["ENOMEM"]),
    ("madvise", &["EAGAIN", "ENOMEM"]),
    ("clone3", &["EAGAIN", "ENOMEM"]),
    ("clock_nanosleep", &["EINTR"]),
    ("sigaltstack", &["ENOMEM"]),
    ("prctl", &["EINVAL"]),
    ("sched_getaffinity", &["EPERM"]),
    ("sched_setaffinity", &["EINVAL", "EPERM"]),
    ("getrandom", &["EINTR", "ENOSYS"]),
    ("pipe2", &["EMFILE", "ENFILE"]),
    ("rt_sigaction", &["EINVAL"]),
    ("prlimit64", &["EPERM"]),
    ("pidfd_open", &["EMFILE", "ENOSYS"]),
    ("waitid", &["EINTR"]),
    ("wait4", &["EINTR"]),
];
