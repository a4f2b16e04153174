-- Tables of the engine: workflows and their revisions, what they expose, runs, their logs, values, effects, idempotency.

CREATE TABLE engine.workflows (
  tenant      text NOT NULL,
  workspace   text NOT NULL,
  workflow_id text NOT NULL,
  revision    integer NOT NULL,
  name        text NOT NULL,
  updated_at  timestamptz(3) NOT NULL,
  CONSTRAINT workflows_pkey PRIMARY KEY (tenant, workspace, workflow_id)
);

-- Revisions are never changed: a run in flight stays on the one it started with.
CREATE TABLE engine.workflow_revisions (
  tenant      text NOT NULL,
  workspace   text NOT NULL,
  workflow_id text NOT NULL,
  revision    integer NOT NULL,
  definition  json NOT NULL,
  created_by  text NOT NULL,
  created_at  timestamptz(3) NOT NULL,
  CONSTRAINT workflow_revisions_pkey PRIMARY KEY (tenant, workspace, workflow_id, revision)
);

CREATE TABLE engine.exposures (
  tenant      text NOT NULL,
  mount       text NOT NULL,
  kind        text NOT NULL,
  name        text NOT NULL,
  workspace   text NOT NULL,
  workflow_id text NOT NULL,
  node_id     text NOT NULL,
  manifest    json NOT NULL,
  CONSTRAINT exposures_pkey PRIMARY KEY (tenant, mount, kind, name)
);
CREATE INDEX exposures_tenant_workspace_workflow_id_idx ON engine.exposures (tenant, workspace, workflow_id);

CREATE TABLE engine.exposure_versions (
  tenant  text NOT NULL,
  mount   text NOT NULL,
  version bigint NOT NULL,
  CONSTRAINT exposure_versions_pkey PRIMARY KEY (tenant, mount)
);

-- Lease, epoch, head and due time stand in one row: append and claim both update it, so the row lock orders them.
-- due_at: when someone must look at the run. While it is leased, the end of the lease; else its next timer; null: nobody.
CREATE TABLE engine.runs (
  run_id        uuid NOT NULL,
  tenant        text NOT NULL,
  workspace     text NOT NULL,
  principal     text NOT NULL,
  workflow_id   text NOT NULL,
  revision      integer NOT NULL,
  status        text NOT NULL,
  head          integer NOT NULL,
  epoch         integer NOT NULL,
  lease_owner   text,
  due_at        timestamptz(3),
  takeovers     integer NOT NULL DEFAULT 0,
  takeover_head integer NOT NULL DEFAULT -1,
  transport     text NOT NULL,
  trust         text NOT NULL,
  options       json NOT NULL,
  trace         json,
  started_at    timestamptz(3) NOT NULL,
  ended_at      timestamptz(3),
  CONSTRAINT runs_pkey PRIMARY KEY (run_id)
) WITH (fillfactor = 80);
CREATE INDEX runs_tenant_workspace_run_id_idx ON engine.runs (tenant, workspace, run_id);
-- Claiming walks this one: tenants in order, each with its due runs.
CREATE INDEX runs_due ON engine.runs (tenant, due_at) WHERE due_at IS NOT NULL;

CREATE TABLE engine.events (
  run_id       uuid NOT NULL,
  sequence     integer NOT NULL,
  tenant       text NOT NULL,
  type         text NOT NULL,
  payload      json NOT NULL,
  facts        json,
  causation_id text,
  untrusted    boolean NOT NULL,
  at           timestamptz(3) NOT NULL,
  CONSTRAINT events_pkey PRIMARY KEY (run_id, sequence)
);

-- What the log may not carry: results of MCP tools, large outputs. Immutable per (run, ref).
CREATE TABLE engine.run_values (
  run_id    uuid NOT NULL,
  ref       text NOT NULL,
  tenant    text NOT NULL,
  value     json NOT NULL,
  untrusted boolean NOT NULL,
  CONSTRAINT run_values_pkey PRIMARY KEY (run_id, ref)
);

