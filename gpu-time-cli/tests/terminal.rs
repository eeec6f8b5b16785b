//! Runs a command on a terminal and captures its output.

use std::fs::File;
use std::io::Read;
use std::process::{Command, Stdio};

use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

/// Runs a command and returns what it wrote to a terminal of the given width. `attach` connects one
/// of its streams, such as [`Command::stdout`].
pub fn output(
    columns: u16,
    mut command: Command,
    attach: fn(&mut Command, Stdio) -> &mut Command,
) -> String {
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&terminal).unwrap();
    unlockpt(&terminal).unwrap();
    let peer = ioctl_tiocgptpeer(&terminal, OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    let size = Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&terminal, size).unwrap();
    let mut child = attach(&mut command, peer.into()).spawn().unwrap();
    // `command` holds a copy of the peer, which would prevent the read below from ending.
    drop(command);
    let mut text = Vec::new();
    // On Linux, the end of the output is reported as an error.
    _ = File::from(terminal).read_to_end(&mut text);
    assert!(child.wait().unwrap().success());
    String::from_utf8(text).unwrap().replace("\r\n", "\n")
}
