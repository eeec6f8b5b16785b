//! `launch` as in cudarc: unsafe, because the caller is responsible for the kernel.

use crate::cuda::{Builder, Refused};

impl Builder<'_> {
    pub unsafe fn launch(&mut self, grid: u32) -> Result<(), Refused> {
        self.enqueue(grid)
    }
}
