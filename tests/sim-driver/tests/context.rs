//! Tests for contexts, and for the lifetime of their streams, events, modules and memory.
#![allow(unsafe_code)] // calls the driver's C interface

mod support;

use std::ptr;
use std::thread;

use cudarc::driver::sys::{self, CUcontext, CUresult};
use gpu_time_sim_driver::formula;
use support::*;

fn id(context: CUcontext) -> Result<u64, i32> {
    let mut id = 0;
    // SAFETY: the pointer is valid for a result.
    match unsafe { sys::cuCtxGetId(context, &mut id) } as i32 {
        0 => Ok(id),
        code => Err(code),
    }
}

fn current() -> CUcontext {
    let mut context = ptr::null_mut();
    // SAFETY: the pointer is valid for a result.
    ok(unsafe { sys::cuCtxGetCurrent(&mut context) });
    context
}

fn retain() -> CUcontext {
    let mut context = ptr::null_mut();
    // SAFETY: the pointer is valid for a result.
    ok(unsafe { sys::cuDevicePrimaryCtxRetain(&mut context, 0) });
    context
}

/// Returns the result code of a driver call. The simulated driver checks handles.
fn call(f: impl FnOnce() -> CUresult) -> i32 {
    f() as i32
}

#[test]
fn primary_context_ends_with_last_release() {
    let outcome = child!().run(|| {
        let context = start();
        let first = id(context).unwrap();
        let (stream, event) = (stream(), event());
        record(event, stream);
        sync(stream);
        assert_eq!(retain(), context);
        // SAFETY: the simulated driver checks handles.
        unsafe {
            assert_eq!(call(|| sys::cuDevicePrimaryCtxRelease_v2(0)), 0);
            assert_eq!((query(event), id(context)), (0, Ok(first)));
            assert_eq!(call(|| sys::cuDevicePrimaryCtxRelease_v2(0)), 0);
            assert_eq!(call(|| sys::cuDevicePrimaryCtxRelease_v2(0)), 201);
            assert_eq!(
                (query(event), elapsed(event, event), id(context)),
                (709, Err(709), Err(709))
            );
            assert_eq!(call(|| sys::cuEventRecord(event, stream)), 709);
            assert_eq!(call(|| sys::cuStreamSynchronize(stream)), 709);
            assert_eq!(call(|| sys::cuCtxSynchronize()), 709);
            let mut flags = 0;
            let mut active = 7;
            assert_eq!(call(|| sys::cuDevicePrimaryCtxGetState(0, &mut flags, &mut active)), 0);
            assert_eq!(active, 0);
        }
        // When retained again, the context has the same handle but a different id.
        assert_eq!((retain(), current()), (context, context));
        assert_ne!(id(context).unwrap(), first);
        assert_eq!(query(event), 709);
        // SAFETY: as above.
        unsafe {
            assert_eq!(call(|| sys::cuEventDestroy_v2(event)), 709);
            assert_eq!(call(|| sys::cuStreamDestroy_v2(stream)), 709);
        }
    });
    assert_eq!(outcome.trace.notes("context_gone").count(), 1);
}

#[test]
fn primary_reset_invalidates_all_handles() {
    child!().run(|| {
        let context = start();
        let (kernels, stream, words) = (Kernels::load(), stream(), words());
        let event = event();
        device_memory(1 << 20);
        kernels.hold(stream, words, 1, u64::MAX);
        record(event, stream);
        // SAFETY: the simulated driver checks handles, and each pointer is valid for a result.
        unsafe {
            assert_eq!(call(|| sys::cuDevicePrimaryCtxReset_v2(0)), 0);
            assert_eq!((query(event), id(context)), (709, Err(709)));
            fails(709, try_launch(kernels.empty, stream, &mut []));
            assert_eq!(retain(), context);
            fails(709, try_launch(kernels.empty, ptr::null_mut(), &mut []));
            let (mut free, mut total) = (0, 0);
            assert_eq!(call(|| sys::cuMemGetInfo_v2(&mut free, &mut total)), 0);
            assert_eq!(free, total);
            let mut address = 0;
            assert_eq!(call(|| sys::cuMemHostGetDevicePointer_v2(&mut address, words as _, 0)), 1);
            assert_eq!(call(|| sys::cuCtxSynchronize()), 0);
        }
    });
}

