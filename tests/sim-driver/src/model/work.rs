//! Executes operations in stream order. Results are real: copies, memsets and the known kernels
//! change memory, and the L2 determines how long data movement takes.

use crate::code::{Code, DriverResult};
use crate::constants::Constants;
use crate::handle::Handle;
use crate::kernels;
use crate::memory::MemoryKind;
use crate::model::Model;
use crate::object::work::Work;

impl Model {
    /// Executes `work` and returns its length as CUPTI would report it.
    pub fn perform(&mut self, stream: Handle, work: &Work) -> DriverResult<u64> {
        let context = self.stream(stream).context;
        let device = self.contexts.get(context).ok_or(Code::CONTEXT_IS_DESTROYED)?.device;
        let (l2, memory, c) = (&mut self.devices[device].l2, &self.memory, &self.constants);
        let transfer = |bytes| c.transfer_ns + Constants::at_rate(bytes, c.transfer_bytes_per_ns);
        Ok(match work {
            Work::Record { .. } | Work::Wait { .. } | Work::Nothing => 0,
            Work::Kernel { kernel, name, .. } => {
                let length = kernel.run(memory, l2, c)?;
                self.costs.of_kernel(name).unwrap_or(length)
            }
            Work::Fill { to, pattern, width, count } => {
                memory.fill(*to, &pattern[..*width], *count)?;
                let bytes = *count * *width as u64;
                l2.access(&[kernels::write(*to, bytes)]);
                c.memset_ns + Constants::at_rate(bytes, c.memset_bytes_per_ns)
            }
            Work::Copy { to, from, bytes } => {
                memory.copy(*to, *from, *bytes)?;
                let touches = [kernels::read(*from, *bytes), kernels::write(*to, *bytes)];
                kernels::moving_ns(&touches, l2, c)
            }
            Work::PeerCopy { to, from, bytes } => {
                memory.copy(*to, *from, *bytes)?;
                c.transfer_ns + Constants::at_rate(*bytes, c.peer_bytes_per_ns)
            }
            Work::Upload { to, data } => {
                memory.write(*to, data)?;
                l2.access(&[kernels::write(*to, data.len() as u64)]);
                transfer(data.len() as u64)
            }
            Work::Download { to, from, bytes } => {
                memory.check(*from, *bytes)?;
                // SAFETY: the source was checked. The destination belongs to the program, which
                // must keep it valid until it has waited for the stream.
                unsafe {
                    std::ptr::copy(*from as *const u8, *to as *mut u8, *bytes as usize);
                }
                l2.access(&[kernels::read(*from, *bytes)]);
                transfer(*bytes)
            }
            Work::Free { address } => {
                self.release(*address, MemoryKind::Device)?;
                0
            }
            Work::Host(callback) => {
                self.callbacks.push(*callback);
                0
            }
        })
    }
}
