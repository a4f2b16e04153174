import { defineConfig } from 'prisma/config';

export default defineConfig({
  schema: 'prisma/schema.prisma',
  migrations: { path: 'prisma/migrations' },
  // Only `tools/migrate.mjs` and a networked developer's own Prisma CLI ever read this.
  datasource: { url: process.env['DATABASE_URL'] ?? 'postgresql://unset' },
});
