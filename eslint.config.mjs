// Who may import whom, and who may read the clock, the environment or the network (ARCHITECTURE.md). The rest is TypeScript's and Biome's.
// tools/eslint.spec.mjs breaks every rule once.
import { builtinModules } from 'node:module';
import nx from '@nx/eslint-plugin';
import tseslint from 'typescript-eslint';

const APPS = ['gateway', 'engine', 'mcp-client', 'mcp-server', 'authz'];
const SPECS = ['**/*.spec.ts', '**/*.suite.ts'];

/** Imports that are forbidden somewhere: a pattern over the specifier, and the reason people read. */
const ban = {
  apps: {
    regex: `^@isthmus/(${APPS.join('|')})(/|$)|(^|/)apps/|^(\\.\\./)+(${APPS.join('|')})/src/`,
    message: 'An app never imports an app: use its contract over NATS.',
  },
  testing: { regex: '^@isthmus/testing(/|$)', message: 'Only specs and e2e import libs/testing.' },
  prisma: { regex: '^@prisma/|/generated(/|$)', message: 'Only libs/db makes a Prisma client.' },
  nats: { regex: '^@nats-io/|^nats$', message: 'Only libs/messaging knows NATS.' },
  node: { regex: `^node:|^(${builtinModules.filter((name) => !name.startsWith('_')).join('|')})(/|$)`, message: 'No Node built-ins here.' },
  nest: { regex: '^@nestjs/|^rxjs(/|$)|^reflect-metadata$', message: 'No Nest here.' },
  env: { name: 'node:process', importNames: ['env'], message: 'Only libs/chassis/src/config.ts reads the environment.' },
  world: {
    regex:
      '^(pg|undici|uuid|jose|pino|fastify|@node-rs/.*|@opentelemetry/.*|@modelcontextprotocol/.*|@isthmus/(db|messaging|chassis)(/.*)?)$',
    message: 'A node sees the world only through ctx.',
  },
  engineShell: { regex: '^\\.\\.(/\\.\\.)*/(store|driver|handlers|ai)(/|$)', message: 'A node sees the world only through ctx.' },
  allBut: (allowed, message) => ({ regex: `^(?!\\.{1,2}/|(${allowed.join('|')})(/|$))`, message }),
  above: (levels, message) => ({ regex: `^(\\.\\./){${levels}}`, message }),
};

const imports = (...bans) => ['error', { paths: bans.filter((entry) => entry.name), patterns: bans.filter((entry) => entry.regex) }];
const everywhere = [ban.apps, ban.env];

/** Syntax that reaches for the world. */
const reach = {
  env: {
    selector: "MemberExpression[object.name='process']:matches([property.name='env'], [property.value='env'])",
    message: 'Only libs/chassis/src/config.ts reads the environment.',
  },
  now: {
    selector:
      "CallExpression[callee.object.name='Date'][callee.property.name='now'], NewExpression[callee.name='Date'][arguments.length=0], CallExpression[callee.name='Date']",
    message: 'No clock here: be given the time.',
  },
  date: { selector: "Identifier[name='Date']", message: 'No clock here: be given the time.' },
  random: { selector: "MemberExpression[object.name='Math'][property.name='random']", message: 'No randomness here: be given the value.' },
};

const timersAndNetwork = [
  'setTimeout',
  'setInterval',
  'setImmediate',
  'queueMicrotask',
  'fetch',
  'WebSocket',
  'process',
  'crypto',
  'performance',
];
const noWorld = ['error', ...timersAndNetwork.map((name) => ({ name, message: 'Pure code: no timers, no network, no process.' }))];

/** One zone of the tree: what it may not import, which syntax and which globals it may not use. */
const zone = (files, { bans, selectors = [reach.env], globals, ignores = SPECS }) => ({
  files,
  ignores,
  rules: {
    'no-restricted-imports': imports(...bans),
    'no-restricted-syntax': selectors.length ? ['error', ...selectors] : 'off',
    ...(globals && { 'no-restricted-globals': globals }),
  },
});

const PURE_PACKAGES = ['@isthmus/protocol', 're2js', '@marcbachmann/cel-js'];
const CORE = 'The core imports protocol, itself and pure libraries only.';
const core = (files, levels) =>
  zone(files, {
    bans: [...everywhere, ban.allBut(PURE_PACKAGES, CORE), ban.above(levels, CORE)],
    selectors: [reach.env, reach.date, reach.random],
    globals: noWorld,
  });

