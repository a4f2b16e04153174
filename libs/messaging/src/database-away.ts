/** Codes of Postgres, Prisma and sockets that say: nobody answers, or not in time. Nothing is wrong with the request. */
const AWAY = /^(57P0[123]|08\d{3}|53300|P1001|P1002|P1008|P1017|P2024|P2028|ECONNREFUSED|ECONNRESET|EPIPE|ETIMEDOUT)$/;
const WORDS =
  /Connection terminated|connection timeout|timeout exceeded when trying to connect|DatabaseNotReachable|the database system is (starting up|shutting down)/i;

/** Is the database out of reach? Looks at the error and at what caused it: drivers wrap. */
export function isDatabaseAway(error: unknown, depth = 0): boolean {
  if (typeof error !== 'object' || error === null || depth > 4) return false;
  const { code, originalCode, kind, message, cause, meta, driverAdapterError } = error as Record<string, unknown>;
  if ([code, originalCode, kind].some((text) => typeof text === 'string' && (AWAY.test(text) || WORDS.test(text)))) return true;
  if (typeof message === 'string' && WORDS.test(message)) return true;
  return [cause, meta, driverAdapterError].some((inner) => isDatabaseAway(inner, depth + 1));
}
