export const SERVICES = ['gateway', 'authz', 'engine', 'mcp-client', 'mcp-server'];
/** What an operation of ours costs: the services and what they stand on. Not the client. */
export const OURS = [...SERVICES, 'postgres', 'nats'];
/** Those whose `read` and `write` calls say how many messages an operation takes. Postgres' sockets use others. */
export const TALKING = [...SERVICES, 'nats'];