-- Layer 2: one row per round of a logical invocation; claimed before the effect, with its outcome after. (idempotency.md)
CREATE TABLE engine.invocations (
  invocation_id text NOT NULL,
  round         integer NOT NULL,
  tenant        text NOT NULL,
  run_id        uuid NOT NULL,
  node_id       text NOT NULL,
  epoch         integer NOT NULL,
  outcome       json,
  claimed_at    timestamptz(3) NOT NULL,
  done_at       timestamptz(3),
  CONSTRAINT invocations_pkey PRIMARY KEY (invocation_id, round)
);

-- Layer 1: written in the transaction of what it stands for.
CREATE TABLE engine.idempotency (
  tenant     text NOT NULL,
  endpoint   text NOT NULL,
  key_hash   text NOT NULL,
  digest     text NOT NULL,
  response   json NOT NULL,
  created_at timestamptz(3) NOT NULL,
  CONSTRAINT idempotency_pkey PRIMARY KEY (tenant, endpoint, key_hash)
);

-- Tenancy: a missing filter returns nothing instead of everything. '' is no tenant: it is what a used connection reads.
DO $$
DECLARE
  name text;
BEGIN
  FOREACH name IN ARRAY ARRAY['workflows', 'workflow_revisions', 'exposures', 'exposure_versions', 'runs', 'events', 'run_values', 'invocations', 'idempotency'] LOOP
    EXECUTE format('ALTER TABLE engine.%I ENABLE ROW LEVEL SECURITY', name);
    EXECUTE format('ALTER TABLE engine.%I FORCE ROW LEVEL SECURITY', name);
    EXECUTE format($p$CREATE POLICY tenant ON engine.%I TO isthmus_engine USING (tenant = nullif(current_setting('app.tenant', true), ''))$p$, name);
  END LOOP;
END $$;

-- Grants: the log and the revisions are append-only for the service itself, too.
GRANT SELECT, INSERT, UPDATE ON engine.workflows, engine.exposure_versions, engine.runs TO isthmus_engine;
GRANT SELECT, INSERT, DELETE ON engine.exposures TO isthmus_engine;
GRANT SELECT, INSERT ON engine.workflow_revisions, engine.events, engine.run_values, engine.idempotency TO isthmus_engine;
GRANT SELECT, INSERT, UPDATE ON engine.invocations TO isthmus_engine;

-- Claiming crosses tenants, so it has a role of its own that can see the runs table and nothing else, reached only through
-- the functions below; they return tenant, run and epoch. The claimer then works as that tenant.
GRANT SELECT, UPDATE ON engine.runs TO isthmus_claims;
CREATE POLICY claims ON engine.runs TO isthmus_claims USING (true);

-- Starts a run, or finds the one an earlier request with the same key started. One round trip, one commit.
-- verdict: created | replayed | mismatch (key used for another request) | stale (the workflow has another revision by now)
CREATE FUNCTION engine.create_run(
  p_tenant text, p_workspace text, p_principal text, p_run uuid, p_workflow text, p_revision integer,
  p_owner text, p_at timestamptz, p_lease_until timestamptz,
  p_transport text, p_trust text, p_options json, p_trace json, p_started json,
  p_endpoint text, p_key_hash text, p_digest text
) RETURNS TABLE (verdict text, run uuid, revision integer)
LANGUAGE plpgsql SECURITY INVOKER SET search_path = pg_catalog AS $$
DECLARE
  known engine.idempotency%ROWTYPE;
  latest integer;
