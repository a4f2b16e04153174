import { Injectable } from '@nestjs/common';
import { Bus } from '@isthmus/messaging';
import { engine, isWopError, type JsonObject, WorkflowDefinition } from '@isthmus/protocol';

/** Workflows that seams need to have something to look at. Registered like any other, by whoever asks, where they are not yet. */
@Injectable()
export class Stage {
  constructor(private readonly bus: Bus) {}

  /** Starts a run of a workflow that is one node, and waits a moment for it to settle. @returns its id */
  async run(passport: string, id: string, node: object, inputs: JsonObject = {}): Promise<string> {
    await this.ensure(passport, WorkflowDefinition.parse({ id, name: id, nodes: [{ id: 'node', ...node }] }));
    const wish = { workflowId: id, inputs, transport: 'rest', trust: 'trusted', holdMs: 2_000 } as const;
    const { runId } = await this.bus.call(engine.createRun, wish, { passport });
    return runId;
  }

  private async ensure(passport: string, definition: WorkflowDefinition): Promise<void> {
    try {
      await this.bus.call(engine.getWorkflow, { workflowId: definition.id }, { passport });
    } catch (error) {
      if (!isWopError(error) || error.code !== 'not_found') throw error;
      await this.bus.call(engine.putWorkflow, { definition }, { passport });
    }
  }
}
