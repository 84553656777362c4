//! The memory of the process.

/// Bounds how many arenas the C library's allocator makes, of which there may be eight for each CPU else (glibc; `M_ARENA_MAX` in mallopt(3)).
/// Each OS thread allocates from one arena, and what another one frees goes back there. So where OS threads hand over to each other what they allocate, as
/// those that read files do, each arena comes to hold free memory that the others can't use, and a server keeps growing. With fewer arenas there is less of
/// that; OS threads that allocate much wait for each other then.
///
/// Call it at the beginning of `main`. Once the process has a second OS thread it does nothing and returns false, and so it does with other C libraries. Another
/// global allocator does not ask for it. At least one arena is left.
///
/// # Examples
/// ```
/// if !tussah_core::heap::bound_arenas(2) {
///     println!("there are as many arenas as before");
/// }
/// ```
pub fn bound_arenas(max: usize) -> bool {
    let threads = std::fs::read_dir("/proc/self/task").map(Iterator::count);
    matches!(threads, Ok(1)) && set_arena_max(max.max(1))
}

/// Only for a process of one OS thread.
#[cfg(all(target_env = "gnu", not(miri)))]
fn set_arena_max(max: usize) -> bool {
    let max = libc::c_int::try_from(max).unwrap_or(libc::c_int::MAX);
    // SAFETY: `mallopt` may not run beside other functions of the allocator (the GNU C library's manual: "MT-Unsafe init const:mallopt"). The caller has found one OS thread
    // in the process, which is this one, and only that could start another.
    unsafe { libc::mallopt(libc::M_ARENA_MAX, max) == 1 }
}

#[cfg(not(all(target_env = "gnu", not(miri))))]
fn set_arena_max(_: usize) -> bool {
    false
}
