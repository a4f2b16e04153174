import { ROUTES, type Route, WopError } from '@isthmus/protocol';

/** Where the tenants' workflows are served over MCP. Not a row of the route table: it speaks JSON-RPC. */
export const MCP_PATH = '/mcp';

const served: readonly Pick<Route, 'path' | 'method'>[] = [...Object.values(ROUTES), { path: MCP_PATH, method: 'POST' }];

const patternOf = (path: string): RegExp => new RegExp(`^${path.replaceAll('.', '\\.').replace(/\{\w+\}/g, '[^/]+')}$`);
const methodsAt = (path: string): string[] =>
  served.filter((route) => route.path === path).flatMap(({ method }) => (method === 'GET' ? ['GET', 'HEAD'] : [method]));

/** The methods each path answers. A verb behind an id (`{runId}:fork`) would be taken for a part of it, so ids that end a path come last. */
const PATHS = [...new Set(served.map(({ path }) => path))]
  .sort((a, b) => Number(a.endsWith('}')) - Number(b.endsWith('}')))
  .map((path) => ({ pattern: patternOf(path), methods: methodsAt(path) }));

/** What may be asked of a path; undefined when there is no such path. */
export const methodsOf = (path: string): readonly string[] | undefined => PATHS.find(({ pattern }) => pattern.test(path))?.methods;

/** Why nothing answers this request. The unversioned form of a v1 path is a mistake of the client's. (wire §1: 400) */
export function nothingAt(path: string): WopError {
  const methods = methodsOf(path);
  if (methods) return new WopError('method_not_allowed', `This path answers ${methods.join(', ')}.`, { allow: methods });
  if (methodsOf(`/v1${path}`)) return new WopError('validation_error', 'The path lacks its version: it begins with /v1.');
  return new WopError('not_found', 'There is nothing at this path.');
}

export function pathOf(url: string): string {
  const end = url.search(/[?#]/);
  return end < 0 ? url : url.slice(0, end);
}
