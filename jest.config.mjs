import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';

const root = import.meta.dirname;
const swc = JSON.parse(readFileSync(`${root}/.swcrc`, 'utf8'));

// Full ESM: run through `npm test`, which passes --experimental-vm-modules to Node.
const base = {
  testEnvironment: 'node',
  extensionsToTreatAsEsm: ['.ts'],
  // Workspace packages resolve to their TypeScript sources, so that tests never need a build.
  testEnvironmentOptions: { customExportConditions: ['@isthmus/source', 'node', 'node-addons'] },
  transform: { '^.+\\.ts$': ['@swc/jest', { ...swc, swcrc: false }] },
  moduleNameMapper: { '^(\\.{1,2}/.*)\\.js$': '$1' },
  setupFiles: ['reflect-metadata'],
};

/** One project per app and lib: `x.spec.ts` needs nothing, `x.int.spec.ts` finds Postgres and NATS in TEST_DATABASE_URL and TEST_NATS_URL. */
const packages = ['libs', 'apps'].flatMap((folder) =>
  readdirSync(`${root}/${folder}`)
    .filter((name) => existsSync(`${root}/${folder}/${name}/package.json`))
    .map((name) => ({ ...base, displayName: name, rootDir: `${root}/${folder}/${name}`, testMatch: ['<rootDir>/src/**/*.spec.ts'] })),
);

/** @type {import('jest').Config} */
export default {
  testTimeout: 15_000,
  // In processes of their own even on two cores: what a test file leaves running ends with it, and a NATS room is per worker.
  maxWorkers: Math.max(2, Math.floor(availableParallelism() / 2)),
  projects: [
    ...packages,
    {
      ...base,
      displayName: 'tools',
      rootDir: `${root}/tools`,
      testMatch: ['<rootDir>/**/*.spec.mjs'],
      testPathIgnorePatterns: ['\\.e2e\\.'],
    },
    {
      ...base,
      displayName: 'e2e',
      rootDir: root,
      roots: ['<rootDir>/e2e', '<rootDir>/tools'],
      testMatch: ['<rootDir>/e2e/src/**/*.e2e.spec.ts', '<rootDir>/tools/**/*.e2e.spec.mjs'],
    },
  ],
};
