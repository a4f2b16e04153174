import { Discover } from './discover.js';
import { ToolsCall } from './tools-call.js';
import { ToolsList } from './tools-list.js';

/** Every MCP method this mount answers; any other is 404/-32601. */
export const METHODS = [Discover, ToolsList, ToolsCall];
