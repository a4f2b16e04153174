import { jsonProblem, type MountSpec, WopError } from '@isthmus/protocol';
import { approaches } from './version-policy.js';

/**
 * Refuses a mount that could never work, or that would keep a secret where none belongs.
 * @throws WopError `validation_error`, or what `refusalOf` says of the host
 */
export function checkMount(spec: MountSpec, refusalOf: (hostname: string) => WopError | undefined): void {
  const url = new URL(spec.url);
  const problem =
    jsonProblem(spec) ??
    (url.username || url.password ? '"url" may not hold a user name or password' : undefined) ??
    (url.hash ? '"url" may not have a fragment' : undefined) ??
    (approaches(spec.versionPolicy).length === 0 ? '"versionPolicy.allow" names no revision this host speaks' : undefined);
  if (problem) throw new WopError('validation_error', `The mount is not valid: ${problem}.`);
  const refusal = refusalOf(url.hostname);
  if (refusal) throw refusal;
}
