import { type ErrorCode, ERRORS, ErrorEnvelope, type Route, ROUTES } from '@isthmus/protocol';
import { z } from 'zod';
import { IMPLEMENTATION } from './own-description.js';

type Schema = Readonly<Record<string, unknown>>;

/** This interface as OpenAPI, out of the route table alone: what is documented is what is parsed. */
export function openApi(publicUrl: string): object {
  return {
    openapi: '3.1.0',
    info: { title: 'Isthmus', version: IMPLEMENTATION.version, description: 'OpenWOP v1: durable workflow runs, streamed.' },
    servers: [{ url: publicUrl }],
    security: [{ bearer: [] }],
    paths: pathsOf(Object.values(ROUTES)),
    components: {
      securitySchemes: { bearer: { type: 'http', scheme: 'bearer' } },
      schemas: { Error: schemaOf(ErrorEnvelope) },
      responses: {
        Error: { description: 'Why not.', content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } } },
      },
    },
  };
}

function pathsOf(routes: readonly Route[]): Record<string, Record<string, object>> {
  const paths: Record<string, Record<string, object>> = {};
  for (const route of routes) paths[route.path] = { ...paths[route.path], [route.method.toLowerCase()]: operationOf(route) };
  return paths;
}

function operationOf(route: Route): object {
  const parameters = [
    ...parametersOf('path', route.params),
    ...parametersOf('query', route.query),
    ...(route.idempotent ? [IDEMPOTENCY_KEY] : []),
  ];
  return {
    operationId: route.operationId,
    summary: route.summary,
    ...(route.access === 'public' ? { security: [] } : { 'x-scopes': route.access }),
    ...(parameters.length > 0 && { parameters }),
    ...(route.body && {
      requestBody: {
        required: !route.body.safeParse(undefined).success,
        content: { 'application/json': { schema: schemaOf(route.body) } },
      },
    }),
    responses: responsesOf(route),
  };
}

const IDEMPOTENCY_KEY = {
  name: 'Idempotency-Key',
  in: 'header',
  required: false,
  schema: { type: 'string', minLength: 1, maxLength: 255 },
} as const;

function parametersOf(place: 'path' | 'query', schema: z.ZodObject | undefined): object[] {
  return Object.entries(schema?.shape ?? {}).map(([name, value]) => ({
    name,
    in: place,
    required: place === 'path' || !(value as z.ZodType).safeParse(undefined).success,
    schema: schemaOf(value as z.ZodType),
  }));
}

function responsesOf(route: Route): Record<string, object> {
  const success = route.method === 'PUT' ? [200, 201] : [route.success];
  const answered = [
    ...success.map((status) => [String(status), contentOf(route, status)] as const),
    ...(CONDITIONAL.has(route.operationId) ? [['304', { description: 'As If-None-Match has it.' }] as const] : []),
  ];
  const refused = refusalsOf(route).map((status) => [String(status), { $ref: '#/components/responses/Error' }] as const);
  return Object.fromEntries([...answered, ...refused]);
}

/** Routes that answer with an ETag. */
const CONDITIONAL: ReadonlySet<string> = new Set(['getDiscovery', 'getOpenApi', 'getRun']);

function contentOf(route: Route, status: number): object {
  if (status === 204) return { description: 'Done.' };
  const json = { 'application/json': { schema: { type: 'object' } } };
  return {
    description: 'As asked.',
    content: route === ROUTES.streamEvents ? { 'text/event-stream': { schema: { type: 'string' } }, ...json } : json,
  };
}

const SETTLED = ['interrupt_already_resolved', 'interrupt_cancelled', 'interrupt_expired'] as const;
/** Refusals of one route alone, by operation. */
const OWN_REFUSALS: Readonly<Record<string, readonly ErrorCode[]>> = {
  getDiscovery: ['service_unavailable'],
  pauseRun: ['run_state_conflict'],
  resumeRun: ['run_state_conflict'],
  forkRun: ['fork_point_invalid', 'run_expired'],
  resolveInterrupt: SETTLED,
  inspectInterrupt: ['interrupt_not_found', 'service_unavailable', ...SETTLED],
  resolveInterruptByToken: ['interrupt_not_found', 'forbidden', 'service_unavailable', ...SETTLED],
};

/** The statuses a route can refuse with, out of what it takes. */
function refusalsOf(route: Route): readonly number[] {
  const status = (code: ErrorCode): number => ERRORS[code].status;
  const codes: ErrorCode[] = [
    ...(route.body || route.query || route.params ? (['validation_error'] as const) : []),
    ...(route.access === 'public' ? [] : (['unauthenticated', 'forbidden', 'rate_limited', 'service_unavailable'] as const)),
    ...(route.holds === 'tenant' ? (['not_found'] as const) : []),
    ...(route.body ? (['payload_too_large', 'unsupported_media_type'] as const) : []),
    ...(route.idempotent ? (['idempotency_key_mismatch'] as const) : []),
    ...(OWN_REFUSALS[route.operationId] ?? []),
  ];
  return [...new Set(codes.map(status))].sort((a, b) => a - b);
}

/** Custom checks (any JSON) have no schema of their own; what a request must look like is the input side. */
function schemaOf(schema: z.ZodType): Schema {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }) as Record<string, unknown>;
  return rest;
}
