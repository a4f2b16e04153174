import type { Ledger } from './ledger.mjs';

export type Service = 'gateway' | 'authz' | 'engine' | 'mcp-client' | 'mcp-server';

export interface HostOptions {
  /** The gateway's HTTP port; a free one without it. */
  port?: number;
  /** An administrator's URL of a database that belongs to this host alone; without it a Postgres is started (and can be killed). */
  databaseUrl?: string;
  /** A NATS server that belongs to this host alone; without it one is started (and can be killed). */
  natsUrl?: string;
  /** With real flushes. */
  isDurable?: boolean;
  /** Keep the data, in `.dev/`; as `isDurable` without it. */
  isKept?: boolean;
  /** `demo` lets mcp-client reach loopback addresses; `conformance` turns the seams on as well. */
  mode?: 'plain' | 'demo' | 'conformance';
  replicas?: Partial<Record<Service, number>>;
  /** Which services to run; all five without it. */
  services?: readonly Service[];
  /** Added to every service's environment. */
  env?: Record<string, string>;
  serviceEnv?: Partial<Record<Service, Record<string, string>>>;
  /** Where the keys are kept; in memory only without it. */
  keysFile?: string;
  logDir?: string;
  signal?: AbortSignal;
  ledger?: Ledger;
  step?<T>(label: string, work: () => Promise<T>): Promise<T>;
  onLine?(process: HostProcess, stream: 'stdout' | 'stderr', text: string): void;
  onEnd?(process: HostProcess, how: { code: number | null; signal: NodeJS.Signals | null; isExpected: boolean }): void;
  onChange?(host: Host): void;
}

export interface HostProcess {
  readonly name: string;
  readonly service: string;
  readonly pid: number | undefined;
  readonly isReady: boolean;
  /** It is restarted if it dies of it. */
  signal(name: NodeJS.Signals): void;
  /** Resolves when it is up. */
  ready(limitMs?: number): Promise<void>;
  /** Stops it and keeps it down. */
  stop(): Promise<void>;
  start(): Promise<void>;
}

export interface StackDescription {
  baseUrl: string;
  mcpUrl: string;
  natsUrl: string;
  databaseUrl: string;
  keys: { primary: string; secondary: string; lowScope: string; tenantB: string };
  pids: Record<string, number[]>;
}

export declare class Host implements StackDescription {
  constructor(options: HostOptions);
  readonly baseUrl: string;
  readonly mcpUrl: string;
  readonly natsUrl: string;
  readonly databaseUrl: string;
  readonly keys: StackDescription['keys'];
  readonly pids: Record<string, number[]>;
  readonly description: StackDescription;
  start(): Promise<void>;
  /** One process by name: `engine-1`, `gateway-1`, `postgres`, `nats`. */
  process(name: string): HostProcess;
  replicas(service: string): HostProcess[];
  /** Resolves when every process is up (again) and the gateway answers. */
  ready(): Promise<void>;
  answers(limitMs?: number): Promise<void>;
  stop(): Promise<void>;
}

export declare const SERVICES: readonly Service[];
export declare function startHost(options?: HostOptions): Promise<Host>;
