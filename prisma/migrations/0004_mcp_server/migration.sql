-- Tables of mcp-server: the keys that seal requestState. Any replica opens what another one sealed, so they share them.
-- Not a tenant's table: a state names its tenant inside the seal. Rows are added, never changed, so that what was sealed
-- before a rotation still opens.

CREATE TABLE mcp_server.state_keys (
  kid        text NOT NULL,
  secret     bytea NOT NULL,
  created_at timestamptz(3) NOT NULL,
  CONSTRAINT state_keys_pkey PRIMARY KEY (kid),
  CONSTRAINT state_keys_256_bits CHECK (octet_length(secret) = 32)
);

GRANT SELECT, INSERT ON mcp_server.state_keys TO isthmus_mcp_server;
