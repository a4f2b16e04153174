import { Inject, Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import { CONFIG, Health } from '@isthmus/chassis';
import { Nats, serveExchanges } from '@isthmus/messaging';
import type { Config } from './config.js';
import { McpEndpoint } from './mcp-endpoint.js';
import { StateKeys } from './state-keys.js';

/** Takes the exchanges of this deployment's pools, until the process is about to end. */
@Injectable()
export class ExchangeServer implements OnApplicationBootstrap {
  constructor(
    private readonly nats: Nats,
    private readonly health: Health,
    private readonly endpoint: McpEndpoint,
    private readonly keys: StateKeys,
    @Inject(CONFIG) private readonly config: Config,
  ) {}

  async onApplicationBootstrap(): Promise<void> {
    await this.keys.newest();
    const connection = await this.nats.tunnel();
    const options = { maxInFlight: this.config.MAX_IN_FLIGHT };
    for (const pool of this.config.MCP_SERVER_POOLS) {
      const server = await serveExchanges(connection, pool, (request, context) => this.endpoint.serve(request, context), options);
      this.health.onDrain(() => server.drain(this.config.DRAIN_MS));
    }
  }
}
