//! A small Llama in the style of candle's own models, with `#[gpu_timed]` on its functions.
//!
//! Nothing else in this file is about timing: no stream is named, and no key is given.

use candle_core::{D, DType, Device, Result, Tensor};
use candle_nn::kv_cache::KvCache;
use candle_nn::{Embedding, Linear, Module, RmsNorm, VarBuilder, ops, rotary_emb};
use gpu_time::gpu_timed;

/// The largest number of tokens in a sequence.
pub const CONTEXT: usize = 4096;
const LAYERS: usize = 4;
const HIDDEN: usize = 1024;
const HEADS: usize = 16;
const HEAD: usize = HIDDEN / HEADS;
const INTERMEDIATE: usize = 2816;
const VOCABULARY: usize = 32_000;
const EPSILON: f64 = 1e-5;

/// The model and its cache of keys and values.
pub struct Llama {
    embedding: Embedding,
    blocks: Vec<Block>,
    norm: RmsNorm,
    lm_head: Linear,
    rotation: Rotation,
    device: Device,
}

impl Llama {
    /// Loads the weights from `weights`.
    pub fn new(weights: VarBuilder) -> Result<Llama> {
        let blocks = (0..LAYERS).map(|i| Block::new(weights.pp("layers").pp(i)));
        Ok(Llama {
            embedding: candle_nn::embedding(VOCABULARY, HIDDEN, weights.pp("embed_tokens"))?,
            blocks: blocks.collect::<Result<_>>()?,
            norm: candle_nn::rms_norm(HIDDEN, EPSILON, weights.pp("norm"))?,
            lm_head: candle_nn::linear_no_bias(HIDDEN, VOCABULARY, weights.pp("lm_head"))?,
            rotation: Rotation::new(weights.device())?,
            device: weights.device().clone(),
        })
    }

    /// Returns the logits of the token after `token`, which is at `position` of the sequence.
    #[gpu_timed]
    pub fn decode(&mut self, token: u32, position: usize) -> Result<Tensor> {
        let mut x = self.embedding(token)?;
        for block in &mut self.blocks {
            x = block.forward(&x, &self.rotation, position)?;
        }
        self.lm_head(&norm(&self.norm, &x)?)
    }

    /// Clears the cache, to begin another sequence.
    pub fn forget(&mut self) {
        for block in &mut self.blocks {
            block.attention.cache.reset();
        }
    }

    /// Returns the vector of a token.
    #[gpu_timed]
    pub fn embedding(&self, token: u32) -> Result<Tensor> {
        self.embedding.forward(&Tensor::new(&[[token]], &self.device)?)
    }

    /// Returns the logits of the last layer's normed output.
    #[gpu_timed]
    pub fn lm_head(&self, x: &Tensor) -> Result<Tensor> {
        self.lm_head.forward(x)
    }

    /// Calls one function of the model on the first layer, as `decode` does.
    pub fn only(&mut self, function: &str, x: &Tensor, position: usize) -> Result<Tensor> {
        let block = &mut self.blocks[0];
        match function {
            "embedding" => self.embedding(0),
            "block" => block.forward(x, &self.rotation, position),
            "norm" => norm(&block.attention_norm, x),
            "attention" => block.attention.forward(x, &self.rotation, position),
            "mlp" => block.mlp.forward(x),
            "lm_head" => self.lm_head(x),
            _ => candle_core::bail!("invalid function `{function}`"),
        }
    }

    /// Returns an input for `only`.
    pub fn input(&self) -> Result<Tensor> {
        Tensor::ones((1, 1, HIDDEN), DType::F32, &self.device)
    }
}

struct Block {
    attention_norm: RmsNorm,
    attention: Attention,
    mlp_norm: RmsNorm,
    mlp: Mlp,
}

impl Block {
    fn new(weights: VarBuilder) -> Result<Block> {
        let norm = |name| candle_nn::rms_norm(HIDDEN, EPSILON, weights.pp(name));
        Ok(Block {
            attention_norm: norm("input_layernorm")?,
            attention: Attention::new(weights.pp("self_attn"))?,
            mlp_norm: norm("post_attention_layernorm")?,
            mlp: Mlp::new(weights.pp("mlp"))?,
        })
    }

    #[gpu_timed]
    fn forward(&mut self, x: &Tensor, rotation: &Rotation, position: usize) -> Result<Tensor> {
        let normed = norm(&self.attention_norm, x)?;
        let x = (x + self.attention.forward(&normed, rotation, position)?)?;
        let normed = norm(&self.mlp_norm, &x)?;
        &x + self.mlp.forward(&normed)?
    }
}

