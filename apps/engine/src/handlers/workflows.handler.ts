import { Controller } from '@nestjs/common';
import { Payload } from '@nestjs/microservices';
import { Clock } from '@isthmus/chassis';
import { Bell, From, Handle } from '@isthmus/messaging';
import {
  BELLS,
  type Caller,
  engine,
  type JsonObject,
  maskCredentials,
  type Output,
  type Parsed,
  WopError,
  WorkflowId,
} from '@isthmus/protocol';
import { compile } from '../core/graph.js';
import { checkNodes, exposuresOf } from '../nodes/index.js';
import { checkSchema } from '../schema-check.js';
import { Workflows } from '../store/workflows.js';
import { afterOf, cursorAfter } from './cursor.js';

@Controller()
export class WorkflowsHandler {
  constructor(
    private readonly workflows: Workflows,
    private readonly bell: Bell,
    private readonly clock: Clock,
  ) {}

  @Handle(engine.putWorkflow)
  async put(
    @From() caller: Caller,
    @Payload() { definition }: Parsed<typeof engine.putWorkflow>,
  ): Promise<Output<typeof engine.putWorkflow>> {
    compile(definition);
    checkNodes(definition);
    if (definition.configurableSchema) checkSchema(definition.configurableSchema, 'configurableSchema');
    for (const { nodeId, manifest } of exposuresOf(definition)) {
      for (const member of ['inputSchema', 'outputSchema']) {
        const schema = manifest[member];
        if (schema !== undefined) checkSchema(schema as JsonObject, `${member} of node "${nodeId}"`);
      }
    }
    const { exposes, ...head } = await this.workflows.put(caller, caller.principal, definition, this.clock.date());
    if (exposes) this.bell.ring(BELLS.catalog.subject(caller.tenant));
    return head;
  }

  @Handle(engine.getWorkflow)
  async get(
    @From() caller: Caller,
    @Payload() { workflowId }: Parsed<typeof engine.getWorkflow>,
  ): Promise<Output<typeof engine.getWorkflow>> {
    const found = await this.workflows.get(caller, workflowId);
    if (!found) throw new WopError('not_found', maskCredentials(`There is no workflow "${workflowId}" in this workspace.`));
    return found;
  }

  @Handle(engine.listWorkflows)
  async list(
    @From() caller: Caller,
    @Payload() { cursor, limit }: Parsed<typeof engine.listWorkflows>,
  ): Promise<Output<typeof engine.listWorkflows>> {
    const after = cursor === undefined ? '' : afterOf(cursor, (text) => WorkflowId.safeParse(text).success);
    const found = await this.workflows.list(caller, after, limit + 1);
    const workflows = found.slice(0, limit);
    const last = workflows.at(-1);
    return {
      workflows: [...workflows],
      ...(found.length > limit && last && { nextCursor: cursorAfter(last.workflowId) }),
    };
  }

  @Handle(engine.listExposures)
  async exposures(
    @From() caller: Caller,
    @Payload() { mount, knownVersion }: Parsed<typeof engine.listExposures>,
  ): Promise<Output<typeof engine.listExposures>> {
    const { version, exposures } = await this.workflows.exposures(caller, mount, knownVersion);
    return { version, ...(exposures && { exposures: [...exposures] }) };
  }
}
