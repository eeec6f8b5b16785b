//! `launch` where the crate forbids unsafe code.

use crate::cuda::{Builder, Refused};

impl Builder<'_> {
    pub fn launch(&mut self, grid: u32) -> Result<(), Refused> {
        self.enqueue(grid)
    }

    pub fn launch_cooperative(&mut self, grid: u32) -> Result<(), Refused> {
        self.enqueue(grid)
    }
}
