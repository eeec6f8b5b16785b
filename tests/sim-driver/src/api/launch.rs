//! Module, function, launch and occupancy functions. Occupancy is limited only by the block size.

use std::ffi::c_void;

use super::args::{Out, Text};
use super::call::driver;
use crate::code::{Code, DriverResult};
use crate::handle::Handle;
use crate::kernels::Kernel;
use crate::model::Model;
use crate::object::module::Function;
use crate::object::work::{Callback, REGISTERS, Shape, Work};

const MAX_THREADS_PER_BLOCK: u64 = 1_024;
const THREADS_PER_SM: i32 = 2_048;

/// `CUlaunchConfig`. The model ignores the attributes.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct LaunchConfig {
    grid: [u32; 3],
    block: [u32; 3],
    shared_bytes: u32,
    stream: Handle,
    attributes: *const c_void,
    attribute_count: u32,
}

/// Pointers to a launch's arguments.
type Arguments = *const *const c_void;

/// A callback that returns the dynamic shared memory for a block of the given size.
type BlockSizeToSharedMemory = Option<unsafe extern "C" fn(i32) -> usize>;

type HostFunction = unsafe extern "C" fn(*mut c_void);

impl Model {
    fn launch(
        &mut self,
        function: Handle,
        grid: [u32; 3],
        block: [u32; 3],
        shared_bytes: u32,
        stream: Handle,
        arguments: Arguments,
    ) -> DriverResult {
        self.current()?;
        let Function { context, name, known, .. } = self.function(function)?.clone();
        let threads = block.iter().map(|&n| u64::from(n)).product::<u64>();
        if grid.contains(&0) || threads == 0 || threads > MAX_THREADS_PER_BLOCK {
            return Err(Code::INVALID_VALUE);
        }
        let stream = self.usable_stream(stream)?;
        if self.stream(stream).context != context {
            return Err(Code::INVALID_HANDLE);
        }
        let kernel = match known {
            // Arguments passed in one buffer (`extra`) are not supported.
            true if arguments.is_null() && !name.ends_with("empty") => {
                return Err(Code::NOT_SUPPORTED);
            }
            // SAFETY: the kernel's parameters were checked when it was looked up, and the caller
            // passes a pointer for each.
            true => unsafe { Kernel::known(&name, arguments) },
            false => Kernel::Unknown,
        };
        let work = Work::Kernel { name, kernel, shape: Shape { grid, block, shared_bytes } };
        if let Some(capture) = self.capture_of(stream)? {
            return self.capture_work(capture, stream, work);
        }
        let done = self.enqueue(stream, work, None)?;
        if self.launch_blocking { self.wait_for(&done) } else { Ok(()) }
    }

    fn launch_host(
        &mut self,
        stream: Handle,
        function: Option<HostFunction>,
        data: u64,
    ) -> DriverResult {
        let function = function.ok_or(Code::INVALID_VALUE)?;
        let stream = self.usable_stream(stream)?;
        let work = Work::Host(Callback { function, data });
        match self.capture_of(stream)? {
            Some(capture) => self.capture_work(capture, stream, work),
            None => self.enqueue(stream, work, None).map(drop),
        }
    }

    fn function_attribute(&mut self, attribute: i32, function: Handle) -> DriverResult<i32> {
        self.function(function)?;
        Ok(match attribute {
            0 => MAX_THREADS_PER_BLOCK as i32,
            4 => REGISTERS.into(),
            5 | 6 => 80, // PTX and binary versions
            8 => 49_152, // dynamic shared memory
            _ => 0,
        })
    }

    fn blocks_per_sm(&mut self, function: Handle, block_size: i32) -> DriverResult<i32> {
        self.function(function)?;
        if block_size <= 0 || block_size > MAX_THREADS_PER_BLOCK as i32 {
            return Err(Code::INVALID_VALUE);
        }
        Ok((THREADS_PER_SM / block_size).min(32))
    }

    fn best_block(&mut self, function: Handle, limit: i32) -> DriverResult<(i32, i32)> {
        let block = if limit > 0 { limit.min(MAX_THREADS_PER_BLOCK as i32) } else { 1_024 };
        let blocks = self.blocks_per_sm(function, block)?;
        Ok((blocks * self.constants.sm_count as i32, block))
    }
}

