import { type DynamicModule, Injectable, Module, type OnModuleDestroy } from '@nestjs/common';
import { PrismaPg } from '@prisma/adapter-pg';
import { PrismaClient } from './generated/client.js';

/** Prisma for low-rate reads and writes. Transactions wait long enough for a busy machine (Prisma's defaults fail with P2028). */
@Injectable()
export class Db extends PrismaClient implements OnModuleDestroy {
  constructor(databaseUrl: string, max: number) {
    super({ adapter: new PrismaPg({ connectionString: databaseUrl, max }), transactionOptions: { maxWait: 10_000, timeout: 15_000 } });
  }
  async onModuleDestroy(): Promise<void> {
    await this.$disconnect();
  }
}

@Module({})
export class DbModule {
  /** @param max connections of this process at most */
  static forRoot(databaseUrl: string, max = 5): DynamicModule {
    return { module: DbModule, global: true, providers: [{ provide: Db, useFactory: () => new Db(databaseUrl, max) }], exports: [Db] };
  }
}