BEGIN
  PERFORM set_config('app.tenant', p_tenant, true);
  IF p_key_hash IS NOT NULL THEN
    -- A concurrent holder of the key makes this wait for its commit: exactly one execution.
    INSERT INTO engine.idempotency AS i (tenant, endpoint, key_hash, digest, response, created_at)
    VALUES (p_tenant, p_endpoint, p_key_hash, p_digest, json_build_object('runId', p_run), p_at)
    ON CONFLICT DO NOTHING;
    IF NOT FOUND THEN
      SELECT * INTO known FROM engine.idempotency i
      WHERE i.tenant = p_tenant AND i.endpoint = p_endpoint AND i.key_hash = p_key_hash;
      RETURN QUERY SELECT CASE WHEN known.digest = p_digest THEN 'replayed' ELSE 'mismatch' END, (known.response ->> 'runId')::uuid, p_revision;
      RETURN;
    END IF;
  END IF;
  SELECT w.revision INTO latest FROM engine.workflows w
  WHERE w.tenant = p_tenant AND w.workspace = p_workspace AND w.workflow_id = p_workflow;
  IF latest IS DISTINCT FROM p_revision THEN
    IF p_key_hash IS NOT NULL THEN
      RAISE EXCEPTION 'stale workflow revision' USING ERRCODE = 'P0001', DETAIL = coalesce(latest::text, '');
    END IF;
    RETURN QUERY SELECT 'stale', p_run, latest;
    RETURN;
  END IF;
  INSERT INTO engine.runs (run_id, tenant, workspace, principal, workflow_id, revision, status, head, epoch, lease_owner, due_at, transport, trust, options, trace, started_at)
  VALUES (p_run, p_tenant, p_workspace, p_principal, p_workflow, p_revision, 'running', 0, 1, p_owner, p_lease_until, p_transport, p_trust, p_options, p_trace, p_at);
  INSERT INTO engine.events (run_id, sequence, tenant, type, payload, untrusted, at)
  VALUES (p_run, 0, p_tenant, 'run.started', p_started, false, p_at);
  RETURN QUERY SELECT 'created', p_run, p_revision;
END $$;

-- Appends a batch. Optimistic: the head must be where the caller folded to. A worker brings its epoch and is fenced when
-- another one has claimed since; a command brings none, and takes the lease if nobody has it.
-- verdict: ok | conflict | fenced | replayed | mismatch. epoch: the lease's epoch when the caller holds it now, else null.
CREATE FUNCTION engine.append(
  p_tenant text, p_run uuid, p_expected integer, p_epoch integer, p_owner text, p_at timestamptz,
  p_status text, p_release boolean, p_due timestamptz, p_ended boolean,
  p_types text[], p_payloads text[], p_facts text[], p_causations text[], p_untrusted boolean[],
  p_value_refs text[], p_values text[], p_values_untrusted boolean[],
  p_endpoint text, p_key_hash text, p_digest text, p_response json
) RETURNS TABLE (verdict text, epoch integer, response json)
LANGUAGE plpgsql SECURITY INVOKER SET search_path = pg_catalog AS $$
DECLARE
  added integer := cardinality(p_types);
  row_epoch integer;
  row_owner text;
  known engine.idempotency%ROWTYPE;
