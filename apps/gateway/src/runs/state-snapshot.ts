import type { Bus } from '@isthmus/messaging';
import { engine, isTerminal, type OpenInterrupt, type RunSnapshot } from '@isthmus/protocol';
import type { StreamPage } from './event-stream.js';

/** The state of a run after the event `atSeq`: what the mode `values` sends. (stream-modes.md) */
export const stateSnapshot = (snapshot: RunSnapshot, atSeq: number) =>
  ({ type: 'state.snapshot', sequence: atSeq, atSeq, ...withoutTokens(snapshot) }) as const;

/** The state as it stands, in the place of the event it follows. However far apart two looks are, the later one says it all. */
export async function readState(bus: Bus, passport: string, runId: string): Promise<StreamPage> {
  const { head, status, snapshot } = await bus.call(engine.readRun, { runId, want: ['snapshot'] }, { passport });
  return { from: 0, next: head + 1, events: snapshot ? [stateSnapshot(snapshot, head)] : [], isOver: isTerminal(status) };
}

/** A token answers for who holds it, so it is given to who asked and stands in nothing that is passed on. (rulings, Interrupts) */
export function withoutTokens({ interrupt, interrupts, ...rest }: RunSnapshot): RunSnapshot {
  return { ...rest, ...(interrupt && { interrupt: bare(interrupt) }), ...(interrupts && { interrupts: interrupts.map(bare) }) };
}

const bare = ({ interruptToken: _, callbackUrl: __, ...rest }: OpenInterrupt): OpenInterrupt => rest;
