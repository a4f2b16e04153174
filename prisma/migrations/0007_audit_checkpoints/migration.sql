-- Signed checkpoints over the audit chains: who rewrites a chain would need the key as well. (auth-profiles.md, audit-log integrity)

CREATE TABLE authz.audit_checkpoints (
  chain       text NOT NULL,
  at_seq      bigint NOT NULL,
  tenant      text,
  checkpoint  text NOT NULL,
  merkle_root text NOT NULL,
  signature   text NOT NULL,
  at          timestamptz(3) NOT NULL,
  CONSTRAINT audit_checkpoints_pkey PRIMARY KEY (chain, at_seq),
  CONSTRAINT audit_checkpoints_chain_of_tenant CHECK (chain = coalesce('tenant:' || tenant, 'host'))
);
CREATE UNIQUE INDEX audit_checkpoints_checkpoint_key ON authz.audit_checkpoints (checkpoint);

CREATE TRIGGER audit_checkpoints_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON authz.audit_checkpoints
  FOR EACH STATEMENT EXECUTE FUNCTION authz.refuse_change();

ALTER TABLE authz.audit_checkpoints ENABLE ROW LEVEL SECURITY;
ALTER TABLE authz.audit_checkpoints FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON authz.audit_checkpoints TO isthmus_authz USING (tenant = nullif(current_setting('app.tenant', true), ''));
CREATE POLICY host ON authz.audit_checkpoints TO isthmus_authz USING (tenant IS NULL AND coalesce(current_setting('app.tenant', true), '') = '');
GRANT SELECT, INSERT ON authz.audit_checkpoints TO isthmus_authz;

-- The third question that crosses tenants: which chains have something to seal. It sees where entries stand, never what they say.
GRANT SELECT (chain, seq, tenant, at) ON authz.audit TO isthmus_keys;
GRANT SELECT (chain, at_seq) ON authz.audit_checkpoints TO isthmus_keys;
CREATE POLICY keys ON authz.audit FOR SELECT TO isthmus_keys USING (true);
CREATE POLICY keys ON authz.audit_checkpoints FOR SELECT TO isthmus_keys USING (true);

-- Tenants (null: the host) whose chain has an entry that is not sealed and is older than `before`, or has `entries` of them. Walks
-- from chain to chain by a loose scan of audit_pkey; the newest checkpoint rides audit_checkpoints_pkey backwards.
CREATE FUNCTION authz.audit_chains_due(before timestamptz, entries integer) RETURNS TABLE (tenant text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  WITH RECURSIVE c (chain) AS (
    (SELECT a.chain FROM authz.audit a ORDER BY a.chain LIMIT 1)
    UNION ALL
    SELECT (SELECT a.chain FROM authz.audit a WHERE a.chain > c.chain ORDER BY a.chain LIMIT 1) FROM c WHERE c.chain IS NOT NULL
  )
  SELECT first.tenant FROM c
  CROSS JOIN LATERAL (
    SELECT coalesce((SELECT p.at_seq FROM authz.audit_checkpoints p WHERE p.chain = c.chain ORDER BY p.at_seq DESC LIMIT 1), 0) AS seq
  ) sealed
  CROSS JOIN LATERAL (SELECT a.tenant, a.at FROM authz.audit a WHERE a.chain = c.chain AND a.seq > sealed.seq ORDER BY a.seq LIMIT 1) first
  WHERE first.at <= before OR EXISTS (SELECT FROM authz.audit a WHERE a.chain = c.chain AND a.seq >= sealed.seq + entries)
$$;
REVOKE ALL ON FUNCTION authz.audit_chains_due(timestamptz, integer) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION authz.audit_chains_due(timestamptz, integer) TO isthmus_authz;
-- Owning a function takes the right to create in its schema, for as long as it takes to give it away.
GRANT CREATE ON SCHEMA authz TO isthmus_keys;
ALTER FUNCTION authz.audit_chains_due(timestamptz, integer) OWNER TO isthmus_keys;
REVOKE CREATE ON SCHEMA authz FROM isthmus_keys;