driver! {
    fn cuModuleLoad(module: Out<Handle>, fname: Text) [100_000, NotInCapture] |m| {
        let image = std::fs::read_to_string(fname.get()?).map_err(|_| Code::FILE_NOT_FOUND)?;
        module.put(m.module_load(&image)?)
    };
    fn cuModuleLoadData(module: Out<Handle>, image: Text) [100_000, NotInCapture] |m| {
        module.put(m.module_load(&image.get()?)?)
    };
    fn cuModuleLoadDataEx(
        module: Out<Handle>, image: Text, numOptions: u32, options: *const i32,
        optionValues: Arguments,
    ) [100_000, NotInCapture] |m| module.put(m.module_load(&image.get()?)?);
    fn cuModuleUnload(hmod: Handle) [10_000, NotInCapture] |m| m.module_unload(hmod);
    fn cuModuleGetFunction(hfunc: Out<Handle>, hmod: Handle, name: Text) [1_000, AfterInit] |m| {
        hfunc.put(m.module_function(hmod, &name.get()?)?)
    };
    // A library is a module here, and its kernels are that module's functions.
    fn cuLibraryLoadData(
        library: Out<Handle>, code: Text, jitOptions: *const i32, jitOptionsValues: Arguments,
        numJitOptions: u32, libraryOptions: *const i32, libraryOptionValues: Arguments,
        numLibraryOptions: u32,
    ) [100_000, NotInCapture] |m| library.put(m.module_load(&code.get()?)?);
    fn cuLibraryUnload(library: Handle) [10_000, NotInCapture] |m| m.module_unload(library);
    fn cuLibraryGetKernel(
        pKernel: Out<Handle>, library: Handle, name: Text,
    ) [1_000, AfterInit] |m| pKernel.put(m.module_function(library, &name.get()?)?);
    fn cuModuleGetGlobal_v2(
        dptr: Out<u64>, bytes: Out<usize>, hmod: Handle, name: Text,
    ) [1_000, AfterInit] |m| {
        m.modules.get(hmod).ok_or(Code::INVALID_HANDLE)?;
        Err(Code::NOT_FOUND)
    };
    // Eager loading: the first launch costs the same as later ones.
    fn cuModuleGetLoadingMode(mode: Out<u32>) [10, AfterInit] |_| mode.put(1);
    fn cuFuncGetAttribute(pi: Out<i32>, attrib: i32, hfunc: Handle) [50, AfterInit] |m| {
        pi.put(m.function_attribute(attrib, hfunc)?)
    };
    fn cuFuncSetAttribute(hfunc: Handle, attrib: i32, value: i32) [50, AfterInit] |m| {
        m.function(hfunc).map(drop)
    };
    fn cuFuncSetCacheConfig(
        hfunc: Handle, config: u32,
    ) [50, AfterInit] |m| m.function(hfunc).map(drop);
    fn cuFuncLoad(function: Handle) [50, AfterInit] |m| m.function(function).map(drop);
    fn cuFuncIsLoaded(state: Out<u32>, function: Handle) [50, AfterInit] |m| {
        m.function(function)?;
        state.put(1)
    };
    fn cuFuncGetModule(hmod: Out<Handle>, hfunc: Handle) [50, AfterInit] |m| {
        hmod.put(m.function(hfunc)?.module)
    };
    fn cuLaunchKernel(
        f: Handle,
        gridDimX: u32, gridDimY: u32, gridDimZ: u32,
        blockDimX: u32, blockDimY: u32, blockDimZ: u32,
        sharedMemBytes: u32, hStream: Handle, kernelParams: Arguments, extra: Arguments,
    ) [2_620, AfterInit] |m| {
        let (grid, block) = ([gridDimX, gridDimY, gridDimZ], [blockDimX, blockDimY, blockDimZ]);
        m.launch(f, grid, block, sharedMemBytes, hStream, kernelParams)
    };
    fn cuLaunchKernelEx(
        config: Out<LaunchConfig>, f: Handle, kernelParams: Arguments, extra: Arguments,
    ) [2_620, AfterInit] |m| {
        let LaunchConfig { grid, block, shared_bytes, stream, .. } = config.take()?;
        m.launch(f, grid, block, shared_bytes, stream, kernelParams)
    };
    fn cuLaunchCooperativeKernel(
        f: Handle,
        gridDimX: u32, gridDimY: u32, gridDimZ: u32,
        blockDimX: u32, blockDimY: u32, blockDimZ: u32,
        sharedMemBytes: u32, hStream: Handle, kernelParams: Arguments,
    ) [2_620, AfterInit] |m| {
        let (grid, block) = ([gridDimX, gridDimY, gridDimZ], [blockDimX, blockDimY, blockDimZ]);
        m.launch(f, grid, block, sharedMemBytes, hStream, kernelParams)
    };
    fn cuLaunchHostFunc(
        hStream: Handle, function: Option<HostFunction>, userData: u64,
    ) [2_620, AfterInit] |m| {
        m.launch_host(hStream, function, userData)
    };
    fn cuOccupancyMaxActiveBlocksPerMultiprocessor(
        numBlocks: Out<i32>, func: Handle, blockSize: i32, dynamicSMemSize: usize,
    ) [200, AfterInit] |m| numBlocks.put(m.blocks_per_sm(func, blockSize)?);
    fn cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        numBlocks: Out<i32>, func: Handle, blockSize: i32, dynamicSMemSize: usize, flags: u32,
    ) [200, AfterInit] |m| numBlocks.put(m.blocks_per_sm(func, blockSize)?);
    fn cuOccupancyMaxPotentialBlockSize(
        minGridSize: Out<i32>, blockSize: Out<i32>, func: Handle,
        blockSizeToDynamicSMemSize: BlockSizeToSharedMemory, dynamicSMemSize: usize, blockSizeLimit: i32,
    ) [200, AfterInit] |m| {
        let (grid, block) = m.best_block(func, blockSizeLimit)?;
        minGridSize.put(grid)?;
        blockSize.put(block)
    };
    fn cuOccupancyMaxPotentialBlockSizeWithFlags(
        minGridSize: Out<i32>, blockSize: Out<i32>, func: Handle,
        blockSizeToDynamicSMemSize: BlockSizeToSharedMemory, dynamicSMemSize: usize, blockSizeLimit: i32, flags: u32,
    ) [200, AfterInit] |m| {
        let (grid, block) = m.best_block(func, blockSizeLimit)?;
        minGridSize.put(grid)?;
        blockSize.put(block)
    };
    fn cuOccupancyAvailableDynamicSMemPerBlock(
        dynamicSmemSize: Out<usize>, func: Handle, numBlocks: i32, blockSize: i32,
    ) [200, AfterInit] |m| {
        m.blocks_per_sm(func, blockSize)?;
        dynamicSmemSize.put(49_152)
    };
}
