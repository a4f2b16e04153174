-- Tables of mcp-client: the remote MCP servers that tenants have registered.

CREATE TABLE mcp_client.mounts (
  tenant     text NOT NULL,
  workspace  text NOT NULL,
  server_id  text NOT NULL,
  spec       jsonb NOT NULL,
  created_at timestamptz(3) NOT NULL,
  updated_at timestamptz(3) NOT NULL,
  CONSTRAINT mounts_pkey PRIMARY KEY (tenant, workspace, server_id)
);

-- A missing filter shows nothing instead of everything; '' is what a used connection holds and is no tenant.
ALTER TABLE mcp_client.mounts ENABLE ROW LEVEL SECURITY;
ALTER TABLE mcp_client.mounts FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON mcp_client.mounts TO isthmus_mcp_client USING (tenant = nullif(current_setting('app.tenant', true), ''));

GRANT SELECT, INSERT, UPDATE, DELETE ON mcp_client.mounts TO isthmus_mcp_client;