BEGIN
  PERFORM set_config('app.tenant', p_tenant, true);
  IF p_key_hash IS NOT NULL THEN
    INSERT INTO engine.idempotency AS i (tenant, endpoint, key_hash, digest, response, created_at)
    VALUES (p_tenant, p_endpoint, p_key_hash, p_digest, p_response, p_at)
    ON CONFLICT DO NOTHING;
    IF NOT FOUND THEN
      SELECT * INTO known FROM engine.idempotency i
      WHERE i.tenant = p_tenant AND i.endpoint = p_endpoint AND i.key_hash = p_key_hash;
      RETURN QUERY SELECT CASE WHEN known.digest = p_digest THEN 'replayed' ELSE 'mismatch' END, NULL::integer, known.response;
      RETURN;
    END IF;
  END IF;
  -- Rides runs_pkey. One update moves head, status and lease together.
  UPDATE engine.runs r SET
    head = p_expected + added,
    status = p_status,
    ended_at = CASE WHEN p_ended THEN p_at ELSE r.ended_at END,
    epoch = CASE WHEN p_epoch IS NULL AND r.lease_owner IS NULL AND NOT p_release THEN r.epoch + 1 ELSE r.epoch END,
    lease_owner = CASE WHEN p_release AND (p_epoch IS NOT NULL OR p_ended) THEN NULL WHEN p_epoch IS NULL THEN coalesce(r.lease_owner, CASE WHEN p_release THEN NULL ELSE p_owner END) ELSE r.lease_owner END,
    due_at = CASE WHEN p_ended THEN NULL WHEN p_epoch IS NULL AND r.lease_owner IS NOT NULL THEN r.due_at ELSE p_due END
  WHERE r.run_id = p_run AND r.head = p_expected AND (p_epoch IS NULL OR r.epoch = p_epoch) AND r.ended_at IS NULL
  RETURNING r.epoch, r.lease_owner INTO row_epoch, row_owner;
  IF NOT FOUND THEN
    IF p_key_hash IS NOT NULL THEN
      RAISE EXCEPTION 'conflict' USING ERRCODE = '40001';
    END IF;
    RETURN QUERY SELECT CASE WHEN p_epoch IS NOT NULL AND (SELECT r.epoch FROM engine.runs r WHERE r.run_id = p_run) IS DISTINCT FROM p_epoch THEN 'fenced' ELSE 'conflict' END, NULL::integer, NULL::json;
    RETURN;
  END IF;
  INSERT INTO engine.events (run_id, sequence, tenant, type, payload, facts, causation_id, untrusted, at)
  SELECT p_run, p_expected + e.ordinal, p_tenant, e.type, e.payload::json, e.facts::json, e.causation, e.untrusted, p_at
  FROM unnest(p_types, p_payloads, p_facts, p_causations, p_untrusted) WITH ORDINALITY AS e (type, payload, facts, causation, untrusted, ordinal);
  IF p_value_refs IS NOT NULL THEN
    INSERT INTO engine.run_values (run_id, ref, tenant, value, untrusted)
    SELECT p_run, v.ref, p_tenant, v.value::json, v.untrusted
    FROM unnest(p_value_refs, p_values, p_values_untrusted) AS v (ref, value, untrusted);
  END IF;
  RETURN QUERY SELECT 'ok', CASE WHEN row_owner = p_owner THEN row_epoch END, NULL::json;
END $$;

-- Gives a lease back without an event: the next timer, or nothing to do. Not when the log grew: what grew may be work.
CREATE FUNCTION engine.release(p_tenant text, p_run uuid, p_epoch integer, p_expected integer, p_due timestamptz) RETURNS boolean
LANGUAGE plpgsql SECURITY INVOKER SET search_path = pg_catalog AS $$
BEGIN
  PERFORM set_config('app.tenant', p_tenant, true);
  UPDATE engine.runs r SET lease_owner = NULL, due_at = p_due WHERE r.run_id = p_run AND r.epoch = p_epoch AND r.head = p_expected AND r.ended_at IS NULL;
  RETURN FOUND;
END $$;

-- Takes the lease of one run, if it is free or has lapsed. Rides runs_pkey.
CREATE FUNCTION engine.claim_run(p_owner text, p_run uuid, p_at timestamptz, p_until timestamptz)
RETURNS TABLE (tenant text, run uuid, epoch integer, takeovers integer)
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog AS $$
  UPDATE engine.runs r SET
    epoch = r.epoch + 1, lease_owner = p_owner, due_at = p_until,
    takeovers = CASE WHEN r.lease_owner IS NULL THEN 0 WHEN r.takeover_head = r.head THEN r.takeovers + 1 ELSE 1 END,
    takeover_head = r.head
  WHERE r.run_id = p_run AND r.ended_at IS NULL AND r.due_at IS NOT NULL AND (r.lease_owner IS NULL OR r.due_at <= p_at)
  RETURNING r.tenant, r.run_id, r.epoch, r.takeovers
$$;

