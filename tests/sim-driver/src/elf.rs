//! Removes exported symbols from a shared library, to simulate a driver that is too old to have
//! them.

use std::io;

const SECTION_HEADER_BYTES: usize = 64;
const SYMBOL_BYTES: usize = 24;
const DYNAMIC_SYMBOLS: u32 = 11;

/// A little-endian 64-bit ELF file.
struct Elf<'a>(&'a mut [u8]);

impl Elf<'_> {
    fn number<const N: usize>(&self, at: usize) -> io::Result<usize> {
        let bytes = self.0.get(at..at + N).ok_or_else(|| invalid("the ELF file is truncated"))?;
        let mut padded = [0; 8];
        padded[..N].copy_from_slice(bytes);
        Ok(u64::from_le_bytes(padded) as usize)
    }

    fn section(&self, index: usize) -> io::Result<usize> {
        Ok(self.number::<8>(0x28)? + index * SECTION_HEADER_BYTES)
    }

    fn name_is(&self, at: usize, name: &str) -> bool {
        let rest = self.0.get(at..).unwrap_or_default();
        rest.starts_with(name.as_bytes()) && rest.get(name.len()) == Some(&0)
    }

    /// Marks a dynamic symbol as undefined, so that lookups ignore it.
    fn undefine(&mut self, name: &str) -> io::Result<()> {
        for index in 0..self.number::<2>(0x3c)? {
            let section = self.section(index)?;
            if self.number::<4>(section + 4)? as u32 != DYNAMIC_SYMBOLS {
                continue;
            }
            let (start, bytes) = (self.number::<8>(section + 24)?, self.number::<8>(section + 32)?);
            let strings = self.section(self.number::<4>(section + 40)?)?;
            let strings = self.number::<8>(strings + 24)?;
            for symbol in (start..start + bytes).step_by(SYMBOL_BYTES) {
                if self.name_is(strings + self.number::<4>(symbol)?, name) {
                    // Clears the section index and the address.
                    self.0[symbol + 6..symbol + 16].fill(0);
                    return Ok(());
                }
            }
        }
        Err(invalid(&format!("the library does not export `{name}`")))
    }
}

fn invalid(message: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message)
}

/// Removes symbols from a library image.
pub(crate) fn remove_symbols(image: &mut [u8], symbols: &[&str]) -> io::Result<()> {
    if !image.starts_with(b"\x7fELF\x02\x01") {
        return Err(invalid("the library is not a 64-bit little-endian ELF file"));
    }
    let mut elf = Elf(image);
    symbols.iter().try_for_each(|symbol| elf.undefine(symbol))
}
