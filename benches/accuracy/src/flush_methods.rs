//! Measures the duration of each L2 flush method, and the lines that remain afterwards: lines read
//! before the flush, lines written among other dirty ones, the flush's own lines, and dirty lines.

use std::process::ExitCode;

use comfy_table::{CellAlignment, presets};
use cudarc::driver::sys::CUdevice_attribute_enum::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE;
use cudarc::driver::{CudaFunction, CudaSlice, LaunchConfig, PushKernelArg};
use gpu_time_kernels::{LINE_LATENCIES, LINE_LATENCIES_BLOCK, LINE_STEP, workloads};

use crate::cupti::Cupti;
use crate::failure::Failure;
use crate::figure::Figure;
use crate::flush::{Flush, Method};
use crate::gpu::{Gpu, ONE, is_present};
use crate::ncu;
use crate::truth::spans;

/// Flush methods, with their length as a multiple of the L2 size, ordered by traffic.
const CANDIDATES: &[(Method, u64)] = &[
    (Method::Read, 1),
    (Method::Read, 2),
    (Method::Read, 3),
    (Method::Read, 4),
    (Method::Write, 1),
    (Method::Write, 2),
    (Method::WriteDiscard, 1),
    (Method::WriteDiscard, 2),
];
const CALLS: u32 = 50;
/// The number of repetitions. The one with the most remaining lines is shown.
const ROUNDS: u32 = 5;
const LINES: u32 = 2_048;
/// The number of bytes read after a flush. The read evicts any lines that are still dirty, so writing
/// them back adds to its time.
const READ_BYTES: usize = 30 << 20;

/// Prints a row for each method. Fails without a GPU or CUPTI.
pub fn measure() -> Result<ExitCode, Failure> {
    if !is_present() {
        return Err("no GPU here".into());
    }
    // CUPTI must start before the first context is created, so that it records everything.
    let cupti = Cupti::start()?;
    let folder = tempfile::tempdir()?;
    let writes = match ncu::dram_writes(folder.path(), CANDIDATES.len() * ROUNDS as usize) {
        Ok(Some(writes)) => Ok(writes),
        Ok(None) => Err("not installed".into()),
        Err(why) => Err(why),
    };
    let gpu = Gpu::new()?;
    gpu.ramp()?;
    let mut lines = Lines::new(&gpu)?;
    let mut reader = Reader::new(&gpu)?;
    let mut table = comfy_table::Table::new();
    table.load_style(presets::ASCII_MARKDOWN);
    table.set_header([
        "flush",
        "L2s",
        "device time, µs",
        "left of read lines, %",
        "of written lines, %",
        "of its own lines, %",
        "a read of 30 MiB after it, µs",
        "written back by that, kB",
    ]);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    for (i, &(method, multiple)) in CANDIDATES.iter().enumerate() {
        let flush = match Flush::new(&gpu, method, multiple * l2_bytes(&gpu)?) {
            Ok(flush) => flush,
            Err(why) => {
                table.add_row([&method.to_string(), &multiple.to_string(), &why.to_string()]);
                continue;
            }
        };
        let (duration, read) = times(&cupti, &gpu, &flush, &mut reader)?;
        let mut row = vec![method.to_string(), multiple.to_string(), duration.to_string()];
        for share in lines.remaining(&gpu, &flush)? {
            row.push(format!("{:.1}", 100.0 * share));
        }
        row.push(read.to_string());
        row.push(writes.as_ref().map_or_else(
            |why: &Failure| format!("ncu: {why}"),
            |bytes| {
                let rounds = &bytes[i * ROUNDS as usize..][..ROUNDS as usize];
                // The first round includes writes from the profiler's startup.
                let max = rounds.iter().skip(1).copied().fold(0.0, f64::max);
                format!("{:.1}", max / 1e3)
            },
        ));
        table.add_row(row);
    }
    println!("{table}");
    Ok(ExitCode::SUCCESS)
}

