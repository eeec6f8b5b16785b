//! Finds the library of a package that stands in for one of NVIDIA's. The stand-in for NVML has this file
//! too: it cannot depend on this package, whose symbols would become its own.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The file that was built together with the running test, of the package in this folder. Cargo puts it
/// beside the test's own file, or one folder up.
pub(crate) fn library(file: &str, package: &str) -> io::Result<PathBuf> {
    let program = std::env::current_exe()?;
    let folders = program.ancestors().skip(1).take(3);
    folders
        .flat_map(|folder| [folder.join("deps").join(file), folder.join(file)])
        .find(|path| path.is_file())
        .map_or_else(|| build(file, Path::new(package), &program), Ok)
}

/// Builds it, for a program that does not depend on the package, or was carried away.
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
        return Err(io::Error::other(format!("`{}` does not build", package.display())));
    }
    Ok(target.join("debug").join(file))
}