export default tseslint.config(
  { ignores: ['**/dist', '**/dist.*', '**/generated', '**/coverage', '.dev', '.nx', '**/*.d.mts', 'prisma.config.ts'] },
  {
    files: ['**/*.ts'],
    languageOptions: {
      parser: tseslint.parser,
      parserOptions: { sourceType: 'module', projectService: true, tsconfigRootDir: import.meta.dirname },
    },
    plugins: { '@typescript-eslint': tseslint.plugin },
    rules: {
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_', varsIgnorePattern: '^_', ignoreRestSiblings: true }],
      '@typescript-eslint/no-explicit-any': 'error',
      // Every started thing has an owner.
      '@typescript-eslint/no-floating-promises': 'error',
      '@typescript-eslint/no-misused-promises': ['error', { checksVoidReturn: { arguments: false, attributes: false } }],
      '@typescript-eslint/await-thenable': 'error',
    },
  },
  {
    files: ['apps/**/*.ts', 'libs/**/*.ts', 'e2e/**/*.ts'],
    plugins: { '@nx': nx },
    rules: {
      '@nx/enforce-module-boundaries': [
        'error',
        {
          enforceBuildableLibDependency: false,
          // tools is no package: it must run before anything is installed.
          allow: ['../../tools/**', '../../../tools/**'],
          // Specs of a lib use libs/testing, which stands on that lib; nothing that is built does.
          ignoredCircularDependencies: ['protocol', 'chassis', 'db', 'messaging'].map((lib) => [`@isthmus/${lib}`, '@isthmus/testing']),
          depConstraints: [
            { sourceTag: 'type:app', onlyDependOnLibsWithTags: ['type:lib'] },
            { sourceTag: 'type:e2e', onlyDependOnLibsWithTags: ['type:lib'] },
            { sourceTag: 'lib:protocol', onlyDependOnLibsWithTags: [] },
            { sourceTag: 'lib:chassis', onlyDependOnLibsWithTags: ['lib:protocol', 'lib:testing'] },
            { sourceTag: 'lib:schemas', onlyDependOnLibsWithTags: ['lib:protocol'] },
            { sourceTag: 'lib:db', onlyDependOnLibsWithTags: ['lib:protocol', 'lib:chassis', 'lib:testing'] },
            { sourceTag: 'lib:egress', onlyDependOnLibsWithTags: ['lib:protocol', 'lib:chassis', 'lib:testing'] },
            { sourceTag: 'lib:messaging', onlyDependOnLibsWithTags: ['lib:protocol', 'lib:chassis', 'lib:testing'] },
            { sourceTag: 'lib:testing', onlyDependOnLibsWithTags: ['type:lib'] },
          ],
        },
      ],
    },
  },

  // Later zones replace earlier ones: each lists all it forbids.
  zone(['apps/**/*.ts', 'libs/**/*.ts'], { bans: [...everywhere, ban.testing, ban.prisma, ban.nats] }),
  zone(SPECS, { bans: [ban.apps, ban.prisma], selectors: [], ignores: [] }),
  zone(['libs/db/**/*.ts'], { bans: [...everywhere, ban.testing, ban.nats] }),
  zone(['libs/messaging/**/*.ts'], { bans: [...everywhere, ban.testing, ban.prisma] }),
  zone(['libs/chassis/src/config.ts'], { bans: [ban.apps, ban.testing, ban.prisma, ban.nats], selectors: [] }),
  zone(['libs/testing/**/*.ts', 'e2e/**/*.ts'], { bans: [ban.apps, ban.prisma], selectors: [], ignores: [] }),
  zone(['libs/protocol/src/**/*.ts'], {
    bans: [...everywhere, ban.allBut(['zod'], 'Protocol is words: zod only.')],
    selectors: [reach.env, reach.now, reach.random],
    globals: noWorld,
  }),
  zone(['apps/engine/src/nodes/**/*.ts'], {
    bans: [...everywhere, ban.testing, ban.prisma, ban.nats, ban.node, ban.nest, ban.world, ban.engineShell],
    selectors: [reach.env, reach.now, reach.random],
    globals: noWorld,
  }),
  core(['apps/engine/src/core/*.ts'], 1),
  core(['apps/engine/src/core/*/*.ts'], 2),
  core(['apps/engine/src/core/*/*/**/*.ts'], 3),
);
