import { z } from 'zod';

/** Run ids are UUIDs (version 7: they sort by time of creation), opaque to clients. */
export const RunId = z.string().regex(/^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/, 'is not a run id');

/** Grammar of ids that authors choose, on every route. Dots included: public suites register such ids. */
export const AuthorId = z.string().regex(/^[A-Za-z0-9._~:-]{1,128}$/, 'must be 1 to 128 of A-Z a-z 0-9 . _ ~ : -');
export const WorkflowId = AuthorId;
export const NodeId = AuthorId;
export const ServerId = AuthorId;

/** Opaque and unique in the host: a run's events need no id of their own in storage. */
export const eventId = (runId: string, sequence: number): string => `${runId}.${sequence}`;

/** One interrupt per (run, key); the id names the run so that it is unique in the host. */
export const interruptId = (runId: string, ordinal: number): string => `${runId}.i${ordinal}`;
