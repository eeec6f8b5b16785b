//! What must be survived: every test runs one small program and judges what it left.

mod absent;
mod barriers;
mod bias;
mod capture;
mod cold;
mod devices;
mod exact;
mod exit;
mod export;
mod faults;
mod fed;
mod graph;
mod harness;
mod health;
mod hold;
mod options;
mod random;
mod rates;
mod scopes;
mod settle;
mod signals;
mod streams;
mod targets;
mod threads;
mod trace;
