import net from 'node:net';
import { Advice } from '../say.mjs';

function listen(port) {
  const server = net.createServer();
  return new Promise((resolve, reject) => {
    server.once('error', reject).listen(port, '127.0.0.1', () => resolve(server));
  });
}

const close = (server) => new Promise((resolve) => server.close(resolve));

/** A port the kernel says is free. Whoever gets it should still survive losing the race for it. */
export async function freePort() {
  const server = await listen(0);
  const { port } = server.address();
  await close(server);
  return port;
}

/** The HTTP port the user asked for (PORT), or one clear sentence. `0` asks for a free one. */
export async function httpPort(wanted = '8080') {
  const port = /^\d{1,5}$/.test(wanted) ? Number(wanted) : Number.NaN;
  if (!(port >= 0 && port <= 65_535)) throw new Advice(`PORT must be a number from 0 to 65535, not "${wanted}".`);
  if (port === 0) return freePort();
  try {
    await close(await listen(port));
    return port;
  } catch (error) {
    if (error.code === 'EADDRINUSE')
      throw new Advice(`Port ${port} is in use: set PORT to another one, for example PORT=${port < 65_535 ? port + 1 : 8080} npm start.`);
    if (error.code === 'EACCES') throw new Advice(`Port ${port} may not be opened by this user: set PORT to one above 1023.`);
    throw error;
  }
}