#[test]
fn created_contexts_stack() {
    child!().run(|| {
        let primary = start();
        let mut own = ptr::null_mut();
        // SAFETY: each pointer is valid for a result, and the simulated driver checks handles.
        unsafe {
            assert_eq!(call(|| sys::cuCtxCreate_v4(&mut own, ptr::null_mut(), 0, 0)), 0);
            assert_eq!(current(), own);
            let first = id(own).unwrap();
            let event = event();
            // The stream and the event belong to different contexts.
            let mut popped = ptr::null_mut();
            assert_eq!(call(|| sys::cuCtxPopCurrent_v2(&mut popped)), 0);
            assert_eq!((popped, current()), (own, primary));
            let stream = stream();
            assert_eq!(call(|| sys::cuEventRecord(event, stream)), 400);
            let mut of_stream = ptr::null_mut();
            assert_eq!(call(|| sys::cuStreamGetCtx(stream, &mut of_stream)), 0);
            assert_eq!(of_stream, primary);
            assert_eq!(call(|| sys::cuCtxPushCurrent_v2(own)), 0);
            assert_eq!(call(|| sys::cuStreamGetCtx(ptr::null_mut(), &mut of_stream)), 0);
            assert_eq!(of_stream, own);
            // Destroying the current context pops it from the stack.
            assert_eq!(call(|| sys::cuCtxDestroy_v2(own)), 0);
            assert_eq!((current(), id(own), query(event)), (primary, Err(709), 709));
            assert_eq!(call(|| sys::cuCtxDestroy_v2(primary)), 201);
            // The handle is reused, but the id is not.
            let mut next = ptr::null_mut();
            assert_eq!(call(|| sys::cuCtxCreate_v4(&mut next, ptr::null_mut(), 0, 0)), 0);
            assert_eq!(next, own);
            assert_ne!(id(next).unwrap(), first);
            assert_eq!(query(event), 709);
        }
    });
}

#[test]
fn calls_that_need_a_current_context() {
    child!().run(|| {
        start();
        let (kernels, stream, event) = (Kernels::load(), stream(), event());
        record(event, stream);
        sync(stream);
        let (stream, event, empty) = (stream as u64, event as u64, kernels.empty as u64);
        thread::spawn(move || {
            let (stream, event) = (stream as sys::CUstream, event as sys::CUevent);
            assert!(current().is_null());
            // A stream or event handle identifies the context.
            record(event, stream);
            sync(stream);
            assert_eq!((query(event), elapsed(event, event)), (0, Ok(0)));
            fails(201, try_launch(empty as sys::CUfunction, stream, &mut []));
            let mut address = 0;
            // SAFETY: the pointer is valid for a result, and the simulated driver checks handles.
            unsafe {
                assert_eq!(call(|| sys::cuMemAlloc_v2(&mut address, 16)), 201);
                assert_eq!(call(|| sys::cuEventRecord(event, ptr::null_mut())), 201);
                assert_eq!(call(|| sys::cuStreamSynchronize(2 as _)), 201);
                assert_eq!(call(|| sys::cuCtxSynchronize()), 201);
                assert_eq!(call(|| sys::cuCtxPopCurrent_v2(ptr::null_mut())), 201);
            }
        })
        .join()
        .unwrap();
    });
}

#[test]
fn stale_handles_are_rejected() {
    let outcome = child!().run(|| {
        start();
        let module = load(&ptx(&[("empty", &[])]));
        let (empty, stream, event) = (function(module, "empty"), stream(), event());
        // SAFETY: the simulated driver checks handles.
        unsafe {
            assert_eq!(call(|| sys::cuEventDestroy_v2(event)), 0);
            assert_eq!((query(event), call(|| sys::cuEventDestroy_v2(event))), (400, 400));
            assert_eq!(call(|| sys::cuStreamDestroy_v2(stream)), 0);
            assert_eq!(call(|| sys::cuStreamSynchronize(stream)), 400);
            assert_eq!(call(|| sys::cuModuleUnload(module)), 0);
            fails(400, try_launch(empty, ptr::null_mut(), &mut []));
            assert_eq!(query(0xdead_beef as sys::CUevent), 400);
        }
        // The slot is reused, but the handle is not.
        assert_ne!(support::event(), event);
        assert_eq!(query(event), 400);
    });
    assert_eq!(outcome.trace.notes("use_after_destroy").count(), 5);
}

#[test]
fn memory_ranges_are_checked() {
    let outcome = child!().sim(|sim| sim.model("memory_bytes=1048576")).run(|| {
        start();
        let (kernels, stream) = (Kernels::load(), stream());
        let (a, b) = (device_memory(1 << 18), device_memory(1 << 18));
        let mut none = 0;
        let mut word = [0_u32; 2];
        // SAFETY: host buffers have the given lengths; device pointers are checked.
        unsafe {
            assert_eq!(call(|| sys::cuMemAlloc_v2(&mut none, 1 << 20)), 2);
            assert_eq!(call(|| sys::cuMemAlloc_v2(&mut none, 0)), 1);
            assert_eq!(call(|| sys::cuMemsetD8Async(a, 1, (1 << 18) + 1, stream)), 1);
            assert_eq!(
                call(|| sys::cuMemcpyDtoH_v2(word.as_mut_ptr().cast(), b + (1 << 18) - 4, 8)),
                1
            );
            assert_eq!(call(|| sys::cuMemFree_v2(a + 8)), 1);
            let n16 = (1_u64 << 14) + 1;
            fails(700, try_launch(kernels.copy_f4, stream, &mut [arg(&a), arg(&b), arg(&n16)]));
            assert_eq!(call(|| sys::cuMemsetD32_v2(a, 5, 1 << 16)), 0);
            assert_eq!(call(|| sys::cuMemcpyDtoD_v2(b + 4, a, 4)), 0);
            assert_eq!(call(|| sys::cuMemcpy(word.as_mut_ptr() as u64, b, 8)), 0);
            assert_eq!(word, [0, 5]);
            assert_eq!(call(|| sys::cuMemFree_v2(a)), 0);
            assert_eq!(call(|| sys::cuMemFree_v2(a)), 1);
            let (mut base, mut bytes) = (0, 0);
            assert_eq!(call(|| sys::cuMemGetAddressRange_v2(&mut base, &mut bytes, b + 100)), 0);
            assert_eq!((base, bytes), (b, 1 << 18));
            // The program's own memory, registered as page-locked.
            let mut own = vec![0_u64; 64];
            let address = own.as_mut_ptr();
            assert_eq!(call(|| sys::cuMemHostRegister_v2(address.cast(), 512, 0)), 0);
            assert_eq!(call(|| sys::cuMemHostRegister_v2(address.cast(), 512, 0)), 712);
            kernels.hold(stream, address as u64, 4, 1_000);
            sync(stream);
            assert_eq!(own[1], 4);
            assert_eq!(call(|| sys::cuMemHostUnregister(address.cast())), 0);
            assert_eq!(call(|| sys::cuMemHostUnregister(address.cast())), 713);
        }
    });
    assert_eq!(outcome.trace.notes("illegal_address").count(), 1);
}

