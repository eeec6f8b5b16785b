use gpu_time::gpu_timed;

#[gpu_timed(clock = "host")]
#[unsafe(naked)]
extern "C" fn naked() {
    std::arch::naked_asm!("ret")
}

fn main() {}
