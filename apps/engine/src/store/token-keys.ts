import { randomBytes } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import type pg from 'pg';

/** The key that signs interrupt tokens, kept in Postgres so that engines and restarts share it. The first engine makes it. */
@Injectable()
export class TokenKeys {
  private key: Promise<Buffer> | undefined;

  constructor(private readonly pool: pg.Pool) {}

  signing(): Promise<Buffer> {
    this.key ??= this.load().catch((error: unknown) => {
      this.key = undefined;
      throw error;
    });
    return this.key;
  }

  private async load(): Promise<Buffer> {
    const secret = randomBytes(32).toString('base64url');
    await this.pool.query(
      'insert into engine.token_keys (kid, slot, secret, created_at) values ($1, 1, $2, clock_timestamp()) on conflict do nothing',
      [randomBytes(6).toString('base64url'), secret],
    );
    const { rows } = await this.pool.query<{ secret: string }>('select secret from engine.token_keys where slot = 1');
    if (!rows[0]) throw new Error('The key of interrupt tokens was not stored.');
    return Buffer.from(rows[0].secret, 'base64url');
  }
}
