import type { Contract } from '@isthmus/protocol';
import { applyDecorators, SetMetadata, UseInterceptors } from '@nestjs/common';
import { MessagePattern } from '@nestjs/microservices';
import { ContractInterceptor } from './contract.interceptor.js';
import { CONTRACT, handled } from './handled.js';

/**
 * This method answers `contract`: its passport is checked, its scopes are held, its input is parsed, it runs in a span of the
 * asker's trace, and what it throws arrives as the envelope it is. Take the input with `@Payload()`, the caller with `@From()`.
 */
export function Handle(contract: Contract): MethodDecorator {
  handled.add(contract.subject);
  return applyDecorators(SetMetadata(CONTRACT, contract), MessagePattern(contract.subject), UseInterceptors(ContractInterceptor));
}
