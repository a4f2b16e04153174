-- Webhooks: who wants to hear of the runs of a workspace, and what is still to be told. (webhooks.md, traps.md 12)

-- secret is what signatures are keyed with, so it is kept as it is; only the engine's role may read it.
-- failures, open_until: the breaker. Until open_until nothing is sent but one look shortly before it; null: the endpoint answers.
CREATE TABLE engine.webhooks (
  webhook_id text NOT NULL,
  tenant     text NOT NULL,
  workspace  text NOT NULL,
  created_by text NOT NULL,
  url        text NOT NULL,
  events     text[] NOT NULL,
  tags       text[],
  secret     text NOT NULL,
  created_at timestamptz(3) NOT NULL,
  failures   integer NOT NULL DEFAULT 0,
  open_until timestamptz(3),
  CONSTRAINT webhooks_pkey PRIMARY KEY (webhook_id)
);
-- Appending looks here.
CREATE INDEX webhooks_tenant_workspace_idx ON engine.webhooks (tenant, workspace);

-- One row per event and subscription until it is delivered; then it goes. It holds no content: the event stands in the log.
-- status: waiting | sending (claimed; due_at is the end of the claim) | dead (given up; due_at is null, problem says why)
-- No foreign key: an append may not wait for somebody who removes a subscription. What is left over goes when it is due.
CREATE TABLE engine.webhook_deliveries (
  webhook_id text NOT NULL,
  run_id     uuid NOT NULL,
  sequence   integer NOT NULL,
  tenant     text NOT NULL,
  status     text NOT NULL DEFAULT 'waiting',
  attempts   integer NOT NULL DEFAULT 0,
  due_at     timestamptz(3),
  problem    text,
  created_at timestamptz(3) NOT NULL,
  CONSTRAINT webhook_deliveries_pkey PRIMARY KEY (webhook_id, run_id, sequence)
) WITH (fillfactor = 80);
-- Claiming walks this one: tenants in order, each with its due deliveries.
CREATE INDEX webhook_deliveries_due ON engine.webhook_deliveries (tenant, due_at) WHERE due_at IS NOT NULL;

DO $$
DECLARE
  name text;
BEGIN
  FOREACH name IN ARRAY ARRAY['webhooks', 'webhook_deliveries'] LOOP
    EXECUTE format('ALTER TABLE engine.%I ENABLE ROW LEVEL SECURITY', name);
    EXECUTE format('ALTER TABLE engine.%I FORCE ROW LEVEL SECURITY', name);
    EXECUTE format($p$CREATE POLICY tenant ON engine.%I TO isthmus_engine USING (tenant = nullif(current_setting('app.tenant', true), ''))$p$, name);
  END LOOP;
END $$;
GRANT SELECT, INSERT, DELETE, UPDATE (failures, open_until) ON engine.webhooks TO isthmus_engine;
GRANT SELECT, INSERT, DELETE, UPDATE ON engine.webhook_deliveries TO isthmus_engine;

-- Claiming crosses tenants: its role sees the queue, which holds no content, and of subscriptions that there are any.
GRANT SELECT, UPDATE ON engine.webhook_deliveries TO isthmus_claims;
CREATE POLICY claims ON engine.webhook_deliveries TO isthmus_claims USING (true);
GRANT SELECT (webhook_id) ON engine.webhooks TO isthmus_claims;
CREATE POLICY claims ON engine.webhooks FOR SELECT TO isthmus_claims USING (true);

