/** Waits for a child that should succeed; what it printed is shown only when it does not. Answers its standard output. */
export function complete(child, name) {
  let all = '';
  let out = '';
  child.stdout?.on('data', (chunk) => {
    out += chunk;
    all += chunk;
  });
  child.stderr?.on('data', (chunk) => {
    all += chunk;
  });
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code, signal) => {
      if (code === 0) resolve(out);
      else reject(new Error(`${name} failed (${signal ?? `exit code ${code}`})\n${all.slice(-8_000)}`));
    });
  });
}
