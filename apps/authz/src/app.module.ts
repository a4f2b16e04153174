import { type DynamicModule, Module, type OnModuleInit } from '@nestjs/common';
import { ChassisModule, ClockKeeper, Health } from '@isthmus/chassis';
import { Postgres, PostgresModule } from '@isthmus/db';
import { Bell, MessagingModule } from '@isthmus/messaging';
import { BELLS } from '@isthmus/protocol';
import { AuditController } from './audit.controller.js';
import { AuditLog } from './audit-log.js';
import { AuditSealer } from './audit-sealer.js';
import { AuditSigner } from './audit-signer.js';
import { Authenticator } from './authenticator.js';
import { AuthzController } from './authz.controller.js';
import type { Config } from './config.js';
import { Delegation } from './delegation.js';
import { Directory } from './directory.js';
import { KeyActivity } from './key-activity.js';
import { PassportIssuer } from './passport-issuer.js';
import { Revocations } from './revocations.js';
import { SecretCheck } from './secret-check.js';
import { Argon2Hasher, SecretHasher } from './secret-hasher.js';
import { SigningKeys } from './signing-keys.js';

@Module({})
export class AppModule implements OnModuleInit {
  constructor(
    private readonly db: Postgres,
    private readonly bell: Bell,
    private readonly clock: ClockKeeper,
    private readonly health: Health,
    private readonly keys: SigningKeys,
    private readonly auditSigner: AuditSigner,
    private readonly secrets: SecretCheck,
  ) {}

  static forRoot(config: Config): DynamicModule {
    return {
      module: AppModule,
      imports: [
        ChassisModule.forRoot(config),
        // authz makes passports, and is shown one by who wants to read the audit log.
        MessagingModule.forRoot({ service: 'authz', natsUrl: config.NATS_URL, passports: true }),
        PostgresModule.forRoot(config.DATABASE_URL),
      ],
      controllers: [AuthzController, AuditController],
      providers: [
        { provide: SecretHasher, useClass: Argon2Hasher },
        AuditLog,
        AuditSealer,
        AuditSigner,
        Authenticator,
        Delegation,
        Directory,
        KeyActivity,
        PassportIssuer,
        Revocations,
        SecretCheck,
        SigningKeys,
      ],
    };
  }

  /** Whoever is told that we are ready finds a signing key, and a wrong key that costs what a right one does. */
  async onModuleInit(): Promise<void> {
    this.health.add('postgres', async () => void (await this.db.rows`select 1`));
    this.bell.listen(BELLS.revoked.all, (bell) => this.secrets.forget(bell));
    await this.clock.follow(() => this.#databaseTime());
    await Promise.all([this.keys.signing(), this.auditSigner.key(), this.secrets.nobodysHash()]);
  }

  async #databaseTime(): Promise<number> {
    const [row] = await this.db.rows<{ ms: number }>`select (extract(epoch from clock_timestamp()) * 1000)::float8 as ms`;
    return row?.ms ?? Number.NaN;
  }
}