-- Takes due deliveries, fairly: walks the tenants that have any by a loose scan of webhook_deliveries_due from a cursor, at most
-- p_per_tenant of each, none of those in p_busy. SKIP LOCKED: two claimers do not wait for each other.
CREATE FUNCTION engine.claim_deliveries(
  p_at timestamptz, p_until timestamptz, p_after text, p_busy text[], p_tenants integer, p_per_tenant integer, p_limit integer
) RETURNS TABLE (tenant text, webhook text, run uuid, sequence integer, attempt integer)
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog AS $$
  WITH RECURSIVE walk AS (
    (SELECT d.tenant, 1 AS n FROM engine.webhook_deliveries d WHERE d.due_at IS NOT NULL AND d.tenant > p_after ORDER BY d.tenant LIMIT 1)
    UNION ALL
    SELECT (SELECT d.tenant FROM engine.webhook_deliveries d WHERE d.due_at IS NOT NULL AND d.tenant > walk.tenant ORDER BY d.tenant LIMIT 1), n + 1
    FROM walk WHERE walk.tenant IS NOT NULL AND n < p_tenants
  ), due AS (
    SELECT d.webhook_id, d.run_id, d.sequence FROM walk CROSS JOIN LATERAL (
      SELECT d.webhook_id, d.run_id, d.sequence FROM engine.webhook_deliveries d
      WHERE d.tenant = walk.tenant AND d.due_at <= p_at
      ORDER BY d.due_at LIMIT p_per_tenant FOR UPDATE SKIP LOCKED
    ) d WHERE walk.tenant IS NOT NULL AND walk.tenant <> ALL (p_busy) LIMIT p_limit
  )
  UPDATE engine.webhook_deliveries d SET status = 'sending', attempts = d.attempts + 1, due_at = p_until
  FROM due WHERE d.webhook_id = due.webhook_id AND d.run_id = due.run_id AND d.sequence = due.sequence
  RETURNING d.tenant, d.webhook_id, d.run_id, d.sequence, d.attempts
$$;

-- The next tenant to walk from after a call of claim_deliveries: null when the walk came to the end.
CREATE FUNCTION engine.delivery_cursor(p_after text, p_tenants integer) RETURNS text
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog AS $$
  WITH RECURSIVE walk AS (
    (SELECT d.tenant, 1 AS n FROM engine.webhook_deliveries d WHERE d.due_at IS NOT NULL AND d.tenant > p_after ORDER BY d.tenant LIMIT 1)
    UNION ALL
    SELECT (SELECT d.tenant FROM engine.webhook_deliveries d WHERE d.due_at IS NOT NULL AND d.tenant > walk.tenant ORDER BY d.tenant LIMIT 1), n + 1
    FROM walk WHERE walk.tenant IS NOT NULL AND n < p_tenants
  )
  SELECT tenant FROM walk WHERE n = p_tenants
$$;

-- Does anybody listen at all? Who asks hears of the bells of runs only then.
CREATE FUNCTION engine.has_webhooks() RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog AS $$
  SELECT EXISTS (SELECT w.webhook_id FROM engine.webhooks w)
$$;

DO $$
DECLARE
  signature text;
BEGIN
  FOREACH signature IN ARRAY ARRAY[
    'engine.claim_deliveries(timestamptz, timestamptz, text, text[], integer, integer, integer)',
    'engine.delivery_cursor(text, integer)', 'engine.has_webhooks()'
  ] LOOP
    EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', signature);
    EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO isthmus_engine', signature);
    GRANT CREATE ON SCHEMA engine TO isthmus_claims;
    EXECUTE format('ALTER FUNCTION %s OWNER TO isthmus_claims', signature);
    REVOKE CREATE ON SCHEMA engine FROM isthmus_claims;
  END LOOP;
END $$;

-- What a claimed delivery is to say, to whom: null when the subscription is gone; event null when its history is.
-- Rides webhooks_pkey, runs_pkey and events_pkey.
CREATE FUNCTION engine.read_delivery(p_tenant text, p_webhook text, p_run uuid, p_sequence integer)
RETURNS TABLE (url text, secret text, workspace text, event json)
LANGUAGE plpgsql SECURITY INVOKER SET search_path = pg_catalog AS $$
BEGIN
  PERFORM set_config('app.tenant', p_tenant, true);
  RETURN QUERY SELECT w.url, w.secret, w.workspace,
    (SELECT json_build_array(e.type, e.payload, e.causation_id, e.untrusted, (extract(epoch FROM e.at) * 1000)::bigint)
     FROM engine.events e WHERE e.run_id = p_run AND e.sequence = p_sequence)
  FROM engine.webhooks w WHERE w.webhook_id = p_webhook;
