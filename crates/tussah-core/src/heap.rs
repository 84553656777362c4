//! The memory of the process.

/// Limits the number of arenas that the C library's allocator creates.
///
/// By default, glibc may create eight arenas per CPU (`M_ARENA_MAX` in mallopt(3)). Each OS thread
/// allocates from one arena, and freed memory returns to the arena that it came from, whichever OS
/// thread frees it. If OS threads pass memory to each other, for example because some of them read
/// files for others, free memory accumulates in each arena, and OS threads that use other arenas
/// cannot allocate it. The memory use of a server then keeps growing. Fewer arenas reduce this
/// effect, but OS threads that allocate a lot then contend for them.
///
/// Call this function at the beginning of `main`. If the process already has a second OS thread, or
/// uses a C library other than glibc, the function does nothing and returns false. The setting has
/// no effect if the program uses a different global allocator. A `max` of 0 counts as 1.
///
/// # Examples
/// ```
/// if !tussah_core::heap::bound_arenas(2) {
///     println!("the limit on arenas was not set");
/// }
/// ```
pub fn bound_arenas(max: usize) -> bool {
    let threads = std::fs::read_dir("/proc/self/task").map(Iterator::count);
    matches!(threads, Ok(1)) && set_arena_max(max.max(1))
}

/// Sets the limit. Only for a process of one OS thread.
#[cfg(all(target_env = "gnu", not(miri)))]
fn set_arena_max(max: usize) -> bool {
    let max = libc::c_int::try_from(max).unwrap_or(libc::c_int::MAX);
    // SAFETY: `mallopt` must not run concurrently with other functions of the allocator (the GNU C
    // library's manual: "MT-Unsafe init const:mallopt"). The caller has found one OS thread in the
    // process. It is this one, and only this OS thread could start another.
    unsafe { libc::mallopt(libc::M_ARENA_MAX, max) == 1 }
}

#[cfg(not(all(target_env = "gnu", not(miri))))]
fn set_arena_max(_: usize) -> bool {
    false
}
