import { Controller, Inject, Req, Res } from '@nestjs/common';
import { CONFIG } from '@isthmus/chassis';
import { ROUTES } from '@isthmus/protocol';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Config } from '../config.js';
import { Route } from '../http/route.decorator.js';
import { type CachedDocument, cachedDocument, sendDocument } from './cached-document.js';
import { Discovery } from './discovery.js';
import { openApi } from './openapi.js';

/** What the host says of itself, to anyone. */
@Controller()
export class DiscoveryController {
  private readonly openApi: CachedDocument;

  constructor(
    private readonly discovery: Discovery,
    @Inject(CONFIG) config: Config,
  ) {
    this.openApi = cachedDocument(openApi(config.PUBLIC_URL));
  }

  @Route(ROUTES.discovery)
  async getDiscovery(@Req() request: FastifyRequest, @Res() reply: FastifyReply): Promise<void> {
    await sendDocument(request, reply, this.discovery.document());
  }

  @Route(ROUTES.openapi)
  async getOpenApi(@Req() request: FastifyRequest, @Res() reply: FastifyReply): Promise<void> {
    await sendDocument(request, reply, this.openApi);
  }
}
