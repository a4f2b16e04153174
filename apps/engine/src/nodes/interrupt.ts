import { InterruptKind, INTERRUPTS, JsonObject } from '@isthmus/protocol';
import { z } from 'zod';
import { failedForGood, pureNode } from './node-type.js';

/** `core.interrupt`: the generic primitive. Any kind, with its data; what it is answered with becomes the node's output. */
export const interrupt = pureNode({
  role: 'control',
  config: z
    .looseObject({
      kind: z.string().min(1).max(128),
      key: z.string().min(1).max(256).optional(),
      data: JsonObject.default({}),
      timeoutMs: z.int().min(0).optional(),
      resumeSchema: JsonObject.optional(),
    })
    .superRefine(({ kind, data }, context) => {
      const known = InterruptKind.safeParse(kind);
      const parsed = known.success ? INTERRUPTS[known.data].data.safeParse(data) : undefined;
      for (const issue of parsed?.error?.issues ?? [])
        context.addIssue({ code: 'custom', path: ['data', ...issue.path], message: issue.message });
    }),
  run: ({ nodeId, answer, isRouted }, { kind, key = nodeId, data, timeoutMs, resumeSchema }) => {
    const answered = answer(key);
    if (answered === undefined) {
      const known = InterruptKind.safeParse(kind);
      // Kinds that nobody knows are accepted and kept. (interrupt.md)
      const asked = known.success ? { kind: known.data, data } : { kind: 'custom' as const, data: { customKind: kind, payload: data } };
      const request = { key, ...asked, ...(timeoutMs !== undefined && { timeoutMs }), ...(resumeSchema && { resumeSchema }) };
      return { is: 'suspended', requests: [{ request }] };
    }
    const action =
      typeof answered === 'object' && answered !== null && !Array.isArray(answered) ? (answered as JsonObject)['action'] : undefined;
    if (action === 'timeout' && !isRouted) return failedForGood('interrupt_expired', `Nobody answered node "${nodeId}" in time.`);
    if (action === 'reject' && kind === 'approval' && !isRouted)
      return failedForGood('approval_rejected', `The approval "${nodeId}" was rejected.`);
    return { is: 'completed', outputs: { value: answered } };
  },
});
