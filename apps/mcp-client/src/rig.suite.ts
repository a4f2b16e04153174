import { afterAll, afterEach, beforeAll } from '@jest/globals';
import { createLogger, SystemClock } from '@isthmus/chassis';
import { Egress, parseCidrs, type Resolve } from '@isthmus/egress';
import { MountSpec, type VersionPolicy, type WopError } from '@isthmus/protocol';
import { watchLeaks } from '@isthmus/testing';
import { Breakers } from './breakers.js';
import { Connections, LIMITS, type Limits, type Target } from './connections.js';
import { InFlight } from './in-flight.js';
import { remoteFetch } from './remote-fetch.js';
import { type RemoteOptions, RemoteTools, type ToolCall } from './remote-tools.js';

// Inside of a hook: jest's own timer for hooks is there before and after.
let leaks: ReturnType<typeof watchLeaks>;
beforeAll(() => {
  leaks = watchLeaks();
});
afterAll(() => leaks.settled());

const stops: (() => Promise<unknown> | unknown)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});

/** Ends `thing` after the test. */
export function ending<T extends { close(): Promise<unknown> | unknown }>(thing: T): T {
  stops.push(() => thing.close());
  return thing;
}

export const LOOPBACK = '127.0.0.0/8,::1/128';
export const BOTH_ERAS: VersionPolicy = { allow: ['2026-07-28', '2025-11-25'] };
export const LEGACY_ONLY: VersionPolicy = { allow: ['2025-11-25'] };

type RigOptions = Partial<RemoteOptions> & { allow?: string; resolve?: Resolve; limits?: Partial<Limits>; clock?: SystemClock };

/** Everything behind the handlers: real connections to whatever URL it is pointed at. */
export function rig({ allow = LOOPBACK, resolve, limits, clock = new SystemClock(), ...options }: RigOptions = {}) {
  const logger = createLogger({ service: 'mcp-client', instance: 'test', level: 'silent' });
  const egress = ending(new Egress(parseCidrs(allow) ?? [], logger, resolve));
  const breakers = new Breakers(clock);
  const { maxResultBytes = 400 * 1_024, repeatUnknown = 'never' } = options;
  const connections = ending(new Connections(remoteFetch(egress, maxResultBytes), breakers, clock, { ...LIMITS, ...limits }));
  const inFlight = new InFlight();
  return {
    egress,
    breakers,
    connections,
    inFlight,
    clock,
    tools: new RemoteTools(connections, breakers, inFlight, clock, { maxResultBytes, repeatUnknown }),
  };
}

export const targetOf = (url: string, spec: Partial<MountSpec> = {}, owner: Partial<Target> = {}): Target => ({
  tenant: 'tenant-a',
  workspace: 'tenant-a-workspace',
  serverId: 'remote',
  spec: MountSpec.parse({ url, ...spec }),
  ...owner,
});

let calls = 0;
/** A call that nothing is wrong with; each with an invocation of its own. */
export function callOf(toolName: string, args: ToolCall['arguments'] = {}, rest: Partial<ToolCall> = {}): ToolCall {
  calls += 1;
  return {
    toolName,
    arguments: args,
    invocationId: `invocation-${String(calls).padStart(8, '0')}`,
    round: 0,
    repeat: false,
    startWithinMs: 60_000,
    timeoutMs: 14_000,
    ...rest,
  };
}

export const errorOf = (work: Promise<unknown>): Promise<WopError> =>
  work.then(
    (value) => Promise.reject(new Error(`It answered: ${JSON.stringify(value)?.slice(0, 300)}`)),
    (error) => error as WopError,
  );

/** Lets this process's sockets hear that their other end is gone; a call right before that is one of unknown outcome. */
export const socketsHear = (): Promise<void> => new Promise((resolve) => setImmediate(() => setImmediate(() => setImmediate(resolve))));
