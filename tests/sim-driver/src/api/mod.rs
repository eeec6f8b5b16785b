//! The exported C functions of the driver. Each entry gives the signature from `cuda.h`, the cost
//! to the host, the state in which the call is allowed, and the method of the model that implements
//! it. `call` contains the steps common to all functions.

mod args;
mod call;
mod context;
mod device;
mod event;
mod launch;
mod memory;
mod misc;
mod stream;
