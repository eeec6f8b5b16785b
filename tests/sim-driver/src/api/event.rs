//! Event functions.

use super::args::Out;
use super::call::driver;
use crate::handle::Handle;

driver! {
    fn cuEventCreate(phEvent: Out<Handle>, Flags: u32) [128, AfterInit] |m| {
        phEvent.put(m.event_create(Flags)?)
    };
    fn cuEventDestroy_v2(hEvent: Handle) [127, AfterInit] |m| m.event_destroy(hEvent);
    // The cost of recording depends on the event, so the model charges it.
    fn cuEventRecord(hEvent: Handle, hStream: Handle) [0, AfterInit] |m| {
        m.event_record(hEvent, hStream, 0)
    };
    fn cuEventRecordWithFlags(hEvent: Handle, hStream: Handle, flags: u32) [0, AfterInit] |m| {
        m.event_record(hEvent, hStream, flags)
    };
    fn cuEventQuery(hEvent: Handle) [104, NotInCapture] |m| m.event_query(hEvent);
    fn cuEventSynchronize(hEvent: Handle) [500, NotInCapture] |m| m.event_synchronize(hEvent);
    fn cuEventElapsedTime(
        pMilliseconds: Out<f32>, hStart: Handle, hEnd: Handle,
    ) [56, AfterInit] |m| {
        pMilliseconds.put(m.event_elapsed(hStart, hEnd)?)
    };
    fn cuEventElapsedTime_v2(
        pMilliseconds: Out<f32>, hStart: Handle, hEnd: Handle,
    ) [56, AfterInit] |m| {
        pMilliseconds.put(m.event_elapsed(hStart, hEnd)?)
    };
}
