//! The programs and devices of two reports, as far as a comparison depends on them.

use gpu_time_report::units;
use gpu_time_report::{Device, Process, Snapshot};

/// Describes how the labels, the versions of the program and the hosts differ.
pub fn provenance(base: &Snapshot, new: &Snapshot) -> Vec<String> {
    let of = |what: &str, of: fn(&Process) -> Option<&str>| {
        let [old, new] = [base, new].map(|report| of(&report.process));
        let text =
            |value: Option<&str>| value.map_or("none".to_owned(), |text| format!("`{text}`"));
        (old != new).then(|| format!("the {what} changed from {} to {}", text(old), text(new)))
    };
    let notes = [
        of("label", |process| process.label.as_deref()),
        of("version of the program", |process| process.program_version.as_deref()),
        of("host", |process| process.host.as_deref()),
    ];
    notes.into_iter().flatten().collect()
}

/// Describes differences between devices with the same id: name, UUID, driver, bias.
pub fn differences(base: &Snapshot, new: &Snapshot) -> Vec<String> {
    let pairs = base.devices.iter().filter_map(|before| {
        let after = new.devices.iter().find(|after| after.id == before.id)?;
        Some((before, after))
    });
    let mut notes = Vec::new();
    for (before, after) in pairs {
        let id = &before.id;
        let changed = |what: &str, kind: &str, of: fn(&Device) -> Option<&str>| {
            let (old, new) = of(before).zip(of(after)).filter(|(old, new)| old != new)?;
            Some(format!("{what} changed from {kind}{old} to {kind}{new}"))
        };
        notes.extend(changed(id, "", |device| Some(&device.name)));
        let uuids = before.uuid.as_ref().zip(after.uuid.as_ref());
        let uuids = uuids.filter(|(old, new)| old != new);
        notes
            .extend(uuids.map(|(old, new)| format!("{id} is another GPU: {old} changed to {new}")));
        let driver = format!("the driver of {id}");
        notes.extend(
            changed(&driver, "", |device| device.driver_release.as_deref())
                .or_else(|| changed(&driver, "CUDA ", |device| device.driver.as_deref())),
        );
        let [old, new] = [before, after].map(|device| {
            let bias = device.event_bias_ns.map_or("unknown".to_owned(), units::time);
            format!("{bias} ({})", device.event_bias_source.as_deref().unwrap_or("unknown"))
        });
        if old != new {
            let consequence =
                if before.event_bias_source.as_deref() == after.event_bias_source.as_deref() {
                    "changes within that difference are ignored"
                } else {
                    "comparing raw times"
                };
            notes.push(format!("the bias of {id} changed from {old} to {new}: {consequence}"));
        }
    }
    notes
}
