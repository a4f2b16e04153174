import type { MsgHdrs } from '@nats-io/transport-node';
import { context, propagation, ROOT_CONTEXT, type TextMapGetter, type TextMapSetter } from '@opentelemetry/api';

const setter: TextMapSetter<MsgHdrs> = { set: (headers, key, value) => headers.set(key, value) };
const getter: TextMapGetter<MsgHdrs | undefined> = {
  get: (headers, key) => headers?.get(key) || undefined,
  keys: (headers) => headers?.keys() ?? [],
};

/** Puts the present trace into the headers of a message. */
export const injectTrace = (headers: MsgHdrs): void => propagation.inject(context.active(), headers, setter);

/** Runs `work` in the trace that a message carried. */
export const inTraceOf = <T>(headers: MsgHdrs | undefined, work: () => T): T =>
  context.with(propagation.extract(ROOT_CONTEXT, headers, getter), work);
