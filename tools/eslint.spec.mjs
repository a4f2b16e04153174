// Every import rule of the architecture, broken once.
import { ESLint } from 'eslint';
import { root } from './paths.mjs';

// Snippets lie in no tsconfig: rules that need types are off here.
const eslint = new ESLint({
  cwd: root,
  overrideConfig: {
    files: ['**/*.ts'],
    languageOptions: { parserOptions: { projectService: false } },
    rules: {
      '@typescript-eslint/no-floating-promises': 'off',
      '@typescript-eslint/no-misused-promises': 'off',
      '@typescript-eslint/await-thenable': 'off',
      '@typescript-eslint/no-unused-vars': 'off',
      '@nx/enforce-module-boundaries': 'off',
    },
  },
});

const complaints = async (file, code) => {
  const [{ messages }] = await eslint.lintText(code, { filePath: `${root}/${file}` });
  return messages.map(({ ruleId, message }) => `${ruleId}: ${message}`);
};

const refused = [
  // protocol is words
  ['libs/protocol/src/x.ts', `import { Module } from '@nestjs/common';`],
  ['libs/protocol/src/x.ts', `import { createHash } from 'node:crypto';`],
  ['libs/protocol/src/x.ts', `import { readFileSync } from 'fs';`],
  ['libs/protocol/src/x.ts', `import pg from 'pg';`],
  ['libs/protocol/src/contracts/x.ts', `import { x } from '@isthmus/chassis';`],
  ['libs/protocol/src/x.ts', `export const at = Date.now();`],
  ['libs/protocol/src/x.ts', `export const at = new Date();`],
  ['libs/protocol/src/x.ts', `export const n = Math.random();`],
  ['libs/protocol/src/x.ts', `setTimeout(() => {}, 1);`],

  // apps never import apps
  ['apps/gateway/src/x.ts', `import { decide } from '@isthmus/engine';`],
  ['apps/gateway/src/x.ts', `import { decide } from '../../../apps/engine/src/core/decide.js';`],
  ['apps/gateway/src/x.ts', `import { decide } from '../../engine/src/core/decide.js';`],
  ['apps/gateway/src/a/x.spec.ts', `import { decide } from '../../../engine/src/core/decide.js';`],
  ['libs/messaging/src/x.ts', `import { decide } from '@isthmus/engine';`],

  // the core is pure
  ['apps/engine/src/core/x.ts', `import { Injectable } from '@nestjs/common';`],
  ['apps/engine/src/core/x.ts', `import { PrismaClient } from '@isthmus/db';`],
  ['apps/engine/src/core/x.ts', `import pg from 'pg';`],
  ['apps/engine/src/core/x.ts', `import { randomUUID } from 'node:crypto';`],
  ['apps/engine/src/core/x.ts', `import { v4 } from 'uuid';`],
  ['apps/engine/src/core/x.ts', `import { append } from '../store/run-log.js';`],
  ['apps/engine/src/core/deep/x.ts', `import { append } from '../../store/run-log.js';`],
  ['apps/engine/src/core/x.ts', `export const at = new Date(0);`],
  ['apps/engine/src/core/x.ts', `export const at = Date.parse('2026-01-01');`],
  ['apps/engine/src/core/x.ts', `export const n = Math.random();`],
  ['apps/engine/src/core/x.ts', `setTimeout(() => {}, 1);`],
  ['apps/engine/src/core/x.ts', `export const v = process.version;`],

  // nodes see the world through ctx
  ['apps/engine/src/nodes/x.ts', `import { request } from 'node:http';`],
  ['apps/engine/src/nodes/x.ts', `import pg from 'pg';`],
  ['apps/engine/src/nodes/x.ts', `import { connect } from '@nats-io/transport-node';`],
  ['apps/engine/src/nodes/x.ts', `import { Bus } from '@isthmus/messaging';`],
  ['apps/engine/src/nodes/mcp/x.ts', `import { Client } from '@modelcontextprotocol/client';`],
  ['apps/engine/src/nodes/x.ts', `import { append } from '../store/run-log.js';`],
  ['apps/engine/src/nodes/mcp/x.ts', `import { drive } from '../../driver/driver.js';`],
  ['apps/engine/src/nodes/x.ts', `export const at = Date.now();`],
  ['apps/engine/src/nodes/x.ts', `await fetch('http://example.com');`],

  // one place each
  ['apps/engine/src/x.ts', `export const url = process.env.DATABASE_URL;`],
  ['apps/engine/src/x.ts', `export const url = process['env'].DATABASE_URL;`],
  ['apps/engine/src/x.ts', `import { env } from 'node:process';`],
  ['libs/chassis/src/x.ts', `export const url = process.env.DATABASE_URL;`],
  ['libs/chassis/src/x.ts', `import { PrismaClient } from '@prisma/client';`],
  ['apps/authz/src/x.ts', `import { PrismaPg } from '@prisma/adapter-pg';`],
  ['apps/authz/src/x.ts', `import { PrismaClient } from '../../../libs/db/src/generated/client.js';`],
  ['apps/mcp-server/src/x.ts', `import { connect } from '@nats-io/transport-node';`],
  ['libs/db/src/x.ts', `import { connect } from '@nats-io/transport-node';`],
  ['apps/gateway/src/x.ts', `import { make } from '@isthmus/testing';`],
  ['libs/messaging/src/x.ts', `import { make } from '@isthmus/testing';`],
];

const allowed = [
  ['libs/protocol/src/x.ts', `import { z } from 'zod';\nimport { y } from './y.js';\nexport const at = (text: string) => new Date(text);`],
  [
    'apps/engine/src/core/x.ts',
    `import { RunEvent } from '@isthmus/protocol';\nimport { RE2JS } from 're2js';\nimport { y } from './y.js';`,
  ],
  ['apps/engine/src/core/deep/x.ts', `import { y } from '../y.js';`],
  ['apps/engine/src/core/x.spec.ts', `import fc from 'fast-check';\nimport { make } from '@isthmus/testing';`],
  ['apps/engine/src/nodes/x.ts', `import { z } from 'zod';\nimport { y } from '../core/y.js';`],
  ['libs/chassis/src/config.ts', `export const url = process.env.DATABASE_URL;`],
  ['libs/db/src/client.ts', `import { PrismaPg } from '@prisma/adapter-pg';\nimport { PrismaClient } from './generated/client.js';`],
  ['libs/messaging/src/nats.ts', `import { connect } from '@nats-io/transport-node';`],
  ['apps/gateway/src/x.spec.ts', `import { make } from '@isthmus/testing';\nexport const url = process.env.TEST_NATS_URL;`],
];

describe('import rules', () => {
  it.each(refused)('refuse in %s: %s', async (file, code) => {
    expect(await complaints(file, code)).toEqual([expect.stringMatching(/^no-restricted-(imports|syntax|globals): /)]);
  });

  it.each(allowed)('allow in %s: %s', async (file, code) => {
    expect(await complaints(file, code)).toEqual([]);
  });

  it('include the boundaries of the project graph', async () => {
    const strict = new ESLint({ cwd: root });
    const config = await strict.calculateConfigForFile(`${root}/apps/gateway/src/main.ts`);
    expect(config.rules['@nx/enforce-module-boundaries'][0]).toBe(2);
  });
});
