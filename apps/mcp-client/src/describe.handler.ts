import { Handle } from '@isthmus/messaging';
import { type Description, mcpClient } from '@isthmus/protocol';
import { Controller } from '@nestjs/common';

/** Our half of the `mcp` family: versions and addresses of the server mount are for mcp-server to say. (authz.md §6, §7.1) */
const DESCRIPTION: Description = {
  service: 'mcp-client',
  version: '1.0.0',
  discovery: {
    mcp: { supported: true },
    mcpClient: { supported: true, transports: ['streamable-http'], trustBoundary: 'untrusted' },
  },
};

@Controller()
export class DescribeHandler {
  @Handle(mcpClient.describe)
  describe(): Description {
    return DESCRIPTION;
  }
}
