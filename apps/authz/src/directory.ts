import { Injectable } from '@nestjs/common';
import { Postgres } from '@isthmus/db';
import { SCOPES, type Scope } from '@isthmus/protocol';

/** A stored key with its holder, as of one snapshot. */
export type KnownKey = {
  readonly keyId: string;
  readonly tenant: string;
  readonly workspace: string;
  readonly principal: string;
  readonly scopes: readonly Scope[];
  readonly isDisabled: boolean;
  readonly secretHash: string;
  readonly expiresAt: number | undefined;
  readonly revokedAt: number | undefined;
  readonly lastUsedAt: number | undefined;
  /** Newest revocation epoch of the tenant. */
  readonly epoch: number;
};

export type KnownPrincipal = {
  readonly workspace: string;
  readonly scopes: readonly Scope[];
  readonly isDisabled: boolean;
  readonly epoch: number;
};

type KeyRow = {
  tenant: string;
  workspace: string;
  principal_id: string;
  scopes: string[];
  disabled: boolean;
  secret_hash: string;
  expires_at: Date | null;
  revoked_at: Date | null;
  last_used_at: Date | null;
  epoch: bigint;
};

/** Who there is. Reads only; each answer carries the revocation epoch it was true at. */
@Injectable()
export class Directory {
  constructor(private readonly db: Postgres) {}

  /** The one look-up that happens before a tenant is known. */
  async key(keyId: string): Promise<KnownKey | undefined> {
    const [row] = await this.db.rows<KeyRow>`select * from authz.key_by_id(${keyId})`;
    return (
      row && {
        keyId,
        tenant: row.tenant,
        workspace: row.workspace,
        principal: row.principal_id,
        scopes: knownScopes(row.scopes),
        isDisabled: row.disabled,
        secretHash: row.secret_hash,
        expiresAt: row.expires_at?.getTime(),
        revokedAt: row.revoked_at?.getTime(),
        lastUsedAt: row.last_used_at?.getTime(),
        epoch: Number(row.epoch),
      }
    );
  }

  async principal(tenant: string, principal: string): Promise<KnownPrincipal | undefined> {
    const [row] = await this.db.asTenant(
      tenant,
      (tx) => tx.rows<Pick<KeyRow, 'workspace' | 'scopes' | 'disabled' | 'epoch'>>`
        select workspace, scopes, disabled, coalesce((select max(epoch) from authz.revocations where tenant = ${tenant}), 0) as epoch
        from authz.principals where tenant = ${tenant} and principal_id = ${principal}`,
    );
    return row && { workspace: row.workspace, scopes: knownScopes(row.scopes), isDisabled: row.disabled, epoch: Number(row.epoch) };
  }

  /** The epoch of the tenant, if it exists and has that workspace. */
  async workspace(tenant: string, workspace: string): Promise<{ readonly epoch: number } | undefined> {
    const [row] = await this.db.asTenant(
      tenant,
      (tx) => tx.rows<Pick<KeyRow, 'epoch'>>`
        select coalesce((select max(epoch) from authz.revocations where tenant = ${tenant}), 0) as epoch
        from authz.workspaces where tenant = ${tenant} and workspace = ${workspace}`,
    );
    return row && { epoch: Number(row.epoch) };
  }
}

/** A stored scope this version does not know grants nothing. */
const knownScopes = (stored: readonly string[]): Scope[] => stored.filter((scope): scope is Scope => Object.hasOwn(SCOPES, scope));
