// Times ONNX files with ONNX Runtime on the CPU, in turns: node bench/onnx.js THREADS BATCHES ROUNDS LARGE.onnx SMALL.onnx ..
// Prints one JSON object per file and batch: the median in milliseconds, and how much faster than the first file it is.
const ort = require('onnxruntime-node');

const median = (values) => values.sort((a, b) => a - b)[Math.floor(values.length / 2)];

async function main([threads, batches, rounds, ...files]) {
  const runs = [];
  for (const file of files) {
    const session = await ort.InferenceSession.create(file, { intraOpNumThreads: Number(threads) });
    const size = session.inputMetadata[0].shape.slice(1);
    for (const batch of batches.split(',').map(Number)) {
      const shape = [batch, ...size];
      const length = shape.reduce((a, b) => a * b, 1);
      const input = new ort.Tensor('float32', new Float32Array(length), shape);
      runs.push({ file, batch, session, feeds: { [session.inputNames[0]]: input }, times: [] });
    }
  }
  const warmUp = 3;
  for (let round = -warmUp; round < Number(rounds); ++round) {
    for (const run of runs) {
      const start = process.hrtime.bigint();
      await run.session.run(run.feeds);
      if (round >= 0) run.times.push(Number(process.hrtime.bigint() - start) / 1e6);
    }
  }
  const first = new Map();
  for (const { file, batch, times } of runs) {
    const ms = median(times);
    if (!first.has(batch)) first.set(batch, ms);
    console.log(JSON.stringify({ file, batch, ms: Number(ms.toFixed(3)), speedup: Number((first.get(batch) / ms).toFixed(3)) }));
  }
}

main(process.argv.slice(2)).catch((error) => {
  console.error(error.message);
  process.exit(1);
});
