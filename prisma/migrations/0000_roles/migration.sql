-- One schema and one database role per service: a service sees its own schema and nothing else.
-- Roles belong to the whole server, so another database may have made them already, even at this very moment.
-- `tools/migrate.mjs` lets them log in; here they only come to exist.
DO $$
DECLARE
  wanted text;
BEGIN
  FOREACH wanted IN ARRAY ARRAY['isthmus_engine', 'isthmus_authz', 'isthmus_mcp_client', 'isthmus_mcp_server', 'isthmus_claims', 'isthmus_keys'] LOOP
    BEGIN
      EXECUTE format('CREATE ROLE %I NOLOGIN NOSUPERUSER NOBYPASSRLS NOCREATEDB NOCREATEROLE NOINHERIT', wanted);
    EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
    END;
  END LOOP;
END $$;

CREATE SCHEMA engine;
CREATE SCHEMA authz;
CREATE SCHEMA mcp_client;
CREATE SCHEMA mcp_server;

REVOKE ALL ON SCHEMA public FROM PUBLIC;
GRANT USAGE ON SCHEMA engine TO isthmus_engine, isthmus_claims;
GRANT USAGE ON SCHEMA authz TO isthmus_authz, isthmus_keys;
GRANT USAGE ON SCHEMA mcp_client TO isthmus_mcp_client;
GRANT USAGE ON SCHEMA mcp_server TO isthmus_mcp_server;