END $$;

-- It arrived. Where the endpoint had been left alone, everything that waited for it may go.
CREATE FUNCTION engine.delivered(p_tenant text, p_webhook text, p_run uuid, p_sequence integer, p_at timestamptz) RETURNS void
LANGUAGE plpgsql SECURITY INVOKER SET search_path = pg_catalog AS $$
DECLARE
  was_open timestamptz;
BEGIN
  PERFORM set_config('app.tenant', p_tenant, true);
  DELETE FROM engine.webhook_deliveries d WHERE d.webhook_id = p_webhook AND d.run_id = p_run AND d.sequence = p_sequence;
  SELECT w.open_until INTO was_open FROM engine.webhooks w WHERE w.webhook_id = p_webhook AND w.failures > 0 FOR UPDATE;
  IF FOUND THEN
    UPDATE engine.webhooks w SET failures = 0, open_until = NULL WHERE w.webhook_id = p_webhook;
    -- Not what waits longer for reasons of its own.
    UPDATE engine.webhook_deliveries d SET due_at = p_at
    WHERE d.webhook_id = p_webhook AND d.status = 'waiting' AND d.due_at > p_at AND d.due_at <= was_open;
  END IF;
END $$;

-- The next two are those of 0005, with the deliveries in the statement's own transaction: who tails a log misses what commits
-- late. (traps.md 12)
CREATE OR REPLACE FUNCTION engine.create_run(
  p_tenant text, p_workspace text, p_principal text, p_run uuid, p_workflow text, p_revision integer,
  p_owner text, p_at timestamptz, p_lease_until timestamptz,
  p_transport text, p_trust text, p_options json, p_trace json, p_started json,
  p_endpoint text, p_key_hash text, p_digest text,
  p_facts json, p_value_refs text[], p_values text[], p_values_untrusted boolean[],
  p_parent_run uuid, p_parent_node text, p_propagate boolean
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
  IF p_parent_run IS NOT NULL AND EXISTS (SELECT FROM engine.runs r WHERE r.run_id = p_run) THEN
    RETURN QUERY SELECT 'replayed', p_run, p_revision;
    RETURN;
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
  INSERT INTO engine.runs (run_id, tenant, workspace, principal, workflow_id, revision, status, head, epoch, lease_owner, due_at, transport, trust, options, trace, started_at, parent_run, parent_node, propagate)
  VALUES (p_run, p_tenant, p_workspace, p_principal, p_workflow, p_revision, 'running', 0, 1, p_owner, p_lease_until, p_transport, p_trust, p_options, p_trace, p_at, p_parent_run, p_parent_node, p_propagate);
  INSERT INTO engine.events (run_id, sequence, tenant, type, payload, facts, untrusted, at)
  VALUES (p_run, 0, p_tenant, 'run.started', p_started, p_facts, false, p_at);
  IF p_value_refs IS NOT NULL THEN
    INSERT INTO engine.run_values (run_id, ref, tenant, value, untrusted)
    SELECT p_run, v.ref, p_tenant, v.value::json, v.untrusted
    FROM unnest(p_value_refs, p_values, p_values_untrusted) AS v (ref, value, untrusted);
  END IF;
  IF EXISTS (SELECT FROM engine.webhooks w WHERE w.tenant = p_tenant AND w.workspace = p_workspace) THEN
    INSERT INTO engine.webhook_deliveries (webhook_id, run_id, sequence, tenant, due_at, created_at)
    SELECT w.webhook_id, p_run, 0, p_tenant, greatest(p_at, w.open_until), p_at
    FROM engine.webhooks w
    WHERE w.tenant = p_tenant AND w.workspace = p_workspace AND w.events && ARRAY['run.started', '*']
      AND (w.tags IS NULL OR EXISTS (SELECT FROM json_array_elements_text(p_options -> 'tags') AS t (tag) WHERE t.tag = ANY (w.tags)));
  END IF;
  RETURN QUERY SELECT 'created', p_run, p_revision;
END $$;

CREATE OR REPLACE FUNCTION engine.append(
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
  row_parent uuid;
  row_workspace text;
  row_mode text;
  row_options json;
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
    pause = CASE WHEN p_ended OR p_status = 'paused' OR 'run.paused' = ANY (p_types) THEN NULL ELSE r.pause END,
    ended_at = CASE WHEN p_ended THEN p_at ELSE r.ended_at END,
    epoch = CASE WHEN p_epoch IS NULL AND r.lease_owner IS NULL AND NOT p_release THEN r.epoch + 1 ELSE r.epoch END,
    lease_owner = CASE WHEN p_release AND (p_epoch IS NOT NULL OR p_ended) THEN NULL WHEN p_epoch IS NULL THEN coalesce(r.lease_owner, CASE WHEN p_release THEN NULL ELSE p_owner END) ELSE r.lease_owner END,
    due_at = CASE WHEN p_ended THEN NULL WHEN p_epoch IS NULL AND r.lease_owner IS NOT NULL THEN r.due_at ELSE p_due END
  WHERE r.run_id = p_run AND r.head = p_expected AND (p_epoch IS NULL OR r.epoch = p_epoch) AND r.ended_at IS NULL
  RETURNING r.epoch, r.lease_owner, r.parent_run, r.workspace, r.mode, r.options INTO row_epoch, row_owner, row_parent, row_workspace, row_mode, row_options;
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
    FROM unnest(p_value_refs, p_values, p_values_untrusted) AS v (ref, value, untrusted)
    -- Only in a replay is a value there already: the source's own, which it comes to again.
    ON CONFLICT DO NOTHING;
  END IF;
  -- A replay tells nobody, whatever happens in it. (execution §4.4) Who has no subscription pays for one look at an index.
  IF row_mode IS DISTINCT FROM 'replay' AND EXISTS (SELECT FROM engine.webhooks w WHERE w.tenant = p_tenant AND w.workspace = row_workspace) THEN
    INSERT INTO engine.webhook_deliveries (webhook_id, run_id, sequence, tenant, due_at, created_at)
    SELECT w.webhook_id, p_run, p_expected + e.ordinal, p_tenant, greatest(p_at, w.open_until), p_at
    FROM unnest(p_types) WITH ORDINALITY AS e (type, ordinal)
    JOIN engine.webhooks w ON w.tenant = p_tenant AND w.workspace = row_workspace AND w.events && ARRAY[e.type, '*']
    WHERE w.tags IS NULL OR EXISTS (SELECT FROM json_array_elements_text(row_options -> 'tags') AS t (tag) WHERE t.tag = ANY (w.tags));
  END IF;
  IF p_ended THEN
    -- Whoever waits for this run looks at once; children that go with their parent are told by their own row. Both ride
    -- indexes (runs_pkey, runs_children) and touch nothing for a run without family.
    IF row_parent IS NOT NULL THEN
      UPDATE engine.runs r SET due_at = p_at WHERE r.run_id = row_parent AND r.ended_at IS NULL AND r.lease_owner IS NULL;
    END IF;
    IF p_status <> 'completed' THEN
      UPDATE engine.runs r SET orphaned_at = p_at, due_at = CASE WHEN r.lease_owner IS NULL THEN p_at ELSE r.due_at END
      WHERE r.parent_run = p_run AND r.ended_at IS NULL AND r.propagate;
    END IF;
  END IF;
  RETURN QUERY SELECT 'ok', CASE WHEN row_owner = p_owner THEN row_epoch END, NULL::json;
END $$;
