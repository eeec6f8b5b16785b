//! The driver's exported C functions. Each entry gives the signature from `cuda.h`, the host cost,
//! the state in which the call is allowed, and the model method that implements it. `call` contains
//! the steps common to all functions.

mod args;
mod call;
mod context;
mod device;
mod event;
mod launch;
mod memory;
mod misc;
mod observation;
mod stream;
