//! Finds a simulation package's shared library. The stand-ins for NVML, CUPTI and NVTX tools include
//! this file with `#[path]`. They cannot depend on this package, because their libraries would then
//! export the driver's symbols.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns the path of `file`, the library built from the package in the folder `package`. When
/// Cargo builds it together with the running test, the library is beside the test's executable or
/// one folder up. Otherwise, it is built now.
pub(crate) fn find_or_build(file: &str, package: &str) -> io::Result<PathBuf> {
    let program = std::env::current_exe()?;
    let folders = program.ancestors().skip(1).take(3);
    folders
        .flat_map(|folder| [folder.join("deps").join(file), folder.join(file)])
        .find(|path| path.is_file())
        .map_or_else(|| build(file, Path::new(package), &program), Ok)
}

/// Builds the library, for a program that does not depend on the package or has been moved.
fn build(file: &str, package: &Path, program: &Path) -> io::Result<PathBuf> {
    let name = package.file_name().unwrap_or_default();
    let target = program.parent().unwrap_or(program).join(name);
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["build", "--lib", "--target-dir"])
        .arg(&target)
        .arg("--manifest-path")
        .arg(package.join("Cargo.toml"))
        .status()?;
    if !status.success() {
        return Err(io::Error::other(format!("failed to build `{}`", package.display())));
    }
    Ok(target.join("debug").join(file))
}
