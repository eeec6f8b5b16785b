//! Runs the unmodified Llama of candle-transformers, and reports the device time of its `tracing` spans.
//!
//! ```text
//! candle-spans [PASSES]             default: 4000
//! candle-spans --decode [PASSES]    default: 200
//! ```
//!
//! Decodes with three models in turns: one whose spans have no subscriber, one whose spans go to a registry of
//! tracing-subscriber, and one with gpu-time's layer on such a registry. Prints how much longer a turn takes with
//! the second, which is the cost of `tracing` alone, and with the third. Compares whole turns, because a median
//! over passes would leave out the few passes that are recorded. Set `GPU_TIME_RECORD`, such as to `20ms/1s`: the
//! whole run would be recorded otherwise, and with it the launches of all three.
//!
//! With `--decode`, decodes with one model and records every pass in a span `decode`, to compare the figures with a
//! full record of the program.

use std::time::Instant;

use candle_core::{DType, Device, Result, Tensor};
use candle_nn::{VarBuilder, VarMap};
use candle_transformers::models::llama::{Cache, Config, Llama};
use tracing::Dispatch;
use tracing::dispatcher::with_default;
use tracing_subscriber::prelude::*;

const CONFIG: Config = Config {
    hidden_size: 512,
    intermediate_size: 1_024,
    vocab_size: 4_096,
    num_hidden_layers: 4,
    num_attention_heads: 8,
    num_key_value_heads: 8,
    use_flash_attn: false,
    rms_norm_eps: 1e-5,
    rope_theta: 10_000.0,
    bos_token_id: None,
    eos_token_id: None,
    rope_scaling: None,
    max_position_embeddings: 1_024,
    tie_word_embeddings: false,
};
/// Number of passes in a turn. Each turn starts with an empty cache.
const TURN: usize = 50;

struct Decoder {
    /// Receives the model's spans.
    subscriber: Dispatch,
    llama: Llama,
    device: Device,
    /// The mean time per pass of each turn, in microseconds.
    turns: Vec<f64>,
}

impl Decoder {
    fn new(device: &Device, subscriber: Dispatch) -> Result<Decoder> {
        let weights = VarBuilder::from_varmap(&VarMap::new(), DType::F32, device);
        // The model creates some of its spans only once, while it is loaded.
        let llama = with_default(&subscriber, || Llama::load(weights, &CONFIG))?;
        Ok(Decoder { subscriber, llama, device: device.clone(), turns: Vec::new() })
    }

    fn empty_cache(&self) -> Result<Cache> {
        Cache::new(true, DType::F32, &CONFIG, &self.device)
    }

    fn forward(&self, position: usize, cache: &mut Cache) -> Result<Tensor> {
        let token = Tensor::from_slice(&[position as u32], (1, 1), &self.device)?;
        self.llama.forward(&token, position, cache)
    }

    fn turn(&mut self) -> Result<()> {
        with_default(&self.subscriber.clone(), || self.decode())
    }

    fn decode(&mut self) -> Result<()> {
        let start = Instant::now();
        let mut cache = self.empty_cache()?;
        for position in 0..TURN {
            let logits = self.forward(position, &mut cache)?;
            logits.argmax_keepdim(1)?.flatten_all()?.to_vec1::<u32>()?;
        }
        self.turns.push(start.elapsed().as_secs_f64() * 1e6 / TURN as f64);
        Ok(())
    }
}

/// Decodes with one model, each pass in a span. The copy of the result to the host is outside of the span.
fn decode_in_spans(device: &Device, passes: usize) -> Result<()> {
    let subscriber = Dispatch::new(tracing_subscriber::registry().with(gpu_time::spans()));
    let model = Decoder::new(device, subscriber.clone())?;
    let mut cache = model.empty_cache()?;
    with_default(&subscriber, || {
        for position in 0..passes {
            let pass = || model.forward(position, &mut cache)?.argmax_keepdim(1);
            let token = tracing::info_span!("decode").in_scope(pass)?;
            token.flatten_all()?.to_vec1::<u32>()?;
        }
        Ok(())
    })
}

/// Returns the quartiles.
fn quartiles(mut values: Vec<f64>) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    [1, 2, 3].map(|i| values.get(values.len() * i / 4).copied().unwrap_or(f64::NAN))
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1).peekable();
    let decodes = arguments.next_if(|argument| argument == "--decode").is_some();
    let passes = arguments.next().map(|n| n.parse::<usize>().expect("a number of passes"));

    let device = Device::cuda_if_available(0)?;
    if device.is_cpu() {
        println!("no GPU here: running on the CPU");
    }
    if decodes {
        return decode_in_spans(&device, passes.unwrap_or(200));
    }
    let passes = passes.unwrap_or(4_000);
    let subscribers = [
        Dispatch::none(),
        Dispatch::new(tracing_subscriber::registry()),
        Dispatch::new(tracing_subscriber::registry().with(gpu_time::spans())),
    ];
    let [none, registry, layer] = subscribers.map(|subscriber| Decoder::new(&device, subscriber));
    let mut models = [none?, registry?, layer?];
    for turn in 0..passes.div_ceil(TURN) {
        // Each model goes first equally often, because clocks may change during a round.
        for at in 0..models.len() {
            let at = (at + turn) % models.len();
            models[at].turn()?;
        }
    }
    let [plain, others @ ..] = models.map(|model| model.turns);
    for (name, turns) in ["a registry", "gpu-time's layer on one"].iter().zip(others) {
        let losses = turns.iter().zip(&plain).map(|(turn, plain)| (turn / plain - 1.0) * 100.0);
        let [low, median, high] = quartiles(losses.collect());
        println!("with {name}: {median:+.2} % (half of the rounds {low:+.2} to {high:+.2})");
    }
    println!("a pass without a subscriber: {:.1} µs", quartiles(plain)[1]);
    // The report is printed when the process exits.
    Ok(())
}
