//! What must be survived: every test runs one small program and judges what it left.

mod absent;
mod barriers;
mod bias;
mod capture;
mod cold;
mod course;
mod devices;
mod exact;
mod exit;
mod faults;
mod fed;
mod graph;
mod harness;
mod health;
mod html;
mod options;
mod random;
mod rates;
mod scopes;
mod settle;
mod streams;
mod targets;
mod threads;
mod trace;
