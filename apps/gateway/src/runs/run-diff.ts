import { isTerminal, type Json, type JsonObject, type RunEvent } from '@isthmus/protocol';
import canonicalize from 'canonicalize';
import type { RunRecord } from './read-log.js';

type EventDiff =
  | { readonly seq: number; readonly op: 'added'; readonly bEvent: RunEvent }
  | { readonly seq: number; readonly op: 'removed'; readonly aEvent: RunEvent }
  | { readonly seq: number; readonly op: 'changed'; readonly aEvent: RunEvent; readonly bEvent: RunEvent };

export type RunDiff = {
  readonly a: string;
  readonly b: string;
  readonly divergedAtSeq: number | null;
  readonly eventDiffs: readonly EventDiff[];
  readonly stateDiff: JsonObject;
  readonly truncated?: true;
};

/**
 * Where two runs part: a pure function of their logs. Events are compared place by place, by what they say and not by when or
 * in which run they say it. (run-diff-response.schema.json, RFC 0054)
 */
export function diffRuns(a: RunRecord, b: RunRecord): RunDiff {
  // Of a log that goes on only what is there can be compared: what is not may well come.
  const open = [a, b].filter(({ isCut, status }) => isCut || !isTerminal(status));
  const length = Math.min(Math.max(a.events.length, b.events.length), ...open.map(({ events }) => events.length));
  const eventDiffs = Array.from({ length }, (_, seq) => seq).flatMap((seq) => eventDiff(seq, a, b));
  return {
    a: a.runId,
    b: b.runId,
    divergedAtSeq: eventDiffs[0]?.seq ?? null,
    eventDiffs,
    stateDiff: stateDiff(a, b),
    ...(open.length > 0 && { truncated: true }),
  };
}

function eventDiff(seq: number, a: RunRecord, b: RunRecord): EventDiff[] {
  const aEvent = a.events[seq];
  const bEvent = b.events[seq];
  if (aEvent && bEvent) return isSame(aEvent, bEvent) ? [] : [{ seq, op: 'changed', aEvent, bEvent }];
  if (aEvent) return [{ seq, op: 'removed', aEvent }];
  return bEvent ? [{ seq, op: 'added', bEvent }] : [];
}

const canonical = (value: unknown): string => canonicalize(value) ?? '';
const said = ({ type, nodeId, payload }: RunEvent): string => canonical({ type, nodeId, payload });

/** Forks keep the ids of their source; other runs' ids hold their own run id, which is no difference either. */
function isSame(a: RunEvent, b: RunEvent): boolean {
  const [left, right] = [said(a), said(b)];
  return left === right || left.replaceAll(a.runId, '') === right.replaceAll(b.runId, '');
}

/** What differs of the states the logs lead to, name by name. */
function stateDiff({ snapshot: a }: RunRecord, { snapshot: b }: RunRecord): JsonObject {
  const variables = members(a.variables, b.variables);
  const channels = members(a.channels ?? {}, b.channels ?? {});
  return {
    ...(a.status !== b.status && { status: { a: a.status, b: b.status } }),
    ...(Object.keys(variables).length > 0 && { variables }),
    ...(Object.keys(channels).length > 0 && { channels }),
  };
}

function members(a: Readonly<Record<string, Json>>, b: Readonly<Record<string, Json>>): JsonObject {
  const names = [...new Set([...Object.keys(a), ...Object.keys(b)])].sort();
  return Object.fromEntries(
    names
      .map((name) => [name, { ...own(a, name, 'a'), ...own(b, name, 'b') }] as const)
      .filter(([, sides]) => canonical(sides.a) !== canonical(sides.b)),
  );
}

const own = (values: Readonly<Record<string, Json>>, name: string, side: 'a' | 'b'): { a?: Json; b?: Json } =>
  Object.hasOwn(values, name) ? { [side]: values[name] as Json } : {};
