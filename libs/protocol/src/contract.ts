import type { z } from 'zod';
import type { Scope } from './scopes.js';

export type ServiceName = 'gateway' | 'authz' | 'engine' | 'mcp-client' | 'mcp-server';

/** Who may ask: `internal` needs no passport (NATS permissions hold who may publish), else a passport with all `scopes`. */
export type Access = 'internal' | readonly Scope[];

/**
 * An operation between services: subject `wop.v1.<service>.<noun>.<verb>`, queue group = service. A service that is named
 * in a contract and has no handler for it does not boot.
 */
export type Contract<I extends z.ZodType = z.ZodType, O extends z.ZodType = z.ZodType> = {
  readonly service: Exclude<ServiceName, 'gateway'>;
  readonly subject: string;
  readonly access: Access;
  /** Milliseconds the asker waits at most, unless it says less. */
  readonly deadlineMs: number;
  /** The handler's process tells every second that it is alive, so that its death is noticed before the deadline. */
  readonly heartbeat: boolean;
  readonly input: I;
  readonly output: O;
};

export type Input<C extends Contract> = z.input<C['input']>;
export type Parsed<C extends Contract> = z.output<C['input']>;
export type Output<C extends Contract> = z.output<C['output']>;

/** No message exceeds this; reads page by bytes. (Nest's transport fails above NATS max_payload, 1 MB) */
export const MESSAGE_BUDGET_BYTES = 512 * 1024;

export function contract<I extends z.ZodType, O extends z.ZodType>(
  name: `${Exclude<ServiceName, 'gateway'>}.${string}`,
  rest: { access: Access; deadlineMs?: number; heartbeat?: boolean; input: I; output: O },
): Contract<I, O> {
  const service = name.slice(0, name.indexOf('.')) as Exclude<ServiceName, 'gateway'>;
  return { service, subject: `wop.v1.${name}`, deadlineMs: 5_000, heartbeat: false, ...rest };
}
