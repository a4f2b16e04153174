import { Json } from '@isthmus/protocol';
import { z } from 'zod';
import { failedForGood, pureNode } from './node-type.js';

const Reducer = z
  .string()
  .regex(/^(replace|append|merge|counter|votes|feedback|message|vendor\.[a-z0-9-]+\.[A-Za-z0-9._-]+)$/, 'is not a known reducer');

/**
 * `core.channelWrite`: writes `value` to a channel. A declared channel keeps its own reducer, TTL and writers; an undeclared one is
 * made with those of the node. (rulings, Wire; channels-and-reducers.md)
 */
export const channelWrite = pureNode({
  role: 'pure',
  config: z.looseObject({
    channelName: z.string().min(1).max(256),
    reducer: Reducer.default('append'),
    ttlMs: z.int().min(1).max(31_536_000_000).optional(),
    value: Json.optional(),
  }),
  inputs: z.looseObject({ value: Json.optional() }),
  run: ({ nodeId, typeId, channel, untrusted }, config, inputs) => {
    const { channelName } = config;
    const declared = channel(channelName);
    const value = inputs.value ?? config.value;
    if (value === undefined)
      return failedForGood('variable_missing', `Node "${nodeId}" (core.channelWrite) has neither an input nor a config "value".`);
    const access = declared?.access;
    const writers = typeof access === 'object' ? access.writers : undefined;
    if (writers && !writers.some((writer) => writer === nodeId || matches(writer, typeId)))
      return failedForGood('channel_access_denied', `Node "${nodeId}" may not write to the channel "${channelName}".`);
    const ttlMs = declared ? declared.ttlMs : config.ttlMs;
    const write = { channel: channelName, value, reducer: declared?.reducer ?? config.reducer, ...(ttlMs !== undefined && { ttlMs }) };
    return { is: 'completed', outputs: {}, untrusted, writes: [write] };
  },
});

const matches = (pattern: string, typeId: string): boolean =>
  pattern.endsWith('*') ? typeId.startsWith(pattern.slice(0, -1)) : pattern === typeId;
