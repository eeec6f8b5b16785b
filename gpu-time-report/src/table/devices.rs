//! The lines about devices above and below the table.

use crate::analysis::Analysis;
use crate::units;
use crate::{Detail, Device, Snapshot};

/// Returns the lines above the table: each device with its clocks, and how busy it was. The host is
/// listed only if it is the only device and timing was not off.
pub fn lines(analysis: &Analysis) -> Vec<String> {
    let snapshot = analysis.snapshot;
    let is_alone = snapshot.devices.len() == 1 && snapshot.process.off.is_none();
    let shown = snapshot.devices.iter().filter(|device| is_alone || device.is_gpu());
    shown.flat_map(|device| of_device(analysis, device)).collect()
}

fn of_device(analysis: &Analysis, device: &Device) -> Vec<String> {
    let parts = [format!("{}: {}", device.id, device.name)];
    let origin = analysis.snapshot.process.origin(device);
    let parts = parts.into_iter().chain(origin).chain(device.health());
    let mut lines = vec![parts.collect::<Vec<_>>().join(", ")];
    let Some(gpu) = analysis.gpu(device) else { return lines };
    let advised = analysis.snapshot.process.advised_phases();
    lines.extend(gpu.sentences(advised).map(|sentence| format!("  {sentence}")));
    lines
}

/// Returns the lines below the table: what was measured, where, and the conditions that the times
/// depend on.
pub fn footer(snapshot: &Snapshot, detail: Detail) -> impl Iterator<Item = String> {
    let measured = snapshot.devices.iter().filter_map(move |device| {
        let mut series = snapshot.all_series().filter(|series| series.device == device.id);
        let parts = parameters(device, series.any(|series| series.bytes.is_some()), detail);
        parts.map(|parts| format!("{}: {parts}", device.id))
    });
    snapshot.process.provenance().into_iter().chain(measured)
}

/// Returns the beginning of a UUID, which `nvidia-smi -i` and `CUDA_VISIBLE_DEVICES` accept as
/// well.
fn short(uuid: &str) -> &str {
    let kind = uuid.find('-').map_or(0, |dash| dash + 1);
    let end = uuid.get(kind..).and_then(|uuid| uuid.find('-')).map_or(uuid.len(), |end| kind + end);
    uuid.get(..end).unwrap_or(uuid)
}

fn parameters(device: &Device, with_peak: bool, detail: Detail) -> Option<String> {
    let part = |what: &str, ns: Option<f64>| ns.map(|ns| format!("{what} {}", units::time(ns)));
    let is_all = detail == Detail::All;
    let parts = [
        device.uuid.as_deref().map(|uuid| if is_all { uuid } else { short(uuid) }.to_owned()),
        device.driver_words(),
        part("event step", device.event_step_ns.filter(|_| is_all)),
        part("empty pair", device.event_floor_ns.filter(|_| is_all)),
        device.bias_words().map(|bias| format!("bias {bias}")),
        device.peak_gb_per_s.filter(|_| with_peak).map(|peak| format!("peak {peak:.0} GB/s")),
    ];
    units::joined(&parts, ", ")
}
