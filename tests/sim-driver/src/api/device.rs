//! Initialisation and device functions. Attributes are those of an H200; unknown attributes are 0.

use super::args::Out;
use super::call::driver;
use crate::code::{Code, DriverResult};
use crate::model::Model;
use crate::process;

/// `CUuuid`.
type Uuid = [u8; 16];

impl Model {
    /// Fails unless a test has requested the simulation, so that a program that finds the library
    /// by accident sees a driver without devices.
    fn init(&mut self, flags: u32) -> DriverResult {
        if flags != 0 {
            return Err(Code::INVALID_VALUE);
        }
        let wanted = std::env::var_os("GPU_TIME_TEST_SIM").is_some_and(|value| value == "1");
        if !wanted || self.devices.is_empty() {
            return Err(Code::NO_DEVICE);
        }
        if !self.initialized {
            self.initialized = true;
            process::register_handlers();
        }
        Ok(())
    }

    fn attribute(&self, attribute: i32) -> DriverResult<i32> {
        let c = &self.constants;
        let value = match attribute {
            1..=3 => 1_024,           // threads per block, block dimensions x and y
            4 => 64,                  // block dimension z
            5 => i64::from(i32::MAX), // grid dimension x
            6 | 7 => 65_535,          // grid dimensions y and z
            8 => 49_152,              // shared memory per block
            9 => 65_536,              // constant memory
            10 => 32,                 // warp size
            12 | 82 => 65_536,        // registers per block, and per SM
            13 => c.sm_khz as i64,    // clock rate
            16 => c.sm_count as i64,  // SMs
            19 | 31 | 41 | 78 | 83 | 86 | 89 | 90 | 91 | 95 | 99 => 1, // supported features
            36 => 3_201_000,          // memory clock
            37 => 6_144,              // memory bus width
            38 => c.l2_bytes as i64,  // L2
            39 => 2_048,              // threads per SM
            40 => 3,                  // copy engines
            75 => (c.compute_capability / 10) as i64,
            76 => (c.compute_capability % 10) as i64,
            81 => 233_472,                      // shared memory per SM
            97 => 232_448,                      // shared memory per block, opt-in
            106 => 32,                          // blocks per SM
            108 => (c.l2_bytes / 8 * 5) as i64, // maximum persisting L2
            115 => c.memory_pools as i64,
            i32::MIN..=0 => return Err(Code::INVALID_VALUE),
            _ => 0,
        };
        Ok(i32::try_from(value).unwrap_or(i32::MAX))
    }

    /// Returns a device's index on the machine, before `CUDA_VISIBLE_DEVICES` is applied.
    fn installed(&self, device: i32) -> DriverResult<usize> {
        Ok(self.devices[self.device(device)?].installed)
    }

    fn uuid(device: usize) -> Uuid {
        let mut uuid = *b"gpu-time-sim-0\0\0";
        uuid[15] = device as u8;
        uuid
    }
}

/// Copies a string into the caller's buffer, truncated to the buffer's length.
fn put_text(text: &str, buffer: Out<u8>, len: i32) -> DriverResult {
    let len = usize::try_from(len).ok().filter(|&len| len > 0).ok_or(Code::INVALID_VALUE)?;
    if buffer.0.is_null() {
        return Err(Code::INVALID_VALUE);
    }
    let cut = &text.as_bytes()[..text.len().min(len - 1)];
    // SAFETY: the caller's buffer has `len` bytes, and at most `len` are written.
    unsafe {
        std::ptr::copy_nonoverlapping(cut.as_ptr(), buffer.0, cut.len());
        buffer.0.add(cut.len()).write(0);
    }
    Ok(())
}

driver! {
    fn cuInit(Flags: u32) [0, Always] |m| m.init(Flags);
    fn cuDriverGetVersion(driverVersion: Out<i32>) [10, Always] |m| {
        driverVersion.put(m.constants.driver_version as i32)
    };
    fn cuDeviceGet(device: Out<i32>, ordinal: i32) [10, AfterInit] |m| {
        device.put(m.device(ordinal)? as i32)
    };
    fn cuDeviceGetCount(count: Out<i32>) [10, AfterInit] |m| count.put(m.devices.len() as i32);
    fn cuDeviceGetName(name: Out<u8>, len: i32, dev: i32) [100, AfterInit] |m| {
        m.device(dev)?;
        // A device with a different compute capability is not an H200.
        let part = if m.constants.compute_capability == 90 { "H200" } else { "GPU" };
        put_text(&format!("Simulated {part}"), name, len)
    };
    fn cuDeviceGetUuid(
        uuid: Out<Uuid>, dev: i32,
    ) [100, AfterInit] |m| uuid.put(Model::uuid(m.installed(dev)?));
    fn cuDeviceGetUuid_v2(uuid: Out<Uuid>, dev: i32) [100, AfterInit] |m| {
        uuid.put(Model::uuid(m.installed(dev)?))
    };
    fn cuDeviceGetPCIBusId(pciBusId: Out<u8>, len: i32, dev: i32) [100, AfterInit] |m| {
        put_text(&format!("0000:{:02X}:00.0", m.installed(dev)? + 1), pciBusId, len)
    };
    fn cuDeviceTotalMem_v2(bytes: Out<usize>, dev: i32) [100, AfterInit] |m| {
        m.device(dev)?;
        bytes.put(m.constants.memory_bytes as usize)
    };
    fn cuDeviceGetAttribute(pi: Out<i32>, attrib: i32, dev: i32) [20, AfterInit] |m| {
        let installed = m.installed(dev)?;
        // 33 is the PCI bus number: each device has its own bus.
        pi.put(if attrib == 33 { installed as i32 + 1 } else { m.attribute(attrib)? })
    };
    fn cuDeviceCanAccessPeer(canAccessPeer: Out<i32>, dev: i32, peerDev: i32) [20, AfterInit] |m| {
        let (device, peer) = (m.device(dev)?, m.device(peerDev)?);
        canAccessPeer.put(i32::from(device != peer))
    };
    fn cuDeviceGetDefaultMemPool(pool: Out<u64>, dev: i32) [20, AfterInit] |m| {
        pool.put(m.device(dev)? as u64 + 1)
    };
    fn cuDeviceGetMemPool(pool: Out<u64>, dev: i32) [20, AfterInit] |m| {
        pool.put(m.device(dev)? as u64 + 1)
    };
    fn cuDeviceSetMemPool(dev: i32, pool: u64) [20, AfterInit] |m| {
        if pool == m.device(dev)? as u64 + 1 { Ok(()) } else { Err(Code::INVALID_VALUE) }
    };
}