-- Takes due runs, fairly: walks the tenants that have any by a loose scan of runs_due from a cursor, at most p_per_tenant runs
-- of each and at most p_tenants tenants a call. SKIP LOCKED: two claimers do not wait for each other.
CREATE FUNCTION engine.claim_due(p_owner text, p_at timestamptz, p_until timestamptz, p_after text, p_tenants integer, p_per_tenant integer)
RETURNS TABLE (tenant text, run uuid, epoch integer, takeovers integer)
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog AS $$
  WITH RECURSIVE walk AS (
    (SELECT r.tenant, 1 AS n FROM engine.runs r WHERE r.due_at IS NOT NULL AND r.tenant > p_after ORDER BY r.tenant LIMIT 1)
    UNION ALL
    SELECT (SELECT r.tenant FROM engine.runs r WHERE r.due_at IS NOT NULL AND r.tenant > walk.tenant ORDER BY r.tenant LIMIT 1), n + 1
    FROM walk WHERE walk.tenant IS NOT NULL AND n < p_tenants
  ), due AS (
    SELECT d.run_id FROM walk CROSS JOIN LATERAL (
      SELECT r.run_id FROM engine.runs r
      WHERE r.tenant = walk.tenant AND r.due_at <= p_at
      ORDER BY r.due_at LIMIT p_per_tenant FOR UPDATE SKIP LOCKED
    ) d WHERE walk.tenant IS NOT NULL
  )
  UPDATE engine.runs r SET
    epoch = r.epoch + 1, lease_owner = p_owner, due_at = p_until,
    takeovers = CASE WHEN r.lease_owner IS NULL THEN 0 WHEN r.takeover_head = r.head THEN r.takeovers + 1 ELSE 1 END,
    takeover_head = r.head
  FROM due WHERE r.run_id = due.run_id AND r.ended_at IS NULL
  RETURNING r.tenant, r.run_id, r.epoch, r.takeovers
$$;

-- The next tenant to walk from after a call of claim_due: null when the walk came to the end.
CREATE FUNCTION engine.claim_cursor(p_after text, p_tenants integer) RETURNS text
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog AS $$
  WITH RECURSIVE walk AS (
    (SELECT r.tenant, 1 AS n FROM engine.runs r WHERE r.due_at IS NOT NULL AND r.tenant > p_after ORDER BY r.tenant LIMIT 1)
    UNION ALL
    SELECT (SELECT r.tenant FROM engine.runs r WHERE r.due_at IS NOT NULL AND r.tenant > walk.tenant ORDER BY r.tenant LIMIT 1), n + 1
    FROM walk WHERE walk.tenant IS NOT NULL AND n < p_tenants
  )
  SELECT tenant FROM walk WHERE n = p_tenants
$$;

-- Keeps leases that are still held; the others are missing in the answer. Locks in id order.
CREATE FUNCTION engine.renew(p_owner text, p_runs uuid[], p_epochs integer[], p_until timestamptz) RETURNS TABLE (run uuid)
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog AS $$
  WITH held AS (
    SELECT r.run_id FROM engine.runs r JOIN unnest(p_runs, p_epochs) AS h (run_id, epoch) ON h.run_id = r.run_id AND h.epoch = r.epoch
    WHERE r.lease_owner = p_owner AND r.ended_at IS NULL ORDER BY r.run_id FOR UPDATE OF r
  )
  UPDATE engine.runs r SET due_at = p_until FROM held WHERE r.run_id = held.run_id RETURNING r.run_id
$$;

