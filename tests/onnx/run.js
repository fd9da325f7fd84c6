// Runs an ONNX file with ONNX Runtime: node run.js FILE IMAGES OUT CHANNELS SIZE, floats in files. The first image
// alone, then all in batches of five; the logits go to OUT.
const fs = require('fs');
const ort = require('onnxruntime-node');

function floats(path) {
  const bytes = fs.readFileSync(path);
  return new Float32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 4);
}

async function main([file, imagesFile, outFile, channels, size]) {
  const session = await ort.InferenceSession.create(file, { intraOpNumThreads: 2 });
  const images = floats(imagesFile);
  const length = channels * size * size;
  const count = images.length / length;
  const logits = [];
  const run = async (begin, end) => {
    const part = images.slice(begin * length, end * length);
    const input = new ort.Tensor('float32', part, [end - begin, Number(channels), Number(size), Number(size)]);
    const output = await session.run({ [session.inputNames[0]]: input });
    logits.push(...output[session.outputNames[0]].data);
  };
  await run(0, 1);
  for (let i = 0; i < count; i += 5) await run(i, Math.min(i + 5, count));
  fs.writeFileSync(outFile, Buffer.from(new Float32Array(logits).buffer));
}

main(process.argv.slice(2)).catch((error) => {
  console.error(error.message);
  process.exit(1);
});
