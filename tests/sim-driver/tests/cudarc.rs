//! Tests for cudarc's safe interface on the simulated driver.
#![allow(unsafe_code)] // launching is unsafe

mod support;

use std::error::Error;
use std::sync::Arc;

use cudarc::driver::sys::{CUevent_flags, CUgraphInstantiate_flags, CUstreamCaptureMode};
use cudarc::driver::{CudaContext, CudaFunction, LaunchConfig, PushKernelArg};
use gpu_time_sim_driver::formula;
use support::{child, ptx};

type Result<T = ()> = std::result::Result<T, Box<dyn Error>>;

fn kernels(context: &Arc<CudaContext>) -> Result<(CudaFunction, CudaFunction)> {
    let text = ptx(&[("saxpy", &["u32", "f32", "u64", "u64"]), ("spin_ns", &["u64"])]);
    let module = context.load_module(cudarc::nvrtc::Ptx::from_src(text))?;
    Ok((module.load_function("saxpy")?, module.load_function("spin_ns")?))
}

/// Computes a saxpy on each kind of stream and checks the result.
fn saxpy(context: &Arc<CudaContext>) -> Result {
    let (saxpy, _) = kernels(context)?;
    let streams = [context.default_stream(), context.per_thread_stream(), context.new_stream()?];
    for stream in streams {
        const N: usize = 10_000;
        let x: Vec<f32> = (0..N).map(|i| i as f32).collect();
        let device_x = stream.clone_htod(&x)?;
        let mut device_y = stream.alloc_zeros::<f32>(N)?;
        for _ in 0..2 {
            let mut launch = stream.launch_builder(&saxpy);
            launch.arg(&(N as u32)).arg(&1.5_f32).arg(&device_x).arg(&mut device_y);
            // SAFETY: the arguments match the kernel's parameters.
            unsafe { launch.launch(LaunchConfig::for_num_elems(N as u32)) }?;
        }
        let copy = device_y.try_clone()?;
        let y = stream.clone_dtoh(&copy)?;
        assert!(y.iter().zip(&x).all(|(y, x)| *y == 3.0 * x));
        context.synchronize()?;
    }
    Ok(())
}

#[test]
fn memory_and_launches() {
    let outcome = child!().run(|| {
        let context = CudaContext::new(0).unwrap();
        assert_eq!(context.name().unwrap(), "Simulated H200");
        assert_eq!(context.compute_capability().unwrap(), (9, 0));
        assert_eq!(CudaContext::device_count().unwrap(), 1);
        assert!(context.has_async_alloc());
        saxpy(&context).unwrap();
        let (free, total) = context.mem_get_info().unwrap();
        assert_eq!(free, total);
    });
    assert_eq!(outcome.trace.kernels("saxpy").count(), 6);
    assert_eq!(outcome.trace.notes("use_after_destroy").count(), 0);
}

#[test]
fn memory_without_pools() {
    let outcome = child!().sim(|sim| sim.model("memory_pools=0")).run(|| {
        let context = CudaContext::new(0).unwrap();
        assert!(!context.has_async_alloc());
        saxpy(&context).unwrap();
    });
    assert!(outcome.trace.calls_of("cuMemAllocAsync").next().is_none());
}

#[test]
fn events_and_recorded_launches() {
    child!().run(|| {
        let run = || -> Result {
            let context = CudaContext::new(0)?;
            let stream = context.new_stream()?;
            let (_, spin) = kernels(&context)?;
            let one =
                LaunchConfig { grid_dim: (1, 1, 1), block_dim: (1, 1, 1), shared_mem_bytes: 0 };
            let mut launch = stream.launch_builder(&spin);
            launch.arg(&20_000_u64).record_kernel_launch(CUevent_flags::CU_EVENT_DEFAULT);
            // SAFETY: the argument matches the kernel's parameter.
            let (start, stop) = unsafe { launch.launch(one) }?.unwrap();
            let ns = f64::from(start.elapsed_ms(&stop)?) * 1e6;
            let fed = formula::fed_pair_ns(&[formula::spin_ns(20_000)]) as f64;
            assert!(ns > fed && ns < fed + 5_000.0, "{ns}");
            assert!(start.is_complete());
            Ok(())
        };
        run().unwrap();
    });
}

#[test]
fn graphs() {
    let outcome = child!().run(|| {
        let run = || -> Result {
            let context = CudaContext::new(0)?;
            // SAFETY: the program uses only one stream.
            unsafe { context.disable_event_tracking() };
            let stream = context.new_stream()?;
            let mut data = stream.clone_htod(&[7_u32; 16])?;
            stream.begin_capture(CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)?;
            stream.memset_zeros(&mut data)?;
            let graph = stream.end_capture(CUgraphInstantiate_flags(0))?.unwrap();
            assert_eq!(stream.clone_dtoh(&data)?, [7; 16]);
            graph.upload()?;
            graph.launch()?;
            assert_eq!(stream.clone_dtoh(&data)?, [0; 16]);
            Ok(())
        };
        run().unwrap();
    });
    assert_eq!(outcome.trace.commands().filter(|command| command.graph).count(), 1);
}

#[test]
fn two_devices() {
    child!().sim(|sim| sim.devices(2)).run(|| {
        let contexts = [CudaContext::new(0).unwrap(), CudaContext::new(1).unwrap()];
        assert_ne!(contexts[0].uuid().unwrap().bytes, contexts[1].uuid().unwrap().bytes);
        for context in &contexts {
            saxpy(context).unwrap();
        }
        assert!(CudaContext::new(2).is_err());
    });
}
