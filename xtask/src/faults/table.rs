//! Which system calls are made to fail, and with what: errors that their pages of the manual document.

/// A system call, as strace names it, and its errors. `EINTR` and `EAGAIN` are injected where the page says that the call can end so.
/// Not injected, since an injected call is not made, and what its error means is then not so: `close` (Linux has closed the descriptor);
/// `futex` (nobody is woken); `connect` with `EINTR` (it goes on); `EAGAIN` of a socket or pipe (it is not ready, and its readiness
/// will be reported); `write`, which the programs use for pipes and eventfds: these don't fail so, and signal handlers rely on it.
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
