//! Child processes created by `fork`.

use std::ffi::c_int;
use std::process;

/// Forks and returns the child's id to the parent. The child runs `child`, then exits with 0.
///
/// `child` must not need a lock that another of the program's threads may hold.
pub fn fork(child: impl FnOnce()) -> libc::pid_t {
    // SAFETY: `child` needs no lock held by another thread.
    match unsafe { libc::fork() } {
        -1 => panic!("cannot fork: {}", std::io::Error::last_os_error()),
        0 => {
            child();
            process::exit(0);
        }
        pid => pid,
    }
}

/// Waits for a child and returns its wait status.
pub fn wait(pid: libc::pid_t) -> c_int {
    let mut status = 0;
    // SAFETY: writes one integer.
    assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
    status
}

/// Waits for a child and asserts that it exits with `code`.
pub fn assert_exits(pid: libc::pid_t, code: c_int) {
    let status = wait(pid);
    assert!(libc::WIFEXITED(status), "a signal ended the child: {status:#x}");
    assert_eq!(libc::WEXITSTATUS(status), code);
}

/// Waits for a child and asserts that `signal` ends it.
pub fn assert_killed(pid: libc::pid_t, signal: c_int) {
    let status = wait(pid);
    assert!(libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == signal, "{status:#x}");
}
