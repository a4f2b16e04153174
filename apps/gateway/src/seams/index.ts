import { ConcurrentClaimSeamController } from './concurrent-claim.seam.controller.js';
import { IdentitySeamController } from './identity.seam.controller.js';
import { McpInvokeSeamController } from './mcp-invoke.seam.controller.js';
import { RunEventsSeamController } from './run-events.seam.controller.js';
import { Stage } from './stage.js';
import { ToolHooksSeamController } from './tool-hooks.seam.controller.js';
import { WorkflowsSeamController } from './workflows.seam.controller.js';

/** What is mounted where the gate is open, and nowhere else. */
export const SEAM_CONTROLLERS = [
  WorkflowsSeamController,
  McpInvokeSeamController,
  ConcurrentClaimSeamController,
  ToolHooksSeamController,
  IdentitySeamController,
  RunEventsSeamController,
];
export const SEAM_PROVIDERS = [Stage];
