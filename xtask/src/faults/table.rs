//! The system calls that fail in the sweep, each with the errors that its manual page documents.

/// The system calls under the names that strace uses, each with its errors. `EINTR` and `EAGAIN`
/// are injected where the manual page says that the call can fail with them.
///
/// An injected call is not made, so an error is left out if it would then say something false:
///
/// - `close`: Linux would in fact have closed the descriptor.
/// - `futex`: no thread would be woken.
/// - `connect` with `EINTR`: the connection attempt would be expected to continue.
/// - `EAGAIN` of a socket or pipe: the socket would in fact be ready, and the kernel would not
///   report that again.
/// - `write`, which the programs use for pipes and eventfds: it never fails there, and signal
///   handlers rely on that.
pub(super) const CALLS: &[(&str, &[&str])] = &[
    // Waiting.
    ("epoll_create1", &["EMFILE", "ENOMEM"]),
    ("epoll_ctl", &["ENOMEM", "ENOSPC"]),
    ("epoll_wait", &["EINTR", "EBADF"]),
    ("epoll_pwait", &["EINTR", "EBADF"]),
    ("epoll_pwait2", &["EINTR", "EBADF"]),
    ("poll", &["EINTR", "EINVAL", "ENOMEM"]),
    ("ppoll", &["EINTR", "EINVAL", "ENOMEM"]),
    ("eventfd2", &["EMFILE", "ENOMEM"]),
    // Files.
    ("io_uring_setup", &["EMFILE", "ENOMEM", "EPERM"]),
    ("io_uring_enter", &["EINTR", "EAGAIN", "EBUSY", "EBADF"]),
    ("io_uring_register", &["ENOMEM", "EINVAL"]),
    ("openat", &["EINTR", "EMFILE", "ENOMEM"]),
    ("openat2", &["EAGAIN", "EMFILE", "ENOMEM", "ENOSYS"]),
    ("statx", &["ENOMEM"]),
    ("newfstatat", &["ENOMEM"]),
    ("fstat", &["ENOMEM"]),
    ("fcntl", &["EMFILE", "EINVAL"]),
    ("read", &["EINTR", "EIO"]),
    ("pread64", &["EINTR", "EIO"]),
    ("pwrite64", &["EINTR", "ENOSPC"]),
    (
        "preadv2",
        &["EINTR", "EAGAIN", "EOPNOTSUPP", "ENOSYS", "EIO"],
    ),
    ("sendfile", &["EINVAL", "EIO", "ENOMEM"]),
    // Sockets.
    ("socket", &["EMFILE", "ENOBUFS"]),
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
    ("recvfrom", &["EINTR", "ENOMEM", "ECONNRESET"]),
    ("readv", &["EINTR"]),
    ("shutdown", &["ENOTCONN"]),
    ("ioctl", &["ENOTTY"]),
    // The process.
    ("mmap", &["ENOMEM"]),
    ("madvise", &["EAGAIN", "ENOMEM"]),
    ("clone3", &["EAGAIN", "ENOMEM"]),
    ("sched_getaffinity", &["EPERM"]),
    ("getrandom", &["EINTR", "ENOSYS"]),
    ("pipe2", &["EMFILE", "ENFILE"]),
    ("rt_sigaction", &["EINVAL"]),
    ("prlimit64", &["EPERM"]),
    ("pidfd_open", &["EMFILE", "ENOSYS"]),
    ("waitid", &["EINTR"]),
    ("wait4", &["EINTR"]),
];
