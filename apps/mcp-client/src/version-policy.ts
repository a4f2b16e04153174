import { SUPPORTED_PROTOCOL_VERSIONS } from '@modelcontextprotocol/client';
import { type VersionPolicy, WopError } from '@isthmus/protocol';

/** The revisions without a handshake that we speak. */
const MODERN: readonly string[] = ['2026-07-28'];
/** The SDK's list of this name holds only those with one. (mcp.md §2.6) */
const LEGACY: readonly string[] = SUPPORTED_PROTOCOL_VERSIONS;

/** Every revision we can speak, preferred first. */
export const SPOKEN: readonly string[] = [...MODERN, ...LEGACY];

/** One way to open a connection; what it may settle on is in `revisions`. */
export type Approach = { readonly era: 'modern' | 'legacy'; readonly revisions: readonly string[] };

/**
 * The ways to open a connection under a policy, in order: the era without handshake first, and the older one after it only
 * because the policy lists it. `isKnownLegacy` leaves out a probe that is known to be in vain. (MCP 2026-07-28, versioning;
 * families.md §1.2 rule 3)
 */
export function approaches(policy: VersionPolicy, isKnownLegacy = false): readonly Approach[] {
  const modern = policy.allow.filter((revision) => MODERN.includes(revision));
  const legacy = policy.allow.filter((revision) => LEGACY.includes(revision));
  return [
    ...(modern.length > 0 && !(isKnownLegacy && legacy.length > 0) ? [{ era: 'modern', revisions: modern } as const] : []),
    ...(legacy.length > 0 ? [{ era: 'legacy', revisions: legacy } as const] : []),
  ];
}

/**
 * Which of the ways that are left may be tried after a server refused the one before and said it supports `supported` (empty:
 * it did not say). What it does not list is not tried.
 */
export function afterRefusal(left: readonly Approach[], supported: readonly string[]): readonly Approach[] {
  if (supported.length === 0) return left;
  return left
    .map(({ era, revisions }) => ({ era, revisions: revisions.filter((revision) => supported.includes(revision)) }))
    .filter(({ revisions }) => revisions.length > 0);
}

/** A server refused a revision, or offered one we may not use. `supported` is what it said it speaks, empty when it said nothing. */
export class VersionRefusal extends Error {
  override readonly name = 'VersionRefusal';
  readonly supported: readonly string[];

  constructor(supported: unknown, options?: ErrorOptions) {
    super('The server does not speak an allowed revision.', options);
    this.supported = revisionsIn(supported);
  }
}

/** Of a foreign list only what is a revision and no more than a few: the peer's words do not cross our boundary. */
const revisionsIn = (list: unknown): readonly string[] =>
  Array.isArray(list) ? list.filter((item) => typeof item === 'string' && /^\d{4}-\d{2}-\d{2}$/.test(item)).slice(0, 16) : [];

export const versionUnsupported = (policy: VersionPolicy, supported: readonly string[], cause?: unknown): WopError =>
  new WopError(
    'interop_version_unsupported',
    'The remote MCP server speaks no protocol revision that its mount allows.',
    { retriable: false, protocol: 'mcp', requested: policy.allow[0] ?? '', supported },
    { cause },
  );
