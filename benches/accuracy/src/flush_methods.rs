//! What each way to evict the L2 takes, and what it leaves: of lines that were read, of lines that were
//! written in the company of other written ones, of its own lines, and to be written back.

use std::process::ExitCode;

use comfy_table::{CellAlignment, presets};
use cudarc::driver::sys::CUdevice_attribute_enum::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE;
use cudarc::driver::{CudaFunction, CudaSlice, LaunchConfig, PushKernelArg};
use gpu_time_kernels::{LINE_LATENCIES, LINE_LATENCIES_BLOCK, LINE_STEP, workloads};

use crate::Failure;
use crate::cupti::Cupti;
use crate::figure::Figure;
use crate::flush::{Flush, Method};
use crate::gpu::{Gpu, ONE, is_there};
use crate::ncu;
use crate::truth::spans;

/// By how many times the L2, in order of what they move.
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
/// So often lines are watched; the round that leaves most counts.
const ROUNDS: u32 = 5;
const LINES: u32 = 2_048;
/// What is read after a flush, to see what must be written back meanwhile.
const READ_BYTES: usize = 30 << 20;

/// Prints a row for each. Without a GPU or CUPTI it says so. With the argument `plain` it makes the calls
/// that ncu watches.
pub fn flush_methods() -> ExitCode {
    let is_plain = std::env::args().nth(1).is_some_and(|argument| argument == "plain");
    let done = if is_plain { plain() } else { measure() };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("flush-methods: {why}");
            ExitCode::FAILURE
        }
    }
}

fn measure() -> Result<(), Failure> {
    if !is_there() {
        return Err("no GPU here".into());
    }
    // Before the first context, so that all of it is seen.
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
    for (at, &(method, multiple)) in CANDIDATES.iter().enumerate() {
        let flush = match Flush::new(&gpu, method, multiple * l2_bytes(&gpu)?) {
            Ok(flush) => flush,
            Err(why) => {
                table.add_row([&method.to_string(), &multiple.to_string(), &why.to_string()]);
                continue;
            }
        };
        let (took, read) = times(&cupti, &gpu, &flush, &mut reader)?;
        let mut row = vec![method.to_string(), multiple.to_string(), took.to_string()];
        for left in lines.left(&gpu, &flush)? {
            row.push(format!("{:.1}", 100.0 * left));
        }
        row.push(read.to_string());
        row.push(writes.as_ref().map_or_else(
            |why: &Failure| format!("ncu: {why}"),
            |bytes| {
                let rounds = &bytes[at * ROUNDS as usize..][..ROUNDS as usize];
                // The first is beside the profiler's own start.
                let most = rounds.iter().skip(1).copied().fold(0.0, f64::max);
                format!("{:.1}", most / 1e3)
            },
        ));
        table.add_row(row);
    }
    println!("{table}");
    Ok(())
}

/// What runs under ncu: each flush of an L2 that was all dirty with a read after it, again and again.
fn plain() -> Result<(), Failure> {
    let gpu = Gpu::new()?;
    gpu.ramp()?;
    let mut reader = Reader::new(&gpu)?;
    let mut dirty = gpu.stream.alloc_zeros::<u8>(usize::try_from(l2_bytes(&gpu)?)?)?;
    for &(method, multiple) in CANDIDATES {
        let flush = Flush::new(&gpu, method, multiple * l2_bytes(&gpu)?);
        for _ in 0..ROUNDS {
            // One that the device cannot make has a place all the same.
            if let Ok(flush) = &flush {
                gpu.stream.memset_zeros(&mut dirty)?;
                flush.launch(&gpu)?;
            }
            reader.launch(&gpu)?;
            gpu.stream.synchronize()?;
        }
    }
    Ok(())
}

fn l2_bytes(gpu: &Gpu) -> Result<u64, Failure> {
    Ok(gpu.context.attribute(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)?.try_into()?)
}

/// By CUPTI: the flush, of an L2 that was all dirty, and the read after it.
fn times(
    cupti: &Cupti,
    gpu: &Gpu,
    flush: &Flush,
    reader: &mut Reader,
) -> Result<(Figure, Figure), Failure> {
    let mut dirty = gpu.stream.alloc_zeros::<u8>(usize::try_from(l2_bytes(gpu)?)?)?;
    // A first launch may load what it needs.
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
    let pieces = flush.method().pieces();
    let calls = records.chunks(pieces + 2);
    let flushes: Vec<_> = calls.clone().flat_map(|call| call.iter().skip(1).take(pieces)).collect();
    let reads: Vec<_> = calls.filter_map(|call| call.get(pieces + 1)).collect();
    let figure = |records: Vec<_>| -> Result<Figure, Failure> {
        let records: Vec<_> = records.into_iter().cloned().collect();
        Figure::of(spans(&records, CALLS)?).ok_or_else(|| "nothing was recorded".into())
    };
    Ok((figure(flushes)?, figure(reads)?))
}

/// A kernel that only reads.
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
        // SAFETY: the buffer holds `n16` units, and the result has its word.
        Ok(unsafe { launch.launch(config) }.map(drop)?)
    }
}

/// Lines whose reads are timed.
struct Lines {
    kernel: CudaFunction,
    buffer: CudaSlice<u8>,
    /// As many others as the L2 holds.
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

    /// The shares of lines that a flush leaves at most: of those that were read before it, of those that
    /// were written among others, and of its own last ones.
    fn left(&mut self, gpu: &Gpu, flush: &Flush) -> Result<[f64; 3], Failure> {
        let buffer = self.buffer_address(gpu);
        let own = flush.address(gpu) + flush.bytes() - u64::from(LINES) * LINE_STEP;
        let mut left = [0.0_f64; 3];
        for _ in 0..ROUNDS {
            self.hits(gpu, buffer)?;
            flush.launch(gpu)?;
            left[0] = left[0].max(self.hits(gpu, buffer)?);
            gpu.stream.memset_zeros(&mut self.others)?;
            gpu.stream.memset_zeros(&mut self.buffer)?;
            flush.launch(gpu)?;
            left[1] = left[1].max(self.hits(gpu, buffer)?);
            flush.launch(gpu)?;
            left[2] = left[2].max(self.hits(gpu, own)?);
        }
        Ok(left)
    }

    fn buffer_address(&self, gpu: &Gpu) -> u64 {
        use cudarc::driver::DevicePtr;
        self.buffer.device_ptr(&gpu.stream).0
    }

    /// Reads the lines at an address, and answers which share of them the L2 held: the second reads are
    /// hits, and a miss takes at least 1.4 times as long as nearly all of those.
    fn hits(&mut self, gpu: &Gpu, address: u64) -> Result<f64, Failure> {
        let mut launch = gpu.stream.launch_builder(&self.kernel);
        launch.arg(&address).arg(&LINES).arg(&mut self.cycles).arg(&mut self.done).arg(&1_u64);
        let config = LaunchConfig { block_dim: (LINE_LATENCIES_BLOCK, 1, 1), ..ONE };
        // SAFETY: the arguments are the kernel's, and the buffers as long as it wants them.
        unsafe { launch.launch(config) }?;
        let mut first = gpu.stream.clone_dtoh(&self.cycles)?;
        gpu.stream.synchronize()?;
        let mut again = first.split_off(first.len() / 2);
        again.sort_unstable();
        let most = again[again.len() * 19 / 20] * 7 / 5;
        let hits = first.iter().filter(|&&cycles| cycles <= most).count();
        Ok(hits as f64 / first.len() as f64)
    }
}