#[gpu_timed]
fn norm(weights: &RmsNorm, x: &Tensor) -> Result<Tensor> {
    weights.forward(x)
}

struct Attention {
    query: Linear,
    key: Linear,
    value: Linear,
    output: Linear,
    cache: KvCache,
}

impl Attention {
    fn new(weights: VarBuilder) -> Result<Attention> {
        let linear = |name| candle_nn::linear_no_bias(HIDDEN, HIDDEN, weights.pp(name));
        Ok(Attention {
            query: linear("q_proj")?,
            key: linear("k_proj")?,
            value: linear("v_proj")?,
            output: linear("o_proj")?,
            cache: KvCache::new(2, CONTEXT),
        })
    }

    #[gpu_timed]
    fn forward(&mut self, x: &Tensor, rotation: &Rotation, position: usize) -> Result<Tensor> {
        // With a single token, splitting into heads moves no data, and no mask is needed.
        let heads = |x: Tensor| x.reshape((1, HEADS, 1, HEAD));
        let query = rotation.rotate(&heads(self.query.forward(x)?)?, position)?;
        let key = rotation.rotate(&heads(self.key.forward(x)?)?, position)?;
        let value = heads(self.value.forward(x)?)?;
        let (keys, values) = self.cache.append(&key, &value)?;
        let scores = (query.matmul(&keys.t()?)? / (HEAD as f64).sqrt())?;
        let x = ops::softmax_last_dim(&scores)?.matmul(&values)?;
        self.output.forward(&x.reshape((1, 1, HIDDEN))?)
    }
}

struct Mlp {
    gate: Linear,
    up: Linear,
    down: Linear,
}

impl Mlp {
    fn new(weights: VarBuilder) -> Result<Mlp> {
        let linear = |from, to, name| candle_nn::linear_no_bias(from, to, weights.pp(name));
        Ok(Mlp {
            gate: linear(HIDDEN, INTERMEDIATE, "gate_proj")?,
            up: linear(HIDDEN, INTERMEDIATE, "up_proj")?,
            down: linear(INTERMEDIATE, HIDDEN, "down_proj")?,
        })
    }

    #[gpu_timed]
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.down.forward(&(ops::silu(&self.gate.forward(x)?)? * self.up.forward(x)?)?)
    }
}

/// The angles by which queries and keys are rotated at each position.
struct Rotation {
    cos: Tensor,
    sin: Tensor,
}

impl Rotation {
    fn new(device: &Device) -> Result<Rotation> {
        let frequency = |i: usize| 10_000f32.powf(-2.0 * i as f32 / HEAD as f32);
        let frequencies: Vec<_> = (0..HEAD / 2).map(frequency).collect();
        let frequencies = Tensor::from_vec(frequencies, (1, HEAD / 2), device)?;
        let positions: Vec<_> = (0..CONTEXT).map(|position| position as f32).collect();
        let positions = Tensor::from_vec(positions, (CONTEXT, 1), device)?;
        let angles = positions.matmul(&frequencies)?;
        Ok(Rotation { cos: angles.cos()?, sin: angles.sin()? })
    }

    fn rotate(&self, x: &Tensor, position: usize) -> Result<Tensor> {
        let cos = self.cos.narrow(0, position, 1)?;
        rotary_emb::rope(x, &cos, &self.sin.narrow(0, position, 1)?)
    }
}

/// Returns the most likely token. Waits for the GPU.
pub fn most_likely(logits: &Tensor) -> Result<u32> {
    logits.flatten_all()?.argmax(D::Minus1)?.to_scalar()
}

#[cfg(test)]
mod tests {
    use super::*;
    use candle_nn::VarMap;

    fn logits(weights: &VarMap, tokens: &[u32]) -> Vec<f32> {
        let weights = VarBuilder::from_varmap(weights, DType::F32, &Device::Cpu);
        let mut model = Llama::new(weights).unwrap();
        let decoded = tokens.iter().enumerate().map(|(i, &token)| model.decode(token, i).unwrap());
        decoded.last().unwrap().flatten_all().unwrap().to_vec1().unwrap()
    }

    #[test]
    fn logits_depend_on_every_token_and_its_position() {
        let weights = VarMap::new();
        let first = logits(&weights, &[1, 2, 3]);
        assert_eq!(first.len(), VOCABULARY);
        assert!(first.iter().all(|logit| logit.is_finite()));
        assert_eq!(logits(&weights, &[1, 2, 3]), first);
        assert_ne!(logits(&weights, &[4, 2, 3]), first);
        assert_ne!(logits(&weights, &[2, 1, 3]), first);
    }
}
