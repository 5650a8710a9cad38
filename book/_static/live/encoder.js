// A BERT encoder in plain JavaScript (Devlin et al. 2019): hidden states x, a row of d numbers for each of n tokens, go through layers.
// In a layer each head compares queries with keys, α = softmax(q kᵀ / √d_h), and mixes values, o = α v; what all heads return is
// multiplied by W_O and added to x; then a small network does the same for each token alone. A matrix W is [out, in], row after row.
class Encoder {
  // bytes: the length of a header, the header as JSON, and the numbers, each array where the header says.
  constructor(bytes) {
    const length = new DataView(bytes.buffer).getUint32(0, true);
    Object.assign(this, JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length)))); // config, tokenizer, arrays
    this.bytes = bytes.subarray(4 + length);
    this.trained = this.parameters((name) => this.read(name));
    this.bytes = this.bytes.slice(0, this.arrays["encoder.layer.0.attention.self.query.weight"][0]); // of words and places: stay 8 bits
  }

  // Numbers start … start + count of an array: single ones as they are, those of a matrix as 8 bits times the scale of each 32.
  read(name, start = 0, count = this.arrays[name][1]) {
    const [offset, size, rounded] = this.arrays[name];
    const { buffer, byteOffset } = this.bytes, at = byteOffset + offset;
    if (!rounded) return new Float32Array(buffer, at, size).slice(start, start + count);
    const groups = Math.ceil(size / 32), scales = new Uint16Array(buffer, at, groups);
    const scale = new Float32Array(Uint32Array.from(scales.subarray(start >> 5, ((start + count - 1) >> 5) + 1), (half) => half << 16).buffer);
    const steps = new Int8Array(buffer, at + 2 * groups + start, count), numbers = new Float32Array(count);
    for (let i = 0; i < count; i++) numbers[i] = steps[i] * scale[((start + i) >> 5) - (start >> 5)];
    return numbers;
  }

  parameters(read) {
    const layers = Array.from({ length: this.config.num_hidden_layers }, (_, l) => {
      const [WQ, bQ, WK, bK, WV, bV, WO, bO, gamma1, beta1, W1, b1, W2, b2, gamma2, beta2] = [
        ...["attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense", "attention.output.LayerNorm"],
        ...["intermediate.dense", "output.dense", "output.LayerNorm"],
      ].flatMap((part) => ["weight", "bias"].map((kind) => read(`encoder.layer.${l}.${part}.${kind}`)));
      return { WQ, bQ, WK, bK, WV, bV, WO, bO, gamma1, beta1, W1, b1, W2, b2, gamma2, beta2 };
    });
    const [segment, gamma, beta] = ["token_type_embeddings.weight", "LayerNorm.weight", "LayerNorm.bias"].map((n) => read(`embeddings.${n}`));
    return { segment, gamma, beta, layers };
  }

  // The control: word and position embeddings kept, all else drawn as before training, matrices from N(0, σ²) by a seed.
  untrained(seed) {
    let state = seed >>> 0;
    const uniform = () => { // mulberry32
      let t = (state = (state + 0x6d2b79f5) | 0);
      t = Math.imul(t ^ (t >>> 15), t | 1);
      t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
      return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
    };
    const normal = () => Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform());
    return this.parameters((name) => {
      const drawn = new Float32Array(this.arrays[name][1]);
      if (name.endsWith("LayerNorm.weight")) return drawn.fill(1);
      return name.endsWith("bias") ? drawn : drawn.map(() => this.config.initializer_range * normal());
    });
  }

  // ids, segments: of each token; start: the number of the first place; off: heads "layer-head", from 0, whose weights are set to 0.
  // Returns the maps [layer, head, query, key], as each head has them before it is switched off, and the mean of the last hidden states.
  forward(ids, segments, { start = 0, off = new Set(), parameters = this.trained } = {}) {
    const { num_hidden_layers: L, num_attention_heads: H, hidden_size: d } = this.config;
    const n = ids.length, d_h = d / H, maps = new Float32Array(L * H * n * n);
    let x = new Float32Array(n * d);
    ids.forEach((id, i) => {
      const word = this.read("embeddings.word_embeddings.weight", id * d, d);
      const place = this.read("embeddings.position_embeddings.weight", (start + i) * d, d);
      for (let c = 0; c < d; c++) x[i * d + c] = word[c] + place[c] + parameters.segment[segments[i] * d + c];
    });
    x = this.normalise(x, parameters.gamma, parameters.beta);
    parameters.layers.forEach(({ WQ, bQ, WK, bK, WV, bV, WO, bO, gamma1, beta1, W1, b1, W2, b2, gamma2, beta2 }, l) => {
      const q = this.linear(x, WQ, bQ), k = this.linear(x, WK, bK), v = this.linear(x, WV, bV), o = new Float32Array(n * d);
      for (let h = 0; h < H; h++) {
        const alpha = maps.subarray((l * H + h) * n * n, (l * H + h + 1) * n * n);
        for (let i = 0; i < n; i++) {
          for (let j = 0; j < n; j++) {
            let score = 0;
            for (let c = h * d_h; c < (h + 1) * d_h; c++) score += q[i * d + c] * k[j * d + c];
            alpha[i * n + j] = score / Math.sqrt(d_h);
          }
          this.softmax(alpha.subarray(i * n, (i + 1) * n));
          if (off.has(`${l}-${h}`)) continue;
          for (let j = 0; j < n; j++) for (let c = h * d_h; c < (h + 1) * d_h; c++) o[i * d + c] += alpha[i * n + j] * v[j * d + c];
        }
      }
      x = this.normalise(this.add(x, this.linear(o, WO, bO)), gamma1, beta1);
      x = this.normalise(this.add(x, this.linear(this.gelu(this.linear(x, W1, b1)), W2, b2)), gamma2, beta2);
    });
    return { maps, vector: Float32Array.from({ length: d }, (_, c) => ids.reduce((sum, _, i) => sum + x[i * d + c], 0) / n) };
  }

  // y = x Wᵀ + b, in blocks of 4 tokens and 2 outputs: what is read once is used more than once. At the end a block repeats the last row.
  linear(x, W, b) {
    const out = b.length, m = W.length / out, n = x.length / m, y = new Float32Array(n * out);
    for (let t = 0; t < n; t += 4) {
      const [t0, t1, t2, t3] = [0, 1, 2, 3].map((s) => Math.min(t + s, n - 1));
      for (let r = 0; r < out; r += 2) {
        const r1 = Math.min(r + 1, out - 1);
        let s00 = b[r], s10 = b[r], s20 = b[r], s30 = b[r], s01 = b[r1], s11 = b[r1], s21 = b[r1], s31 = b[r1];
        for (let c = 0, i = r * m, j = r1 * m, p0 = t0 * m, p1 = t1 * m, p2 = t2 * m, p3 = t3 * m; c < m; c++) {
          const w0 = W[i + c], w1 = W[j + c], x0 = x[p0 + c], x1 = x[p1 + c], x2 = x[p2 + c], x3 = x[p3 + c];
          s00 += w0 * x0; s10 += w0 * x1; s20 += w0 * x2; s30 += w0 * x3;
          s01 += w1 * x0; s11 += w1 * x1; s21 += w1 * x2; s31 += w1 * x3;
        }
        y[t0 * out + r] = s00; y[t1 * out + r] = s10; y[t2 * out + r] = s20; y[t3 * out + r] = s30;
        y[t0 * out + r1] = s01; y[t1 * out + r1] = s11; y[t2 * out + r1] = s21; y[t3 * out + r1] = s31;
      }
    }
    return y;
  }

  softmax(row) {
    const most = Math.max(...row);
    let sum = 0;
    for (let j = 0; j < row.length; j++) sum += row[j] = Math.exp(row[j] - most);
    for (let j = 0; j < row.length; j++) row[j] /= sum;
  }

  add(x, z) {
    return x.map((value, i) => value + z[i]);
  }

  // LayerNorm: each token's numbers are given mean 0 and variance 1, then scaled by γ and moved by β.
  normalise(x, gamma, beta) {
    const d = gamma.length, y = new Float32Array(x.length);
    for (let i = 0; i < x.length; i += d) {
      let mean = 0, variance = 0;
      for (let c = 0; c < d; c++) mean += x[i + c] / d;
      for (let c = 0; c < d; c++) variance += (x[i + c] - mean) ** 2 / d;
      for (let c = 0; c < d; c++) y[i + c] = ((x[i + c] - mean) / Math.sqrt(variance + this.config.layer_norm_eps)) * gamma[c] + beta[c];
    }
    return y;
  }

  // x Φ(x); the error function by Abramowitz and Stegun, 7.1.26, to 2e-7.
  gelu(x) {
    return x.map((value) => {
      const z = Math.abs(value) / Math.SQRT2, t = 1 / (1 + 0.3275911 * z);
      const tail = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429)))) * Math.exp(-z * z);
      return value * (value < 0 ? tail / 2 : 1 - tail / 2);
    });
  }
}
