//! Writes report files.

use std::ffi::OsString;
use std::fs::{self, File, Metadata, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use crate::base::outlet::{self, PATIENCE};
use crate::base::standard::Standard;

/// The mode bits of an existing file that its replacement keeps.
const PERMISSIONS: u32 = 0o777;

/// Writes a file atomically, by renaming a temporary file in the same directory. The mode and owner of an
/// existing file are preserved; if that is not possible, the file is overwritten in place. Devices and pipes
/// are written to directly, and so is a file that stdout or stderr goes to, because the program or its caller
/// may have written to it and may write more.
pub fn write_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let Some(old) = existing(path)? else {
        return Temporary::beside(path, None)?.become_file(path, bytes);
    };
    let status = old.metadata()?;
    if !status.is_file() {
        return outlet::write_all(&old, bytes, PATIENCE);
    }
    if let Some(stream) = Standard::to_file(&status) {
        return outlet::write_all(stream.descriptor()?, bytes, PATIENCE);
    }
    let path = real_path(path, &old, &status);
    match path.map(|path| Temporary::beside(&path, Some(&status)).map(|file| (file, path))) {
        Some(Ok((temporary, path))) => temporary.become_file(&path, bytes),
        _ => {
            old.set_len(0)?;
            outlet::write_all(&old, bytes, PATIENCE)
        }
    }
}

/// Opens an existing file, device or pipe, if there is one at this path. The kernel follows
/// symlinks, so that it can refuse one that belongs to another user (`protected_symlinks`).
fn existing(path: &Path) -> io::Result<Option<File>> {
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    match File::options().write(true).custom_flags(flags).open(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns the path of an open file itself, even if `path` is a symlink to it. Returns `None` if
/// the file no longer has a path.
fn real_path(path: &Path, file: &File, status: &Metadata) -> Option<PathBuf> {
    let path = match fs::symlink_metadata(path).ok()?.is_symlink() {
        true => fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).ok()?,
        false => path.to_owned(),
    };
    let found = fs::symlink_metadata(&path).ok()?;
    ((found.dev(), found.ino()) == (status.dev(), status.ino())).then_some(path)
}

/// A new file, which is removed again unless it becomes the report.
struct Temporary {
    file: File,
    path: PathBuf,
}

impl Temporary {
    /// Creates the file in the directory of `path`, with the mode and owner of `old`.
    fn beside(path: &Path, old: Option<&Metadata>) -> io::Result<Temporary> {
        static CREATED: AtomicU32 = AtomicU32::new(0);
        let mut name = OsString::from(".");
        name.push(path.file_name().unwrap_or_default());
        let nth = CREATED.fetch_add(1, Relaxed);
        name.push(format!(".{}-{nth}.tmp", std::process::id()));
        let path = path.with_file_name(name);
        // A killed process with the same id may have left such a file.
        let _ = fs::remove_file(&path);
        let mut options = File::options();
        options.write(true).create_new(true);
        if old.is_some() {
            options.mode(0o600);
        }
        let temporary = Temporary { file: options.open(&path)?, path };
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

    fn become_file(self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        outlet::write_all(&self.file, bytes, PATIENCE)?;
        fs::rename(&self.path, path)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // Fails if the file was renamed. Any other failure follows an error that is already
        // reported.
        let _ = fs::remove_file(&self.path);
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
        let path = folder.path().join("report.json");
        for text in ["a long first one", "second"] {
            write_file(&path, text.as_bytes()).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
        assert_eq!(names(folder.path()), ["report.json"]);
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
        let link = format!("/proc/self/fd/{}", file.as_raw_fd());
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
