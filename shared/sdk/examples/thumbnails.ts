// Makes a contact sheet: downloads the images of a list, and stores their thumbnails as one PNG.
// The input of the run is a JSON list of addresses of PNG files. thumbnails.yaml is the job.
import { PNG } from "pngjs";
import { type Task, runTask } from "@sortie/sdk/worker";

const size = 64;

/** Scales an image to a square: each pixel is the mean of those that it covers. */
function thumbnail(image: PNG): PNG {
  const small = new PNG({ width: size, height: size });
  for (let y = 0; y < size; y++) {
    for (let x = 0; x < size; x++) {
      const [left, right] = covered(x, image.width);
      const [top, bottom] = covered(y, image.height);
      for (let channel = 0; channel < 4; channel++) {
        let sum = 0;
        for (let row = top; row < bottom; row++) {
          for (let column = left; column < right; column++) sum += image.data[4 * (row * image.width + column) + channel]!;
        }
        small.data[4 * (y * size + x) + channel] = Math.round(sum / ((right - left) * (bottom - top)));
      }
    }
  }
  return small;
}

function covered(at: number, length: number): [number, number] {
  const from = Math.floor((at * length) / size);
  return [from, Math.max(from + 1, Math.floor(((at + 1) * length) / size))];
}

async function work(task: Task): Promise<void> {
  const addresses = JSON.parse(new TextDecoder().decode(await task.input())) as string[];
  const sheet = new PNG({ width: size * addresses.length, height: size });
  for (const [at, address] of addresses.entries()) {
    task.progress((100 * at) / addresses.length, address);
    const response = await fetch(address, { signal: task.signal }); // a cancel request ends it
    if (!response.ok) task.fail("INFRASTRUCTURE", `${address}: status ${response.status}`, { retryable: response.status >= 500 });
    const image = PNG.sync.read(Buffer.from(await response.arrayBuffer()));
    PNG.bitblt(thumbnail(image), sheet, 0, 0, size, size, size * at, 0);
    task.check(); // scaling does not await: look for a cancel request
  }
  await task.output(PNG.sync.write(sheet), { contentType: "image/png", fileName: "sheet.png" });
}

process.exit(await runTask(work));
