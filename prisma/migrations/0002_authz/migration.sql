-- Tables of authz: who there is, their keys, what was revoked, the keys that sign passports, the audit chains.

CREATE TABLE authz.tenants (
  tenant     text NOT NULL,
  created_at timestamptz(3) NOT NULL,
  CONSTRAINT tenants_pkey PRIMARY KEY (tenant)
);

CREATE TABLE authz.workspaces (
  tenant     text NOT NULL,
  workspace  text NOT NULL,
  created_at timestamptz(3) NOT NULL,
  CONSTRAINT workspaces_pkey PRIMARY KEY (tenant, workspace),
  CONSTRAINT workspaces_tenant_fkey FOREIGN KEY (tenant) REFERENCES authz.tenants (tenant)
);

-- Ids are opaque, never an e-mail (RFC 0048); `service:` is how the host's own services are named in passports.
CREATE TABLE authz.principals (
  tenant       text NOT NULL,
  principal_id text NOT NULL,
  workspace    text NOT NULL,
  scopes       text[] NOT NULL,
  disabled     boolean NOT NULL DEFAULT false,
  created_at   timestamptz(3) NOT NULL,
  CONSTRAINT principals_pkey PRIMARY KEY (tenant, principal_id),
  CONSTRAINT principals_tenant_workspace_fkey FOREIGN KEY (tenant, workspace) REFERENCES authz.workspaces (tenant, workspace),
  CONSTRAINT principals_not_a_service CHECK (principal_id NOT LIKE 'service:%' AND principal_id NOT LIKE '%@%')
);

-- A key is known by its id; of its secret only an argon2id hash is kept. (auth.md: hash at rest)
CREATE TABLE authz.api_keys (
  key_id       text NOT NULL,
  tenant       text NOT NULL,
  principal_id text NOT NULL,
  secret_hash  text NOT NULL,
  created_at   timestamptz(3) NOT NULL,
  expires_at   timestamptz(3),
  revoked_at   timestamptz(3),
  last_used_at timestamptz(3),
  CONSTRAINT api_keys_pkey PRIMARY KEY (key_id),
  CONSTRAINT api_keys_tenant_principal_id_fkey FOREIGN KEY (tenant, principal_id) REFERENCES authz.principals (tenant, principal_id),
  CONSTRAINT api_keys_secret_is_hashed CHECK (secret_hash LIKE '$argon2id$%')
);
CREATE INDEX api_keys_tenant_principal_id_idx ON authz.api_keys (tenant, principal_id);

-- The newest epoch. Whoever revokes locks this row until its commit, so that epochs become visible in their order: a poll
-- that has seen 7 never misses a 6 that commits later.
CREATE TABLE authz.revocation_head (
  slot  integer NOT NULL,
  epoch bigint NOT NULL,
  CONSTRAINT revocation_head_pkey PRIMARY KEY (slot),
  CONSTRAINT revocation_head_single CHECK (slot = 1)
);
INSERT INTO authz.revocation_head (slot, epoch) VALUES (1, 0);

CREATE TABLE authz.revocations (
  epoch  bigint NOT NULL,
  tenant text NOT NULL,
  at     timestamptz(3) NOT NULL,
  reason text NOT NULL,
  CONSTRAINT revocations_pkey PRIMARY KEY (epoch),
  CONSTRAINT revocations_tenant_fkey FOREIGN KEY (tenant) REFERENCES authz.tenants (tenant)
);
CREATE INDEX revocations_tenant_epoch_idx ON authz.revocations (tenant, epoch);

-- One key per slot, whoever comes first makes it: replicas share it. Only authz is granted this table.
CREATE TABLE authz.signing_keys (
  kid         text NOT NULL,
  slot        integer NOT NULL,
  public_jwk  json NOT NULL,
  private_jwk json NOT NULL,
  created_at  timestamptz(3) NOT NULL,
  CONSTRAINT signing_keys_pkey PRIMARY KEY (kid)
);
CREATE UNIQUE INDEX signing_keys_slot_key ON authz.signing_keys (slot);

-- One hash chain per tenant and one for the host (tenant null). No foreign key: what happened outlives whom it happened to.
CREATE TABLE authz.audit (
  chain     text NOT NULL,
  seq       bigint NOT NULL,
  tenant    text,
  at        timestamptz(3) NOT NULL,
  type      text NOT NULL,
  facts     json NOT NULL,
  prev_hash text,
  hash      text NOT NULL,
  CONSTRAINT audit_pkey PRIMARY KEY (chain, seq),
  CONSTRAINT audit_chain_of_tenant CHECK (chain = coalesce('tenant:' || tenant, 'host')),
  CONSTRAINT audit_genesis CHECK (seq >= 0 AND (seq = 0) = (prev_hash IS NULL))
);

