//! `launch` as cudarc has it: the caller vouches for the kernel.

use crate::cuda::{Builder, Refused};

impl Builder<'_> {
    pub unsafe fn launch(&mut self, grid: u32) -> Result<(), Refused> {
        self.enqueue(grid)
    }
}
