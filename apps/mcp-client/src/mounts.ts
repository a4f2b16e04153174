import { Injectable } from '@nestjs/common';
import { Clock } from '@isthmus/chassis';
import { asTenant, Db, type Prisma } from '@isthmus/db';
import { type Caller, Mount, type MountSpec, type mcpClient, type Output, type Parsed, ServerId, WopError } from '@isthmus/protocol';

type Row = { serverId: string; spec: Prisma.JsonValue; createdAt: Date; updatedAt: Date };

/** The remote servers a workspace has registered. Row-level security holds the tenant, every key names the workspace. */
@Injectable()
export class Mounts {
  constructor(
    private readonly db: Db,
    private readonly clock: Clock,
  ) {}

  /** Registers or replaces; of two at once one creates and the other replaces. */
  async put(caller: Caller, serverId: string, spec: MountSpec): Promise<{ mount: Mount; created: boolean }> {
    const { tenant, workspace } = caller;
    const now = this.clock.date();
    return asTenant(this.db, tenant, async (tx) => {
      const row = { tenant, workspace, serverId, spec: spec as Prisma.InputJsonObject, createdAt: now, updatedAt: now };
      const { count } = await tx.mcpMount.createMany({ data: [row], skipDuplicates: true });
      if (count === 1) return { mount: mountOf(row as Row), created: true };
      const replaced = await tx.mcpMount.update({
        where: { tenant_workspace_serverId: { tenant, workspace, serverId } },
        data: { spec: row.spec, updatedAt: now },
      });
      return { mount: mountOf(replaced), created: false };
    });
  }

  async find({ tenant, workspace }: Caller, serverId: string): Promise<Mount | undefined> {
    const where = { tenant_workspace_serverId: { tenant, workspace, serverId } };
    const row = await asTenant(this.db, tenant, (tx) => tx.mcpMount.findUnique({ where }));
    return row ? mountOf(row) : undefined;
  }

  /** By id, from the one after the cursor, which is an id. */
  async list(
    { tenant, workspace }: Caller,
    { cursor, limit }: Parsed<typeof mcpClient.listMounts>,
  ): Promise<Output<typeof mcpClient.listMounts>> {
    if (cursor !== undefined && !ServerId.safeParse(cursor).success)
      throw new WopError('validation_error', 'The cursor is not one that this list gave out.', { path: 'cursor' });
    const where = { tenant, workspace, ...(cursor !== undefined && { serverId: { gt: cursor } }) };
    const rows = await asTenant(this.db, tenant, (tx) => tx.mcpMount.findMany({ where, orderBy: { serverId: 'asc' }, take: limit + 1 }));
    const mounts = rows.slice(0, limit).map(mountOf);
    const last = mounts.at(-1);
    return { mounts, ...(rows.length > limit && last && { nextCursor: last.serverId }) };
  }

  async delete({ tenant, workspace }: Caller, serverId: string): Promise<boolean> {
    const { count } = await asTenant(this.db, tenant, (tx) => tx.mcpMount.deleteMany({ where: { tenant, workspace, serverId } }));
    return count > 0;
  }
}

const mountOf = ({ serverId, spec, createdAt, updatedAt }: Row): Mount =>
  Mount.parse({ ...(spec as object), serverId, createdAt: createdAt.toISOString(), updatedAt: updatedAt.toISOString() });

export const mountNotFound = (): WopError => new WopError('not_found', 'There is no remote MCP server of that id in this workspace.');
