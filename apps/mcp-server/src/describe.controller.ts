import { Controller } from '@nestjs/common';
import { Handle } from '@isthmus/messaging';
import { type Description, mcpServer } from '@isthmus/protocol';
import { DESCRIPTION } from './describe.js';

@Controller()
export class DescribeController {
  @Handle(mcpServer.describe) describe(): Description {
    return DESCRIPTION;
  }
}
