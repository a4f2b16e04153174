import { Injectable } from '@nestjs/common';
import { inTransaction } from '@isthmus/db';
import { type Exposure, WorkflowDefinition, WopError } from '@isthmus/protocol';
import { LRUCache } from 'lru-cache';
import type pg from 'pg';
import { compile, type Graph } from '../core/graph.js';
import { exposuresOf } from '../nodes/index.js';
import { isSqlState } from './run-log.js';

export type WorkflowHead = { readonly workflowId: string; readonly revision: number; readonly name: string; readonly updatedAt: string };
type Place = { readonly tenant: string; readonly workspace: string };

/** The mount every exposure without another one is on. */
export const DEFAULT_MOUNT = 'default';

/** Definitions by revision, what they expose, and their compiled graphs. Revisions never change, so graphs are kept. */
@Injectable()
export class Workflows {
  private readonly graphs = new LRUCache<string, Graph>({ max: 2_000 });

  constructor(private readonly pool: pg.Pool) {}

  /** Adds the next revision and replaces what the workflow exposes, in one transaction. */
  async put(
    place: Place,
    principal: string,
    definition: WorkflowDefinition,
    at: Date,
  ): Promise<WorkflowHead & { created: boolean; exposes: boolean }> {
    const { tenant, workspace } = place;
    const exposures = exposuresOf(definition);
    return inTransaction(this.pool, tenant, async (client) => {
      // Locks the workflow's row: two registrations get two revisions.
      const { rows } = await client.query<{ revision: number }>(
        `insert into engine.workflows as w (tenant, workspace, workflow_id, revision, name, updated_at) values ($1,$2,$3,1,$4,$5)
         on conflict (tenant, workspace, workflow_id) do update set revision = w.revision + 1, name = excluded.name, updated_at = excluded.updated_at
         returning revision`,
        [tenant, workspace, definition.id, definition.name, at],
      );
      const revision = rows[0]?.revision ?? 1;
      await client.query(
        'insert into engine.workflow_revisions (tenant, workspace, workflow_id, revision, definition, created_by, created_at) values ($1,$2,$3,$4,$5,$6,$7)',
        [tenant, workspace, definition.id, revision, JSON.stringify(definition), principal, at],
      );
      const dropped = await client.query('delete from engine.exposures where tenant = $1 and workspace = $2 and workflow_id = $3', [
        tenant,
        workspace,
        definition.id,
      ]);
      for (const exposure of exposures) await expose(client, place, exposure);
      const exposes = exposures.length > 0 || (dropped.rowCount ?? 0) > 0;
      if (exposes) {
        await client.query(
          `insert into engine.exposure_versions as v (tenant, mount, version) values ($1,$2,1) on conflict (tenant, mount) do update set version = v.version + 1`,
          [tenant, DEFAULT_MOUNT],
        );
      }
      return { workflowId: definition.id, revision, name: definition.name, updatedAt: at.toISOString(), created: revision === 1, exposes };
    });
  }

  async get({ tenant, workspace }: Place, workflowId: string): Promise<(WorkflowHead & { definition: WorkflowDefinition }) | undefined> {
    return inTransaction(this.pool, tenant, async (client) => {
      const { rows } = await client.query<WorkflowHead & { definition: WorkflowDefinition; updatedAt: Date }>(
        `select w.workflow_id as "workflowId", w.revision, w.name, w.updated_at as "updatedAt", r.definition
         from engine.workflows w join engine.workflow_revisions r using (tenant, workspace, workflow_id, revision)
         where w.tenant = $1 and w.workspace = $2 and w.workflow_id = $3`,
        [tenant, workspace, workflowId],
      );
      const [row] = rows;
      return row && { ...row, updatedAt: new Date(row.updatedAt).toISOString() };
    });
  }

  /** By id, ascending, after `after`. */
  async list({ tenant, workspace }: Place, after: string, limit: number): Promise<readonly WorkflowHead[]> {
    return inTransaction(this.pool, tenant, async (client) => {
      const { rows } = await client.query<WorkflowHead & { updatedAt: Date }>(
        `select workflow_id as "workflowId", revision, name, updated_at as "updatedAt" from engine.workflows
         where tenant = $1 and workspace = $2 and workflow_id > $3 order by workflow_id limit $4`,
        [tenant, workspace, after, limit],
      );
      return rows.map((row) => ({ ...row, updatedAt: new Date(row.updatedAt).toISOString() }));
    });
  }

  /** The newest revision known here; `create_run` says when there is a newer one. */
  async latest(place: Place, workflowId: string, atLeast = 0): Promise<{ revision: number; graph: Graph } | undefined> {
    const known = this.newest.get(`${place.tenant}/${place.workspace}/${workflowId}`);
    if (known !== undefined && known >= atLeast) return { revision: known, graph: await this.graph(place, workflowId, known) };
    const found = await this.get(place, workflowId);
    if (!found) return undefined;
    this.newest.set(`${place.tenant}/${place.workspace}/${workflowId}`, found.revision);
    return { revision: found.revision, graph: this.remember(place, found.revision, found.definition) };
  }
  private readonly newest = new LRUCache<string, number>({ max: 10_000 });

  /** The graph a run started with. */
  async graph({ tenant, workspace }: Place, workflowId: string, revision: number): Promise<Graph> {
    const known = this.graphs.get(`${tenant}/${workspace}/${workflowId}/${revision}`);
    if (known) return known;
    const definition = await inTransaction(this.pool, tenant, async (client) => {
      const { rows } = await client.query<{ definition: unknown }>(
        'select definition from engine.workflow_revisions where tenant = $1 and workspace = $2 and workflow_id = $3 and revision = $4',
        [tenant, workspace, workflowId, revision],
      );
      return rows[0]?.definition;
    });
    return this.remember({ tenant, workspace }, revision, WorkflowDefinition.parse(definition));
  }

  private remember({ tenant, workspace }: Place, revision: number, definition: WorkflowDefinition): Graph {
    const graph = compile(definition);
    this.graphs.set(`${tenant}/${workspace}/${definition.id}/${revision}`, graph);
    return graph;
  }

  /** Rides exposure_versions_pkey on every request; the entries are read only when the asker does not hold this version. */
  async exposures(
    { tenant, workspace }: Place,
    mount: string,
    knownVersion: string | undefined,
  ): Promise<{ version: string; exposures?: readonly Exposure[] }> {
    const { rows } = await this.pool.query<{ version: string; exposures: readonly Exposure[] | null }>({
      name: 'list_exposures',
      text: 'select version, exposures from engine.list_exposures($1,$2,$3,$4)',
      values: [tenant, workspace, mount, knownVersion ?? null],
    });
    const [row] = rows;
    return { version: row?.version ?? '0', ...(row?.exposures && { exposures: row.exposures }) };
  }
}

async function expose(
  client: pg.PoolClient,
  { tenant, workspace }: Place,
  { kind, name, workflowId, nodeId, manifest }: Exposure,
): Promise<void> {
  try {
    await client.query(
      'insert into engine.exposures (tenant, mount, kind, name, workspace, workflow_id, node_id, manifest) values ($1,$2,$3,$4,$5,$6,$7,$8)',
      [tenant, DEFAULT_MOUNT, kind, name, workspace, workflowId, nodeId, JSON.stringify(manifest)],
    );
  } catch (error) {
    if (!isSqlState(error, '23505')) throw error;
    throw new WopError(
      'validation_error',
      `Node "${nodeId}" exposes a ${kind} named "${name}", which another workflow of this tenant exposes already. Names are unique per mount.`,
      { nodeId },
    );
  }
}