#[test]
fn module_functions_come_from_ptx() {
    child!().run(|| {
        start();
        // A kernel with a known name but different parameters is unknown.
        let module = load(&ptx(&[("spin_ns", &["u32"]), ("mine", &["u64"])]));
        let (stream, start, stop) = (stream(), event(), event());
        let mut found = ptr::null_mut();
        // SAFETY: each pointer is valid for a result, and the strings end in NUL.
        unsafe {
            let mut get =
                |name: &std::ffi::CStr| sys::cuModuleGetFunction(&mut found, module, name.as_ptr());
            assert_eq!(call(|| get(c"spin_ns")), 0);
            assert_eq!(call(|| get(c"yours")), 500);
            let mut module = ptr::null_mut();
            let mut load =
                |image: &std::ffi::CStr| sys::cuModuleLoadData(&mut module, image.as_ptr().cast());
            assert_eq!(call(|| load(c"\x7fELF")), 200);
            assert_eq!(call(|| load(c"not PTX")), 218);
        }
        let ns = 77_u32;
        launch(function(module, "mine"), stream, &mut [arg(&0_u64)]);
        record(start, stream);
        launch(function(module, "spin_ns"), stream, &mut [arg(&ns)]);
        record(stop, stream);
        sync(stream);
        assert!(elapsed(start, stop).unwrap() >= formula::fed_pair_ns(&[5_000]));
        let mut args = [arg(&0_u64)];
        // SAFETY: these are the kernel's arguments.
        let launch = |grid, block| unsafe {
            let function = function(module, "mine");
            let (args, none) = (args.as_mut_ptr(), ptr::null_mut());
            call(|| sys::cuLaunchKernel(function, grid, 1, 1, block, 1, 1, 0, stream, args, none))
        };
        let mut launch = launch;
        assert_eq!([launch(0, 32), launch(1, 0), launch(1, 1_025), launch(1, 1_024)], [1, 1, 1, 0]);
    });
}

#[test]
fn peer_copy_moves_memory_between_devices() {
    const BYTES: usize = 1 << 20;
    let outcome = child!().sim(|sim| sim.devices(2)).run(|| {
        let first = start();
        let from = device_memory(BYTES);
        // SAFETY: the ranges are allocated, and each pointer is valid for a result.
        unsafe {
            ok(sys::cuMemsetD8_v2(from, 7, BYTES));
            let mut second = ptr::null_mut();
            ok(sys::cuDevicePrimaryCtxRetain(&mut second, 1));
            ok(sys::cuCtxSetCurrent(second));
            let to = device_memory(BYTES);
            let (stream, a, b) = (stream(), event(), event());
            record(a, stream);
            ok(sys::cuMemcpyPeerAsync(to, second, from, first, BYTES, stream));
            record(b, stream);
            sync(stream);
            let copy = formula::peer_copy_ns(BYTES as u64);
            assert!(elapsed(a, b).unwrap() >= formula::fed_pair_ns(&[copy]));
            let mut bytes = [0u8; 8];
            ok(sys::cuMemcpyDtoH_v2(bytes.as_mut_ptr().cast(), to + BYTES as u64 - 8, 8));
            assert_eq!(bytes, [7; 8]);
            // Each address belongs to exactly one context.
            fails(1, sys::cuMemcpyPeerAsync(to, first, from, second, BYTES, stream));
            fails(1, sys::cuMemcpyPeerAsync(to, second, from, first, BYTES + 512, stream));
        }
    });
    let trace = outcome.trace;
    let copies: Vec<_> = trace.commands().filter(|command| command.name == "peer").collect();
    assert_eq!(copies.len(), 1);
    assert_eq!(copies[0].duration_ns, formula::peer_copy_ns(BYTES as u64));
}
