import type { Json, JsonObject } from '@isthmus/protocol';

/** One write to a channel, as `channel.written` records it: the input, not the reduced state. `at`: milliseconds since 1970. */
export type ChannelWrite = {
  readonly value: Json;
  readonly reducer: string;
  readonly at: number;
  readonly ttlMs?: number;
  readonly maxSize?: number;
};
type Entry = { readonly value: Json; readonly at: number };
/** What a channel holds. Lists keep the time of each entry, so that a TTL is folded on recorded time and replays agree. */
export type Channel = { readonly is: 'list'; readonly entries: readonly Entry[] } | { readonly is: 'value'; readonly value: Json };

type Fold = (channel: Channel | undefined, write: ChannelWrite) => Channel;

const entriesOf = (channel: Channel | undefined): readonly Entry[] => (channel?.is === 'list' ? channel.entries : []);
const contentOf = (channel: Channel | undefined): Json | undefined => (channel?.is === 'value' ? channel.value : undefined);
const isObject = (value: Json | undefined): value is JsonObject => typeof value === 'object' && value !== null && !Array.isArray(value);

/** Pruned when written to, by the times that were recorded. (channels-and-reducers.md: TTL) */
const alive = (entries: readonly Entry[], { at, ttlMs }: ChannelWrite): readonly Entry[] =>
  ttlMs === undefined ? entries : entries.filter((entry) => entry.at + ttlMs > at);

const append: Fold = (channel, write) => ({
  is: 'list',
  entries: [...alive(entriesOf(channel), write), { value: write.value, at: write.at }],
});

/** One entry per member `key` of the value; the newest stands, in the place of the older one or at the end. */
const latestBy =
  (key: string, keepsFirst: boolean): Fold =>
  (channel, write) => {
    const entries = alive(entriesOf(channel), write);
    const id = isObject(write.value) ? write.value[key] : undefined;
    if (id === undefined) return append(channel, write);
    const isSame = (entry: Entry): boolean => isObject(entry.value) && entry.value[key] === id;
    if (keepsFirst && entries.some(isSame)) return { is: 'list', entries };
    return { is: 'list', entries: [...entries.filter((entry) => !isSame(entry)), { value: write.value, at: write.at }] };
  };

/** The fold always uses the reducer that was recorded with the write. */
export const REDUCERS: Readonly<Record<string, Fold>> = {
  replace: (_channel, { value }) => ({ is: 'value', value }),
  append,
  merge: (channel, { value }) => {
    const base = contentOf(channel);
    return { is: 'value', value: isObject(base) && isObject(value) ? { ...base, ...value } : value };
  },
  counter: (channel, { value }) => ({ is: 'value', value: numberOf(contentOf(channel)) + numberOf(value) }),
  votes: latestBy('userId', false),
  feedback: append,
  message: latestBy('messageId', true),
};

const numberOf = (value: Json | undefined): number => (typeof value === 'number' ? value : 0);

/** An unknown vendor reducer folds as `replace`. */
export function writeChannel(channel: Channel | undefined, write: ChannelWrite): Channel {
  const reduce = (Object.hasOwn(REDUCERS, write.reducer) ? REDUCERS[write.reducer] : REDUCERS['replace']) as Fold;
  const written = reduce(channel, write);
  const { maxSize } = write;
  return written.is === 'list' && maxSize !== undefined && written.entries.length > maxSize
    ? { is: 'list', entries: written.entries.slice(-maxSize) }
    : written;
}

/** What readers see. */
export const channelValue = (channel: Channel): Json =>
  channel.is === 'value' ? channel.value : channel.entries.map(({ value }) => value);