-- Where runs stand, for watchers of any tenant: numbers and statuses only.
CREATE FUNCTION engine.heads(p_runs uuid[]) RETURNS TABLE (run uuid, head integer, status text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog AS $$
  SELECT r.run_id, r.head, r.status FROM engine.runs r WHERE r.run_id = ANY (p_runs)
$$;

DO $$
DECLARE
  signature text;
BEGIN
  FOREACH signature IN ARRAY ARRAY[
    'engine.claim_run(text, uuid, timestamptz, timestamptz)', 'engine.claim_due(text, timestamptz, timestamptz, text, integer, integer)',
    'engine.claim_cursor(text, integer)', 'engine.renew(text, uuid[], integer[], timestamptz)', 'engine.heads(uuid[])'
  ] LOOP
    EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', signature);
    EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO isthmus_engine', signature);
    -- Owning needs CREATE on the schema for the moment of the hand-over.
    GRANT CREATE ON SCHEMA engine TO isthmus_claims;
    EXECUTE format('ALTER FUNCTION %s OWNER TO isthmus_claims', signature);
    REVOKE CREATE ON SCHEMA engine FROM isthmus_claims;
  END LOOP;
END $$;

-- One read: the run and a page of its log, bounded by bytes (p_max_bytes, at least one event). Rides runs_pkey and events_pkey.
-- run is null when there is no such run for the tenant and workspace (p_workspace null: any, for the driver itself).
CREATE FUNCTION engine.read_run(p_tenant text, p_workspace text, p_run uuid, p_from integer, p_max_bytes bigint)
RETURNS TABLE (run json, events json, more boolean)
LANGUAGE plpgsql SECURITY INVOKER SET search_path = pg_catalog AS $$
DECLARE
  found_run engine.runs%ROWTYPE;
  page json;
  last integer;
BEGIN
  PERFORM set_config('app.tenant', p_tenant, true);
  SELECT * INTO found_run FROM engine.runs r WHERE r.run_id = p_run AND (p_workspace IS NULL OR r.workspace = p_workspace);
  IF NOT FOUND THEN
    RETURN QUERY SELECT NULL::json, NULL::json, false;
    RETURN;
  END IF;
  SELECT json_agg(json_build_array(e.sequence, e.type, e.payload, e.facts, e.causation_id, e.untrusted, (extract(epoch FROM e.at) * 1000)::bigint) ORDER BY e.sequence), max(e.sequence)
  INTO page, last
  FROM (
    SELECT v.*, sum(length(v.payload::text) + 200) OVER (ORDER BY v.sequence) AS bytes
    FROM engine.events v WHERE v.run_id = p_run AND v.sequence >= p_from AND v.sequence <= found_run.head
  ) e
  WHERE e.bytes <= p_max_bytes OR e.sequence = p_from;
  RETURN QUERY SELECT row_to_json(found_run), coalesce(page, '[]'::json), coalesce(last < found_run.head, false);
END $$;

-- The lists of a tenant's workspace, newest first; UUIDv7 ids sort by creation. Rides runs_tenant_workspace_run_id_idx.
CREATE FUNCTION engine.list_runs(p_tenant text, p_workspace text, p_before uuid, p_statuses text[], p_workflow text, p_tag text, p_limit integer)
RETURNS SETOF engine.runs
LANGUAGE plpgsql SECURITY INVOKER SET search_path = pg_catalog AS $$
BEGIN
  PERFORM set_config('app.tenant', p_tenant, true);
  RETURN QUERY SELECT r.* FROM engine.runs r
    WHERE r.tenant = p_tenant AND r.workspace = p_workspace AND (p_before IS NULL OR r.run_id < p_before)
      AND (p_statuses IS NULL OR r.status = ANY (p_statuses)) AND (p_workflow IS NULL OR r.workflow_id = p_workflow)
      AND (p_tag IS NULL OR (r.options::jsonb -> 'tags') ? p_tag)
    ORDER BY r.run_id DESC LIMIT p_limit;
END $$;

-- What a workspace exposes on a mount. The version is one indexed row; entries only when the asker holds another version.
CREATE FUNCTION engine.list_exposures(p_tenant text, p_workspace text, p_mount text, p_known text)
RETURNS TABLE (version text, exposures json)
LANGUAGE plpgsql SECURITY INVOKER SET search_path = pg_catalog AS $$
DECLARE
  latest text;
  entries json;
BEGIN
  PERFORM set_config('app.tenant', p_tenant, true);
  SELECT v.version::text INTO latest FROM engine.exposure_versions v WHERE v.tenant = p_tenant AND v.mount = p_mount;
  latest := coalesce(latest, '0');
  IF p_known IS DISTINCT FROM latest THEN
    SELECT json_agg(json_build_object('kind', x.kind, 'name', x.name, 'workflowId', x.workflow_id, 'nodeId', x.node_id, 'manifest', x.manifest))
    INTO entries FROM engine.exposures x WHERE x.tenant = p_tenant AND x.mount = p_mount AND x.workspace = p_workspace;
    entries := coalesce(entries, '[]'::json);
  END IF;
  RETURN QUERY SELECT latest, entries;
END $$;