/// Runs under ncu: repeatedly flushes a completely dirty L2 with each method, then reads.
pub fn plain() -> Result<ExitCode, Failure> {
    let gpu = Gpu::new()?;
    gpu.ramp()?;
    let mut reader = Reader::new(&gpu)?;
    let mut dirty = gpu.stream.alloc_zeros::<u8>(usize::try_from(l2_bytes(&gpu)?)?)?;
    for &(method, multiple) in CANDIDATES {
        let flush = Flush::new(&gpu, method, multiple * l2_bytes(&gpu)?);
        for _ in 0..ROUNDS {
            // The read runs even if the device does not support the method, so that ncu's launches
            // keep their positions.
            if let Ok(flush) = &flush {
                gpu.stream.memset_zeros(&mut dirty)?;
                flush.launch(&gpu)?;
            }
            reader.launch(&gpu)?;
            gpu.stream.synchronize()?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn l2_bytes(gpu: &Gpu) -> Result<u64, Failure> {
    Ok(gpu.context.attribute(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)?.try_into()?)
}

/// Uses CUPTI to measure the flush of a completely dirty L2 and the subsequent read.
fn times(
    cupti: &Cupti,
    gpu: &Gpu,
    flush: &Flush,
    reader: &mut Reader,
) -> Result<(Figure, Figure), Failure> {
    let mut dirty = gpu.stream.alloc_zeros::<u8>(usize::try_from(l2_bytes(gpu)?)?)?;
    // The first launch may load modules.
    flush.launch(gpu)?;
    reader.launch(gpu)?;
    gpu.stream.synchronize()?;
    drop(cupti.take()?);
    for _ in 0..CALLS {
        gpu.stream.memset_zeros(&mut dirty)?;
        flush.launch(gpu)?;
        reader.launch(gpu)?;
        gpu.stream.synchronize()?;
    }
    let records = cupti.take()?;
    let commands = flush.method().commands();
    let calls = records.chunks(commands + 2);
    let flushes: Vec<_> =
        calls.clone().flat_map(|call| call.iter().skip(1).take(commands)).collect();
    let reads: Vec<_> = calls.filter_map(|call| call.get(commands + 1)).collect();
    let figure = |records: Vec<_>| -> Result<Figure, Failure> {
        let records: Vec<_> = records.into_iter().cloned().collect();
        Figure::of(spans(&records, CALLS)?).ok_or_else(|| "CUPTI recorded nothing".into())
    };
    Ok((figure(flushes)?, figure(reads)?))
}

/// A kernel that only reads, with its buffers.
struct Reader {
    kernel: CudaFunction,
    from: CudaSlice<u8>,
    out: CudaSlice<u8>,
}

impl Reader {
    fn new(gpu: &Gpu) -> Result<Reader, Failure> {
        let zeros = |bytes| gpu.stream.alloc_zeros(bytes);
        let kernel = gpu.workload(workloads::READ_F4)?;
        Ok(Reader { kernel, from: zeros(READ_BYTES)?, out: zeros(4)? })
    }

    fn launch(&mut self, gpu: &Gpu) -> Result<(), Failure> {
        let n16 = READ_BYTES as u64 / 16;
        let config = LaunchConfig { grid_dim: (528, 1, 1), block_dim: (512, 1, 1), ..ONE };
        let mut launch = gpu.stream.launch_builder(&self.kernel);
        launch.arg(&self.from).arg(&n16).arg(&mut self.out);
        // SAFETY: the arguments match the kernel: the buffer has `n16` units, and `out` has one
        // word.
        Ok(unsafe { launch.launch(config) }.map(drop)?)
    }
}

/// Memory lines whose reads are timed to determine whether the L2 contains them.
struct Lines {
    kernel: CudaFunction,
    buffer: CudaSlice<u8>,
    /// Other lines, enough to fill the L2.
    others: CudaSlice<u8>,
    cycles: CudaSlice<u32>,
    done: CudaSlice<u64>,
}

impl Lines {
    fn new(gpu: &Gpu) -> Result<Lines, Failure> {
        let stream = &gpu.stream;
        Ok(Lines {
            kernel: gpu.runtime_kernel(LINE_LATENCIES)?,
            buffer: stream.alloc_zeros(LINES as usize * LINE_STEP as usize)?,
            others: stream.alloc_zeros(usize::try_from(l2_bytes(gpu)?)?)?,
            cycles: stream.alloc_zeros(2 * LINES as usize)?,
            done: stream.alloc_zeros(1)?,
        })
    }

    /// Returns the largest fractions of lines that remain in the L2 after a flush: for lines read
    /// before it, for lines written among others, and for the flush's own last lines.
    fn remaining(&mut self, gpu: &Gpu, flush: &Flush) -> Result<[f64; 3], Failure> {
        let buffer = self.buffer_address(gpu);
        let own = flush.address(gpu) + flush.bytes() - u64::from(LINES) * LINE_STEP;
        let mut shares = [0.0_f64; 3];
        for _ in 0..ROUNDS {
            self.hits(gpu, buffer)?;
            flush.launch(gpu)?;
            shares[0] = shares[0].max(self.hits(gpu, buffer)?);
            gpu.stream.memset_zeros(&mut self.others)?;
            gpu.stream.memset_zeros(&mut self.buffer)?;
            flush.launch(gpu)?;
            shares[1] = shares[1].max(self.hits(gpu, buffer)?);
            flush.launch(gpu)?;
            shares[2] = shares[2].max(self.hits(gpu, own)?);
        }
        Ok(shares)
    }

    fn buffer_address(&self, gpu: &Gpu) -> u64 {
        use cudarc::driver::DevicePtr;
        self.buffer.device_ptr(&gpu.stream).0
    }

    /// Reads the lines at an address and returns the fraction that was in the L2.
    ///
    /// Each line is read twice. The second reads are hits; a miss takes at least 1.4 times as long
    /// as 95 % of them.
    fn hits(&mut self, gpu: &Gpu, address: u64) -> Result<f64, Failure> {
        let mut launch = gpu.stream.launch_builder(&self.kernel);
        launch.arg(&address).arg(&LINES).arg(&mut self.cycles).arg(&mut self.done).arg(&1_u64);
        let config = LaunchConfig { block_dim: (LINE_LATENCIES_BLOCK, 1, 1), ..ONE };
        // SAFETY: the arguments match the kernel, and the buffers are as long as it requires.
        unsafe { launch.launch(config) }?;
        let mut first = gpu.stream.clone_dtoh(&self.cycles)?;
        gpu.stream.synchronize()?;
        let mut second = first.split_off(first.len() / 2);
        second.sort_unstable();
        let longest_hit = second[second.len() * 19 / 20] * 7 / 5;
        let hits = first.iter().filter(|&&cycles| cycles <= longest_hit).count();
        Ok(hits as f64 / first.len() as f64)
    }
}
