-- Runs in full: families of runs, pauses, forks, attempts, masked inputs, tokens.

ALTER TABLE engine.runs
  ADD COLUMN parent_run  uuid,
  ADD COLUMN parent_node text,
  -- Does the end of the parent end this run?
  ADD COLUMN propagate   boolean NOT NULL DEFAULT true,
  ADD COLUMN orphaned_at timestamptz(3),
  -- A pause that waits for the current nodes to finish: {reason, by}. A wish, not yet a fact.
  ADD COLUMN pause       json,
  ADD COLUMN source_run  uuid,
  ADD COLUMN mode        text,
  ADD COLUMN id_base     uuid;
CREATE INDEX runs_children ON engine.runs (parent_run) WHERE parent_run IS NOT NULL;

-- Attempts of a node share the logical invocation id that goes out, but each has an outcome of its own.
ALTER TABLE engine.invocations ADD COLUMN attempt integer NOT NULL DEFAULT 0;
ALTER TABLE engine.invocations DROP CONSTRAINT invocations_pkey;
ALTER TABLE engine.invocations ADD CONSTRAINT invocations_pkey PRIMARY KEY (invocation_id, attempt, round);

-- Keys that sign interrupt tokens: shared by every engine, made by the first. No tenant: a token names its own.
CREATE TABLE engine.token_keys (
  kid        text NOT NULL,
  slot       integer NOT NULL,
  secret     text NOT NULL,
  created_at timestamptz(3) NOT NULL,
  CONSTRAINT token_keys_pkey PRIMARY KEY (kid)
);
CREATE UNIQUE INDEX token_keys_slot_key ON engine.token_keys (slot);
GRANT SELECT, INSERT ON engine.token_keys TO isthmus_engine;

DROP FUNCTION engine.create_run;
CREATE FUNCTION engine.create_run(
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
  RETURNING r.epoch, r.lease_owner, r.parent_run INTO row_epoch, row_owner, row_parent;
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

-- A new run out of a prefix of another one's log, with the values it may refer to. One commit. Ids in the log stay those of the
-- first source (id_base), so that two forks of a run are equal.
CREATE FUNCTION engine.fork_run(
  p_tenant text, p_workspace text, p_source uuid, p_run uuid, p_from integer, p_mode text, p_owner text, p_at timestamptz,
  p_lease_until timestamptz, p_options json, p_trace json, p_status text, p_ended boolean
) RETURNS boolean
LANGUAGE plpgsql SECURITY INVOKER SET search_path = pg_catalog AS $$
BEGIN
  PERFORM set_config('app.tenant', p_tenant, true);
  INSERT INTO engine.runs (run_id, tenant, workspace, principal, workflow_id, revision, status, head, epoch, lease_owner, due_at, transport, trust, options, trace, started_at, ended_at, source_run, mode, id_base)
  SELECT p_run, s.tenant, s.workspace, s.principal, s.workflow_id, s.revision, p_status, p_from - 1, 1, CASE WHEN NOT p_ended THEN p_owner END,
    CASE WHEN NOT p_ended THEN p_lease_until END, s.transport, s.trust, p_options, p_trace, p_at, CASE WHEN p_ended THEN p_at END, s.run_id, p_mode, coalesce(s.id_base, s.run_id)
  FROM engine.runs s WHERE s.run_id = p_source AND s.workspace = p_workspace AND s.head >= p_from - 1;
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  INSERT INTO engine.events (run_id, sequence, tenant, type, payload, facts, causation_id, untrusted, at)
  SELECT p_run, e.sequence, e.tenant, e.type, e.payload, e.facts, e.causation_id, e.untrusted, e.at
  FROM engine.events e WHERE e.run_id = p_source AND e.sequence < p_from;
  INSERT INTO engine.run_values (run_id, ref, tenant, value, untrusted)
  -- A replay may come to any of them again; a branch starts with those its history refers to.
  SELECT p_run, v.ref, v.tenant, v.value, v.untrusted FROM engine.run_values v
  WHERE v.run_id = p_source AND (p_mode = 'replay' OR v.ref LIKE 'input:%' OR EXISTS (
    SELECT FROM engine.events e WHERE e.run_id = p_source AND e.sequence < p_from AND e.facts -> 'value' ->> 'ref' = v.ref));
  RETURN true;
END $$;

-- Wishes a pause that waits for the current nodes; whoever drives the run appends it when they have ended.
CREATE FUNCTION engine.wish_pause(p_tenant text, p_workspace text, p_run uuid, p_pause json, p_at timestamptz) RETURNS boolean
LANGUAGE plpgsql SECURITY INVOKER SET search_path = pg_catalog AS $$
BEGIN
  PERFORM set_config('app.tenant', p_tenant, true);
  UPDATE engine.runs r SET pause = p_pause, due_at = CASE WHEN r.lease_owner IS NULL THEN p_at ELSE r.due_at END
  WHERE r.run_id = p_run AND r.workspace = p_workspace AND r.ended_at IS NULL;
  RETURN FOUND;
END $$;

-- Runs that a run started: their ids and how they stand.
CREATE FUNCTION engine.children(p_tenant text, p_parent uuid) RETURNS TABLE (run uuid, status text)
LANGUAGE plpgsql SECURITY INVOKER SET search_path = pg_catalog AS $$
BEGIN
  PERFORM set_config('app.tenant', p_tenant, true);
  RETURN QUERY SELECT r.run_id, r.status FROM engine.runs r WHERE r.parent_run = p_parent ORDER BY r.run_id;
END $$;

-- Renewing tells of runs that lost their parent or were asked to pause, too: a bell may have been lost.
DROP FUNCTION engine.renew;
CREATE FUNCTION engine.renew(p_owner text, p_runs uuid[], p_epochs integer[], p_until timestamptz) RETURNS TABLE (run uuid, moved boolean)
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog AS $$
  WITH held AS (
    SELECT r.run_id FROM engine.runs r JOIN unnest(p_runs, p_epochs) AS h (run_id, epoch) ON h.run_id = r.run_id AND h.epoch = r.epoch
    WHERE r.lease_owner = p_owner AND r.ended_at IS NULL ORDER BY r.run_id FOR UPDATE OF r
  )
  UPDATE engine.runs r SET due_at = p_until FROM held WHERE r.run_id = held.run_id
  RETURNING r.run_id, r.orphaned_at IS NOT NULL OR r.pause IS NOT NULL
$$;
DO $$
BEGIN
  REVOKE ALL ON FUNCTION engine.renew(text, uuid[], integer[], timestamptz) FROM PUBLIC;
  GRANT EXECUTE ON FUNCTION engine.renew(text, uuid[], integer[], timestamptz) TO isthmus_engine;
  GRANT CREATE ON SCHEMA engine TO isthmus_claims;
  ALTER FUNCTION engine.renew(text, uuid[], integer[], timestamptz) OWNER TO isthmus_claims;
  REVOKE CREATE ON SCHEMA engine FROM isthmus_claims;
END $$;
