use std::collections::BTreeMap;
use std::ffi::CStr;

/// Returns the entry points in a PTX module, with their parameter types.
fn entries(ptx: &str) -> BTreeMap<&str, Vec<&str>> {
    ptx.split(".visible .entry ")
        .skip(1)
        .map(|text| {
            let (name, rest) = text.split_once('(').expect("an entry has a parameter list");
            let (params, _) = rest.split_once(')').expect("a parameter list ends");
            let types = params
                .lines()
                .filter_map(|line| line.trim().strip_prefix(".param ."))
                .map(|param| param.split_whitespace().next().expect("a parameter has a type"));
            (name, types.collect())
        })
        .collect()
}

/// Returns the value of a directive such as `.target`, which must occur exactly once.
fn directive<'a>(ptx: &'a str, name: &str) -> &'a str {
    let mut found = ptx.lines().filter_map(|line| line.strip_prefix(name));
    let value = found.next().expect("the module has the directive").trim();
    assert_eq!(found.next(), None, "the module has `{name}` once");
    value
}

fn assert_loads_with_driver_525(ptx: &str, target: &str) {
    let (major, minor) = directive(ptx, ".version").split_once('.').expect("major.minor");
    let version: (u32, u32) = (major.parse().unwrap(), minor.parse().unwrap());
    assert!(version <= (8, 0), "driver 525 loads PTX ISA 8.0 and older, not {version:?}");
    assert_eq!(directive(ptx, ".target"), target);
    assert_eq!(directive(ptx, ".address_size"), "64");
}

#[test]
fn runtime_module_matches_docs() {
    let ptx = crate::PTX.to_str().unwrap();
    assert_loads_with_driver_525(ptx, "sm_70");
    let name = |name: &'static CStr| name.to_str().unwrap();
    assert_eq!(
        entries(ptx),
        BTreeMap::from([
            (name(crate::FLUSH_READ), vec!["u64"; 3]),
            (name(crate::HOLD), vec!["u64"; 5]),
            (name(crate::LINE_LATENCIES), vec!["u64", "u32", "u64", "u64", "u64"]),
            (name(crate::EMPTY), vec![]),
        ])
    );
}

#[test]
fn sm_80_module_matches_docs() {
    let ptx = crate::PTX_SM_80.to_str().unwrap();
    assert_loads_with_driver_525(ptx, "sm_80");
    assert_eq!(entries(ptx), BTreeMap::from([(crate::DISCARD.to_str().unwrap(), vec!["u64"; 2])]));
    let line = format!("], {};", crate::DISCARDED_LINE);
    assert!(ptx.lines().any(|code| code.contains("discard.global.L2") && code.ends_with(&line)));
}

#[cfg(feature = "workloads")]
#[test]
fn workloads_module_matches_docs() {
    use crate::workloads::{COPY_F4, EMPTY, PTX, READ_F4, SAXPY, SPIN_NS};

    assert_loads_with_driver_525(PTX, "sm_70");
    assert_eq!(
        entries(PTX),
        BTreeMap::from([
            (SPIN_NS, vec!["u64"]),
            (EMPTY, vec![]),
            (SAXPY, vec!["u32", "f32", "u64", "u64"]),
            (READ_F4, vec!["u64"; 3]),
            (COPY_F4, vec!["u64"; 3]),
        ])
    );
}

#[test]
fn flush_read_grid_fills_gpu_once() {
    assert_eq!(crate::flush_read_grid(132, 2048) * crate::FLUSH_READ_BLOCK, 132 * 2048);
    assert_eq!(crate::flush_read_grid(84, 1536) * crate::FLUSH_READ_BLOCK, 84 * 1536);
    assert_eq!(crate::flush_read_grid(40, 1024) * crate::FLUSH_READ_BLOCK, 40 * 1024);
}

#[test]
fn hold_max_cycles_saturates() {
    assert_eq!(crate::hold_max_cycles(5_000_000), 20_000_000);
    assert_eq!(crate::hold_max_cycles(u64::MAX), u64::MAX);
}
