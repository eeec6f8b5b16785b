//! Tests for the HTML report.

use crate::harness::scenario;

#[test]
fn page_lists_sites_and_devices() {
    let run = scenario("exact/fed", &[]).html().run();
    let page = run.page.as_deref().expect("the page is written");
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>"));
    for site in run.report().sites.iter().filter(|site| site.calls > 0) {
        assert!(page.contains(&format!(">{}<", site.name)), "`{}`", site.name);
    }
    for device in &run.report().devices {
        assert!(page.contains(&device.name));
    }
}
