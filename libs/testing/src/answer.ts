import { type Contract, HEADERS, isWopError, type Output, type Parsed, WopError } from '@isthmus/protocol';
import type { Msg, NatsConnection } from '@nats-io/transport-node';

/** What a fake service sees besides the input. */
export type Asked = { readonly passport: string | undefined; header(name: string): string | undefined };

type Envelope = { readonly id?: string; readonly data?: unknown };

/**
 * Answers `contract` as its service would, so that an app under test finds the services it calls. Input and output are parsed:
 * a fake cannot drift from the contract. @returns stops it
 */
export function answer<C extends Contract>(
  connection: NatsConnection,
  contract: C,
  handler: (input: Parsed<C>, asked: Asked) => Promise<Output<C>> | Output<C>,
): () => void {
  const subscription = connection.subscribe(contract.subject, {
    queue: contract.service,
    callback: (error, message) => {
      if (!error) void reply(contract, message, handler);
    },
  });
  return () => subscription.unsubscribe();
}

async function reply<C extends Contract>(
  contract: C,
  message: Msg,
  handler: (input: Parsed<C>, asked: Asked) => Promise<Output<C>> | Output<C>,
): Promise<void> {
  const { id, data } = message.json<Envelope>();
  const header = (name: string) => message.headers?.get(name) || undefined;
  try {
    const input = contract.input.parse(data) as Parsed<C>;
    const output = contract.output.parse(await handler(input, { passport: header(HEADERS.passport), header }));
    message.respond(JSON.stringify({ id, response: output, isDisposed: true }));
  } catch (error) {
    const known = isWopError(error) ? error : new WopError('internal_error', `The fake of ${contract.subject} failed: ${String(error)}`);
    message.respond(JSON.stringify({ id, err: known.toEnvelope(), isDisposed: true }));
  }
}
