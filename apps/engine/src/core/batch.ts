import { apply } from './apply.js';
import { type Command, type Decision, decide, logged } from './decide.js';
import type { Graph } from './graph.js';
import type { NewEvent, RunState } from './state.js';

/** Decisions that will be appended together: each sees the state the earlier ones lead to. */
export class Batch {
  readonly events: NewEvent[] = [];

  constructor(
    private readonly graph: Graph,
    readonly base: RunState,
    private now: RunState = base,
  ) {}

  get state(): RunState {
    return this.now;
  }

  add(command: Command): Decision {
    const decision = decide(this.graph, this.now, command);
    if (decision.is === 'events') {
      for (const event of decision.events) {
        this.events.push(event);
        this.now = apply(this.now, logged(event, this.now.head + 1, command.at));
      }
    }
    return decision;
  }
}
