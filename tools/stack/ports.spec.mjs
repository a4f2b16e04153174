import net from 'node:net';
import { freePort, httpPort } from './ports.mjs';

describe('the HTTP port', () => {
  it('is refused in one sentence that names PORT while somebody else has it', async () => {
    const server = net.createServer();
    const port = await new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(server.address().port)));
    await expect(httpPort(String(port))).rejects.toThrow(/^Port \d+ is in use: set PORT to another one, for example PORT=\d+ npm start\.$/);
    await new Promise((resolve) => server.close(resolve));
    await expect(httpPort(String(port))).resolves.toBe(port);
  });

  it.each(['', 'abc', '-1', '65536', '80.5', '8080x'])('is not "%s"', async (text) => {
    await expect(httpPort(text)).rejects.toThrow(/^PORT must be a number/);
  });

  it('is a free one for 0', async () => {
    expect(await httpPort('0')).toBeGreaterThan(0);
    expect(await freePort()).toBeGreaterThan(0);
  });
});
