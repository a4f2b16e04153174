import { pathToFileURL } from 'node:url';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { BaseConfig, ChassisModule, createLogger, loadConfig, NestLogger } from '@isthmus/chassis';
import { PostgresModule } from '@isthmus/db';
import { MessagingModule } from '@isthmus/messaging';
import { Scope } from '@isthmus/protocol';
import { z } from 'zod';
import { Directory } from './directory.js';
import { Revocations } from './revocations.js';

type Tools = { readonly directory: Directory; readonly revocations: Revocations };
type Command = { readonly usage: string; readonly run: (tools: Tools, args: readonly string[]) => Promise<string> };

/** What an operator does by hand. Each answers with a sentence, or throws one. */
const COMMANDS: Readonly<Record<string, Command>> = {
  'revoke-key': {
    usage: '<key id>',
    run: async ({ directory, revocations }, [keyId = '']) => {
      const known = await directory.key(keyId);
      if (!known) throw new Error('There is no key of that id.');
      const isNew = await revocations.revokeKey(known.tenant, keyId);
      return isNew ? `Key ${keyId} is revoked.` : `Key ${keyId} was revoked before.`;
    },
  },
  'set-scopes': {
    usage: '<tenant> <principal> <scope,scope,…>',
    run: async ({ directory, revocations }, [tenant = '', principal = '', list = '']) => {
      const scopes = z.array(Scope).parse(list.split(',').filter(Boolean));
      if (!(await directory.principal(tenant, principal))) throw new Error('There is no such principal.');
      const hasChanged = await revocations.setScopes(tenant, principal, scopes);
      return hasChanged ? `${principal} now holds ${scopes.join(', ') || 'no scope'}.` : `${principal} held these scopes already.`;
    },
  },
};

const Environment = z.object({ DATABASE_URL: z.string().min(1), NATS_URL: z.string().min(1) });

@Module({})
class AdminModule {}

/** Runs one command against a running host: what it changes is felt by the next request. */
export async function administer(environment: z.infer<typeof Environment>, [name = '', ...args]: readonly string[]): Promise<string> {
  const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  if (!command)
    throw new Error(
      `Usage:\n${Object.entries(COMMANDS)
        .map(([known, { usage }]) => `  admin.js ${known} ${usage}`)
        .join('\n')}`,
    );
  const config = BaseConfig.parse({ ...environment, SERVICE_NAME: 'authz', LOG_LEVEL: 'warn' });
  const context = await NestFactory.createApplicationContext(
    {
      module: AdminModule,
      imports: [
        ChassisModule.forRoot(config),
        MessagingModule.forRoot({ service: 'authz-admin', natsUrl: environment.NATS_URL, passports: false }),
        PostgresModule.forRoot(environment.DATABASE_URL, 1),
      ],
      providers: [Directory, Revocations],
    },
    {
      logger: new NestLogger(createLogger({ service: 'authz-admin', instance: config.INSTANCE_ID, level: config.LOG_LEVEL })),
      abortOnError: false,
    },
  );
  try {
    return await command.run({ directory: context.get(Directory), revocations: context.get(Revocations) }, args);
  } finally {
    await context.close();
  }
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  try {
    process.stdout.write(`${await administer(loadConfig(Environment), process.argv.slice(2))}\n`);
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : 'The command failed.'}\n`);
    process.exitCode = 1;
  }
}
