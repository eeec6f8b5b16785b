//! Context functions: primary and created contexts, the current context, limits and flags. The only
//! limit stored is the one for persisting L2 lines; cache configurations are ignored.

use super::args::Out;
use super::call::driver;
use crate::code::{Code, DriverResult};
use crate::handle::Handle;
use crate::model::Model;

/// Creation parameters other than the flags. The model ignores them.
type Parameters = *const std::ffi::c_void;

impl Model {
    fn limit(&mut self, limit: u32) -> DriverResult<usize> {
        let current = self.current()?;
        match limit {
            0 => Ok(1_024),   // stack
            1 => Ok(1 << 20), // printf buffer
            2 => Ok(8 << 20), // heap
            5 => Ok(32),      // L2 fetch granularity
            6 => {
                let configured = self.context(current)?.persisting_l2_bytes;
                let c = &self.constants;
                Ok(configured.unwrap_or((c.l2_bytes / 16 * c.persisting_sixteenths) as usize))
            }
            _ => Ok(0),
        }
    }

    fn set_limit(&mut self, limit: u32, value: usize) -> DriverResult {
        let current = self.current()?;
        if limit == 6 {
            let context = self.contexts.get_mut(current).ok_or(Code::CONTEXT_IS_DESTROYED)?;
            context.persisting_l2_bytes = Some(value);
        }
        Ok(())
    }
}

driver! {
    fn cuDevicePrimaryCtxRetain(pctx: Out<Handle>, dev: i32) [200, AfterInit] |m| {
        pctx.put(m.primary_retain(dev)?)
    };
    fn cuDevicePrimaryCtxRelease_v2(dev: i32) [200, AfterInit] |m| m.primary_release(dev);
    fn cuDevicePrimaryCtxReset_v2(dev: i32) [10_000, NotInCapture] |m| m.primary_reset(dev);
    fn cuDevicePrimaryCtxGetState(dev: i32, flags: Out<u32>, active: Out<i32>) [50, AfterInit] |m| {
        let (state, is_active) = m.primary_state(dev)?;
        flags.put_if_wanted(state);
        active.put_if_wanted(i32::from(is_active));
        Ok(())
    };
    fn cuDevicePrimaryCtxSetFlags_v2(dev: i32, flags: u32) [50, AfterInit] |m| {
        m.primary_set_flags(dev, flags)
    };
    fn cuCtxCreate_v2(pctx: Out<Handle>, flags: u32, dev: i32) [100_000, NotInCapture] |m| {
        pctx.put(m.context_create(flags, dev)?)
    };
    fn cuCtxCreate_v3(
        pctx: Out<Handle>, params: Parameters, count: i32, flags: u32, dev: i32,
    ) [100_000, NotInCapture] |m| pctx.put(m.context_create(flags, dev)?);
    fn cuCtxCreate_v4(
        pctx: Out<Handle>, params: Parameters, flags: u32, dev: i32,
    ) [100_000, NotInCapture] |m| pctx.put(m.context_create(flags, dev)?);
    fn cuCtxDestroy_v2(ctx: Handle) [10_000, NotInCapture] |m| m.context_destroy(ctx);
    fn cuCtxGetCurrent(pctx: Out<Handle>) [8, AfterInit] |m| pctx.put(m.current_handle());
    fn cuCtxSetCurrent(ctx: Handle) [10, AfterInit] |m| m.set_current(ctx);
    fn cuCtxPushCurrent_v2(ctx: Handle) [10, AfterInit] |m| m.push_current(ctx);
    fn cuCtxPopCurrent_v2(pctx: Out<Handle>) [10, AfterInit] |m| {
        let popped = m.pop_current()?;
        pctx.put_if_wanted(popped);
        Ok(())
    };
    fn cuCtxGetDevice(device: Out<i32>) [10, AfterInit] |m| {
        let current = m.current()?;
        device.put(m.context(current)?.device as i32)
    };
    fn cuCtxGetDevice_v2(device: Out<i32>, ctx: Handle) [10, AfterInit] |m| {
        let context = m.context_or_current(ctx)?;
        device.put(m.context(context)?.device as i32)
    };
    fn cuCtxGetId(ctx: Handle, ctxId: Out<u64>) [10, AfterInit] |m| {
        ctxId.put(m.context_or_current(ctx)?.id)
    };
    fn cuCtxSynchronize() [500, NotInCapture] |m| {
        let context = m.current()?;
        m.context_synchronize(context)
    };
    fn cuCtxSynchronize_v2(ctx: Handle) [500, NotInCapture] |m| {
        let context = m.context_or_current(ctx)?;
        m.context_synchronize(context)
    };
    fn cuCtxGetFlags(flags: Out<u32>) [10, AfterInit] |m| {
        let current = m.current()?;
        flags.put(m.context(current)?.flags)
    };
    fn cuCtxSetFlags(flags: u32) [10, AfterInit] |m| {
        let current = m.current()?;
        m.contexts.get_mut(current).ok_or(Code::CONTEXT_IS_DESTROYED)?.flags = flags;
        Ok(())
    };
    fn cuCtxGetLimit(
        pvalue: Out<usize>, limit: u32,
    ) [10, AfterInit] |m| pvalue.put(m.limit(limit)?);
    fn cuCtxSetLimit(limit: u32, value: usize) [10, AfterInit] |m| m.set_limit(limit, value);
    fn cuCtxGetCacheConfig(pconfig: Out<u32>) [10, AfterInit] |m| {
        m.current()?;
        pconfig.put(0)
    };
    fn cuCtxSetCacheConfig(config: u32) [10, AfterInit] |m| m.current().map(drop);
    fn cuCtxGetApiVersion(ctx: Handle, version: Out<u32>) [10, AfterInit] |m| {
        m.context_or_current(ctx)?;
        version.put(m.constants.driver_version as u32)
    };
    fn cuCtxGetStreamPriorityRange(
        leastPriority: Out<i32>, greatestPriority: Out<i32>,
    ) [10, AfterInit] |m| {
        m.current()?;
        leastPriority.put_if_wanted(0);
        greatestPriority.put_if_wanted(-5);
        Ok(())
    };
}
