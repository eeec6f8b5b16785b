//! Writes report files.

use std::fs::{self, File, Metadata, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::base::outlet::{self, PATIENCE};
use crate::base::{clock, file_calls, standard::Standard};

/// The mode bits of an existing file that its replacement keeps.
const PERMISSIONS: u32 = 0o777;

/// Writes a file atomically, by renaming a temporary file in the same directory. The mode and owner of an
/// existing file are preserved; if that is not possible, the file is overwritten in place. Devices and pipes
/// are written to directly, and so is a file that stdout or stderr goes to, because the program or its caller
/// may have written to it and may write more.
pub fn write_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    match existing(path)? {
        None => Temporary::beside(path, None)?.replace(path, bytes),
        Some(old) => overwrite(path, &old, bytes),
    }
}

/// Like [`write_file`], but replaces an existing file only if `may_replace` permits it.
///
/// # Errors
///
/// `AlreadyExists` if there is another file, even if it was created or replaced only during this call.
pub(crate) fn write_unless_taken(
    path: &Path,
    bytes: &[u8],
    may_replace: impl FnOnce(&Metadata) -> bool,
) -> io::Result<()> {
    let Some(old) = existing(path)? else {
        return Temporary::beside(path, None)?.become_new(path, bytes);
    };
    let status = old.metadata()?;
    let is_ours = || {
        // Of several processes that may replace it, the first one to lock it does.
        may_replace(&status)
            && file_calls::lock(&old)
            && fs::metadata(path).is_ok_and(|now| is_unchanged(&status, &now))
    };
    if status.is_file() && Standard::to_file(&status).is_none() && !is_ours() {
        return Err(ErrorKind::AlreadyExists.into());
    }
    overwrite(path, &old, bytes)
}

/// Returns `true` for two readings of a file that nothing has written in between. A new file often gets the inode number
/// of one that was removed, so the time counts as well.
pub(crate) fn is_unchanged(before: &Metadata, now: &Metadata) -> bool {
    let version = |status: &Metadata| (status.dev(), status.ino(), status.modified().ok());
    version(before) == version(now)
}

/// Writes to the file, device or pipe that is open at this path.
fn overwrite(path: &Path, old: &File, bytes: &[u8]) -> io::Result<()> {
    let status = old.metadata()?;
    if !status.is_file() {
        return outlet::write_all(old, bytes, PATIENCE);
    }
    if let Some(stream) = Standard::to_file(&status) {
        return outlet::write_all(stream.descriptor()?, bytes, PATIENCE);
    }
    let path = real_path(path, old, &status);
    match path.map(|path| Temporary::beside(&path, Some(&status)).map(|file| (file, path))) {
        Some(Ok((temporary, path))) => temporary.replace(&path, bytes),
        _ => {
            old.set_len(0)?;
            write_now(old, bytes)
        }
    }
}

/// Writes a report, and its time. The clock of files ticks every few milliseconds, but the time shows which of two
/// processes began before the other one's report was complete.
fn write_now(file: &File, bytes: &[u8]) -> io::Result<()> {
    outlet::write_all(file, bytes, PATIENCE)?;
    // If that fails, the file has the time of that clock.
    _ = file.set_modified(SystemTime::now());
    Ok(())
}

