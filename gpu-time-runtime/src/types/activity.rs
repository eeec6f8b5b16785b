//! placeholder of owner A
pub(crate) struct Activity {
    pub start_ns: u64,
    pub end_ns: u64,
    pub correlation: u32,
    pub device: u32,
    pub context: u32,
    pub stream: u32,
    pub graph_node: u64,
    pub work: &'static GpuWork,
}
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct GpuWork {
    pub name: String,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub registers: u16,
    pub shared_bytes: u32,
}
pub(crate) struct Launched {
    pub correlation: u32,
    pub context: usize,
    pub stream: Option<usize>,
    pub is_graph: bool,
}