-- Append-only at the storage layer, for the owner of the table as well. (auth.md, audit-log integrity)
CREATE FUNCTION authz.refuse_change() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
  RAISE EXCEPTION 'the audit log is append-only' USING ERRCODE = 'insufficient_privilege';
END $$;
CREATE TRIGGER audit_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON authz.audit FOR EACH STATEMENT EXECUTE FUNCTION authz.refuse_change();

-- Tenancy: a missing filter returns nothing instead of everything. '' is no tenant: it is what a used connection reads.
DO $$
DECLARE
  name text;
BEGIN
  FOREACH name IN ARRAY ARRAY['tenants', 'workspaces', 'principals', 'api_keys', 'revocations', 'audit'] LOOP
    EXECUTE format('ALTER TABLE authz.%I ENABLE ROW LEVEL SECURITY', name);
    EXECUTE format('ALTER TABLE authz.%I FORCE ROW LEVEL SECURITY', name);
    EXECUTE format($p$CREATE POLICY tenant ON authz.%I TO isthmus_authz USING (tenant = nullif(current_setting('app.tenant', true), ''))$p$, name);
  END LOOP;
END $$;
-- The host's own chain belongs to work that is done for no tenant.
CREATE POLICY host ON authz.audit TO isthmus_authz USING (tenant IS NULL AND coalesce(current_setting('app.tenant', true), '') = '');

-- Grants: what happened is only ever added to, and keys and principals are made by the seed, not by the service.
GRANT SELECT ON authz.tenants, authz.workspaces TO isthmus_authz;
GRANT SELECT, UPDATE (scopes, disabled) ON authz.principals TO isthmus_authz;
GRANT SELECT, UPDATE (revoked_at, last_used_at) ON authz.api_keys TO isthmus_authz;
GRANT SELECT, UPDATE (epoch) ON authz.revocation_head TO isthmus_authz;
GRANT SELECT, INSERT ON authz.revocations, authz.signing_keys, authz.audit TO isthmus_authz;

-- Two questions cross tenants: whose key is this, and which tenants were revoked. They have a role of their own that nobody
-- logs in as and that may read these columns only, reached through the functions below.
GRANT SELECT (key_id, tenant, principal_id, secret_hash, expires_at, revoked_at, last_used_at) ON authz.api_keys TO isthmus_keys;
GRANT SELECT (tenant, principal_id, workspace, scopes, disabled) ON authz.principals TO isthmus_keys;
GRANT SELECT (tenant, epoch) ON authz.revocations TO isthmus_keys;
GRANT SELECT ON authz.revocation_head TO isthmus_keys;
CREATE POLICY keys ON authz.api_keys FOR SELECT TO isthmus_keys USING (true);
CREATE POLICY keys ON authz.principals FOR SELECT TO isthmus_keys USING (true);
CREATE POLICY keys ON authz.revocations FOR SELECT TO isthmus_keys USING (true);

-- What verifying one key needs, and the revocation epoch as of the same snapshot. Rides api_keys_pkey, principals_pkey and
-- revocations_tenant_epoch_idx.
CREATE FUNCTION authz.key_by_id(wanted text)
RETURNS TABLE (
  tenant text, workspace text, principal_id text, scopes text[], disabled boolean,
  secret_hash text, expires_at timestamptz, revoked_at timestamptz, last_used_at timestamptz, epoch bigint
)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT k.tenant, p.workspace, p.principal_id, p.scopes, p.disabled, k.secret_hash, k.expires_at, k.revoked_at, k.last_used_at,
    coalesce((SELECT max(r.epoch) FROM authz.revocations r WHERE r.tenant = k.tenant), 0)
  FROM authz.api_keys k JOIN authz.principals p ON p.tenant = k.tenant AND p.principal_id = k.principal_id
  WHERE k.key_id = wanted
$$;

-- The newest epoch, and each tenant that has one above `since` (null: none is asked for). One row at least.
CREATE FUNCTION authz.revocations_since(since bigint)
RETURNS TABLE (head bigint, tenant text, epoch bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT h.epoch, r.tenant, r.epoch
  FROM authz.revocation_head h
  LEFT JOIN (SELECT v.tenant, max(v.epoch) AS epoch FROM authz.revocations v WHERE v.epoch > since GROUP BY v.tenant) r ON true
$$;

ALTER FUNCTION authz.key_by_id(text) OWNER TO isthmus_keys;
ALTER FUNCTION authz.revocations_since(bigint) OWNER TO isthmus_keys;
REVOKE ALL ON FUNCTION authz.key_by_id(text), authz.revocations_since(bigint) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION authz.key_by_id(text), authz.revocations_since(bigint) TO isthmus_authz;
