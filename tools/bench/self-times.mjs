// What a CPU profile says. Pure.

const IDLE = '(idle)';

/**
 * The time (µs) that each node of the profile was sampled in itself: `{ all, busy, frames: [{ us, stack }] }`, the stack from the
 * function up to its root.
 */
export function selfTimes({ nodes, samples, timeDeltas }) {
  const byId = new Map(nodes.map((node) => [node.id, { frame: node.callFrame, us: 0, parent: undefined }]));
  for (const { id, children = [] } of nodes) for (const child of children) byId.get(child).parent = byId.get(id);
  samples.forEach((id, index) => {
    byId.get(id).us += timeDeltas[index];
  });
  const frames = [...byId.values()].filter(({ us, frame }) => us > 0 && frame.functionName !== IDLE);
  const all = [...byId.values()].reduce((total, { us }) => total + us, 0);
  const busy = frames.reduce((total, { us }) => total + us, 0);
  return { all, busy, frames: frames.map((node) => ({ us: node.us, stack: stackOf(node) })) };
}

function stackOf(node) {
  const stack = [];
  for (let at = node; at; at = at.parent) stack.push(at.frame);
  return stack;
}

/** Who called the built-ins: the first frame that stands in a file, else the function itself. */
export const nearestNamed = (stack) => stack.find(({ url }) => url && !url.startsWith('node:')) ?? stack[0];
