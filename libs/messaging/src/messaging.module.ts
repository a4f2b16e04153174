import { CONTRACTS, type Contract } from '@isthmus/protocol';
import { type DynamicModule, Inject, Module, type OnApplicationBootstrap } from '@nestjs/common';
import { AuditTrail } from './audit-trail.js';
import { Bell } from './bell.js';
import { Bus } from './bus.js';
import { ContractInterceptor } from './contract.interceptor.js';
import { handled } from './handled.js';
import { MESSAGING_OPTIONS, type MessagingOptions, Nats } from './nats.js';
import { Passports } from './passports.js';

const PROVIDERS = [Nats, Bus, Bell, Passports, AuditTrail, ContractInterceptor];

@Module({})
export class MessagingModule implements OnApplicationBootstrap {
  constructor(@Inject(MESSAGING_OPTIONS) private readonly options: MessagingOptions) {}

  static forRoot(options: MessagingOptions): DynamicModule {
    return {
      module: MessagingModule,
      global: true,
      providers: [{ provide: MESSAGING_OPTIONS, useValue: options }, ...PROVIDERS],
      exports: [MESSAGING_OPTIONS, ...PROVIDERS],
    };
  }

  /** A contract of this service that nobody handles would be a request that waits for its deadline: better not to boot. */
  onApplicationBootstrap(): void {
    const contracts: Record<string, Contract> = (CONTRACTS as Record<string, Record<string, Contract>>)[this.options.service] ?? {};
    const missing = Object.values(contracts).filter((contract) => !handled.has(contract.subject));
    if (missing.length > 0) throw new Error(`No handler for ${missing.map((contract) => contract.subject).join(', ')}`);
  }
}
