import type { Caller } from '@isthmus/protocol';
import { createParamDecorator, type ExecutionContext } from '@nestjs/common';

/** What the interceptor found out about a message, kept on its Nest context. */
export type MessageFacts = { readonly caller?: Caller; readonly passport?: string };
const FACTS = Symbol('message facts');

export const factsOf = (context: object): MessageFacts => (context as { [FACTS]?: MessageFacts })[FACTS] ?? {};
export const setFacts = (context: object, facts: MessageFacts): void => {
  (context as { [FACTS]?: MessageFacts })[FACTS] = facts;
};

/** Who is asking. Only for contracts that need a passport. */
export const From = createParamDecorator((_: unknown, context: ExecutionContext) => factsOf(context.switchToRpc().getContext()).caller);

/** The asker's passport itself, to pass on to another service. */
export const FromPassport = createParamDecorator(
  (_: unknown, context: ExecutionContext) => factsOf(context.switchToRpc().getContext()).passport,
);