/// Opens an existing file, device or pipe, if there is one at this path. The kernel follows
/// symlinks, so that it can refuse one that belongs to another user (`protected_symlinks`).
fn existing(path: &Path) -> io::Result<Option<File>> {
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    match File::options().write(true).custom_flags(flags).open(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns the path of an open file itself, even if `path` is a symlink to it. Returns `None` if
/// the file no longer has a path.
fn real_path(path: &Path, file: &File, status: &Metadata) -> Option<PathBuf> {
    let is_link = fs::symlink_metadata(path).ok()?.is_symlink();
    let path =
        if is_link { fs::read_link(file_calls::descriptor(file)).ok()? } else { path.to_owned() };
    let found = fs::symlink_metadata(&path).ok()?;
    ((found.dev(), found.ino()) == (status.dev(), status.ino())).then_some(path)
}

/// A new file, which is removed again unless it becomes the report. Where the file system permits it, the file has no
/// name until it is complete, so that a killed process leaves nothing behind.
struct Temporary {
    file: File,
    path: PathBuf,
    is_named: bool,
}

impl Temporary {
    /// Creates the file in the directory of `path`, with the mode and owner of `old`.
    fn beside(path: &Path, old: Option<&Metadata>) -> io::Result<Temporary> {
        // Processes in different containers can have the same id.
        let name = format!(".gpu-time-{}-{}.tmp", std::process::id(), clock::now_ns());
        let path = path.with_file_name(name);
        let mode = if old.is_some() { 0o600 } else { 0o666 };
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let nameless = file_calls::nameless(folder.unwrap_or(Path::new(".")), mode);
        let temporary = match nameless {
            Some(file) => Temporary { file, path, is_named: false },
            None => {
                let mut options = File::options();
                let file = options.write(true).create_new(true).mode(mode).open(&path)?;
                Temporary { file, path, is_named: true }
            }
        };
        if let Some(old) = old {
            let new = temporary.file.metadata()?;
            if (new.uid(), new.gid()) != (old.uid(), old.gid()) {
                fchown(&temporary.file, Some(old.uid()), Some(old.gid()))?;
            }
            let mode = old.mode() & PERMISSIONS;
            temporary.file.set_permissions(Permissions::from_mode(mode))?;
        }
        Ok(temporary)
    }

    /// Replaces the file at `path`, if there is one.
    fn replace(mut self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        write_now(&self.file, bytes)?;
        self.rename(path)
    }

    fn rename(&mut self, path: &Path) -> io::Result<()> {
        if !self.is_named {
            file_calls::name(&self.file, &self.path)?;
            self.is_named = true;
        }
        fs::rename(&self.path, path)
    }

    /// Becomes the file at `path`, unless there is one.
    fn become_new(mut self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        write_now(&self.file, bytes)?;
        let linked = if self.is_named {
            fs::hard_link(&self.path, path)
        } else {
            file_calls::name(&self.file, path)
        };
        match linked {
            // A link to a missing file is replaced.
            Err(error) if error.kind() == ErrorKind::AlreadyExists && is_dangling(path) => {
                self.rename(path)
            }
            Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                // The file system has no hard links.
                File::create_new(path)?;
                self.rename(path).inspect_err(|_| _ = fs::remove_file(path))
            }
            linked => linked,
        }
    }
}

/// Returns `true` for a symbolic link to a missing file.
fn is_dangling(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|status| status.is_symlink()) && !path.exists()
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if self.is_named {
            // Fails if the file was renamed. Any other failure follows an error that is already
            // reported.
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{chown, symlink};
    use std::thread;
    use std::time::Duration;

    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn file_is_replaced_without_leftovers() {
        let folder = tempfile::tempdir().unwrap();
        // The second one is as long as file systems permit.
        for name in ["report.json".to_owned(), "r".repeat(255)] {
            let path = folder.path().join(&name);
            for text in ["a long first one", "second"] {
                write_file(&path, text.as_bytes()).unwrap();
                assert_eq!(fs::read_to_string(&path).unwrap(), text);
            }
            assert_eq!(names(folder.path()), [name]);
            fs::remove_file(path).unwrap();
        }
    }

    #[test]
    fn file_has_the_time_at_which_it_was_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report.json");
        for _ in 0..100 {
            let before = SystemTime::now();
            write_file(&path, b"now").unwrap();
            let written = fs::metadata(&path).unwrap().modified().unwrap();
            assert!((before..=SystemTime::now()).contains(&written));
        }
    }

    #[test]
    fn killed_process_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report.json");
        for old in [None, Some(folder.path().metadata().unwrap())] {
            // The process is killed while it writes.
            let temporary = Temporary::beside(&path, old.as_ref()).unwrap();
            outlet::write_all(&temporary.file, b"half a rep", PATIENCE).unwrap();
            assert_eq!(names(folder.path()), [""; 0]);
        }
    }

    #[test]
    fn one_of_many_replaces_an_old_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report.json");
        fs::write(&path, "old").unwrap();
        let long_ago = SystemTime::now() - Duration::from_secs(9_000);
        File::options().write(true).open(&path).unwrap().set_modified(long_ago).unwrap();
        let old = fs::metadata(&path).unwrap();
        let write = || write_unless_taken(&path, b"new", |found| is_unchanged(&old, found));
        let written = thread::scope(|scope| {
            let writers: Vec<_> = (0..8).map(|_| scope.spawn(write)).collect();
            writers.into_iter().filter_map(|writer| writer.join().unwrap().ok()).count()
        });
        assert_eq!(written, 1);
        assert_eq!(write().unwrap_err().kind(), ErrorKind::AlreadyExists);
        assert_eq!(names(folder.path()), ["report.json"]);
    }

    #[test]
    fn one_of_many_creates_a_new_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report.json");
        let write = |is_named| {
            let mut temporary = Temporary::beside(&path, None).unwrap();
            if is_named {
                // As on a file system without nameless files.
                file_calls::name(&temporary.file, &temporary.path).unwrap();
                temporary.is_named = true;
            }
            temporary.become_new(&path, b"new")
        };
        let written = thread::scope(|scope| {
            let writers: Vec<_> = (0..8).map(|n| scope.spawn(move || write(n % 2 == 0))).collect();
            writers.into_iter().filter_map(|writer| writer.join().unwrap().ok()).count()
        });
        assert_eq!((written, names(folder.path())), (1, vec!["report.json".to_owned()]));
    }

    #[test]
    fn link_stays_link() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        fs::write(&file, "old").unwrap();
        symlink(&file, &link).unwrap();
        write_file(&link, b"new").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
    }

    #[test]
    fn device_is_not_replaced() {
        write_file(Path::new("/dev/null"), b"gone").unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
    }

    fn fifo(folder: &Path) -> PathBuf {
        let path = folder.join("fifo");
        let made = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
        assert!(made.success());
        path
    }

    #[test]
    fn pipe_without_reader_fails_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let error = write_file(&fifo(folder.path()), b"x").unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENXIO));
    }

    #[test]
    fn slow_reader_gets_more_than_pipe_capacity() {
        let folder = tempfile::tempdir().unwrap();
        let path = fifo(folder.path());
        // Opening a pipe for reading and writing does not wait for the other end.
        let keep = File::options().read(true).write(true).open(&path).unwrap();
        let reader = thread::spawn({
            let mut pipe = File::open(&path).unwrap();
            move || {
                thread::sleep(Duration::from_millis(50));
                let mut text = Vec::new();
                io::Read::read_to_end(&mut pipe, &mut text).unwrap();
                text
            }
        });
        let text: Vec<u8> = (0..300_000u32).map(|i| i as u8).collect();
        write_file(&path, &text).unwrap();
        drop(keep);
        assert!(reader.join().unwrap() == text);
    }

    #[test]
    fn full_pipe_fails() {
        let folder = tempfile::tempdir().unwrap();
        let path = fifo(folder.path());
        let _stalled = File::options().read(true).write(true).open(&path).unwrap();
        let error = write_file(&path, &vec![0; 4 << 20]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[test]
    fn full_disk_fails() {
        assert_eq!(
            write_file(Path::new("/dev/full"), b"x").unwrap_err().kind(),
            io::ErrorKind::StorageFull
        );
    }

    #[test]
    fn failed_write_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(
            write_file(folder.path(), b"x").unwrap_err().kind(),
            io::ErrorKind::IsADirectory
        );
        let missing = folder.path().join("missing").join("report");
        assert_eq!(write_file(&missing, b"x").unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(names(folder.path()), [""; 0]);
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o7777
    }

    #[test]
    fn mode_of_file_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        fs::write(&file, "old").unwrap();
        symlink(&file, &link).unwrap();
        for (path, expected) in [(&file, 0o600), (&link, 0o640), (&file, 0o666)] {
            fs::set_permissions(&file, Permissions::from_mode(expected)).unwrap();
            write_file(path, b"new").unwrap();
            assert_eq!(mode(&file), expected);
        }
    }

    #[test]
    fn owner_of_file_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "old").unwrap();
        if chown(&file, Some(65534), Some(65534)).is_err() {
            return eprintln!("skipped: this user cannot give files away");
        }
        write_file(&file, b"new").unwrap();
        let status = fs::metadata(&file).unwrap();
        assert_eq!((status.uid(), status.gid()), (65534, 65534));
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
    }

    #[test]
    fn link_that_kernel_refuses_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("link");
        symlink("link", &link).unwrap();
        let error = write_file(&link, b"x").unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ELOOP));
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(names(folder.path()), ["link"]);
    }

    /// The target text of this link is the path of another file, so the kernel must follow it.
    #[test]
    fn kernel_follows_link() {
        let folder = tempfile::tempdir().unwrap();
        let [path, decoy] = ["file", "file (deleted)"].map(|name| folder.path().join(name));
        let file = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
        fs::remove_file(&path).unwrap();
        fs::write(&decoy, "old").unwrap();
        let link = file_calls::descriptor(&file);
        assert_eq!(fs::read_link(&link).unwrap(), decoy);
        write_file(Path::new(&link), b"new").unwrap();
        assert_eq!(io::read_to_string(file).unwrap(), "new");
        assert_eq!(fs::read_to_string(decoy).unwrap(), "old");
    }

    /// Other users may plant links in a sticky folder.
    #[test]
    fn link_of_other_user_in_sticky_folder_is_refused() {
        let is_protected = fs::read_to_string("/proc/sys/fs/protected_symlinks");
        if !is_protected.is_ok_and(|is_protected| is_protected.trim() == "1") {
            return eprintln!("skipped: `fs.protected_symlinks` is off");
        }
        let folder = tempfile::tempdir().unwrap();
        let [target, sticky] = ["target", "sticky"].map(|name| folder.path().join(name));
        fs::write(&target, "old").unwrap();
        fs::create_dir(&sticky).unwrap();
        fs::set_permissions(&sticky, Permissions::from_mode(0o1777)).unwrap();
        let link = sticky.join("link");
        symlink(&target, &link).unwrap();
        if std::os::unix::fs::lchown(&link, Some(65534), None).is_err() {
            return eprintln!("skipped: this user cannot give files away");
        }
        assert_eq!(write_file(&link, b"x").unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        assert_eq!(fs::read_to_string(&target).unwrap(), "old");
    }
}
