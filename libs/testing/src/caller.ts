import { ALL_SCOPES, type Caller } from '@isthmus/protocol';

/** A principal of a tenant with every scope, unless the test says otherwise. */
export const callerOf = (given: Partial<Caller> = {}): Caller => {
  const tenant = given.tenant ?? 'tenant-a';
  return {
    tenant,
    workspace: `${tenant}-workspace`,
    principal: `${tenant}-principal`,
    kind: 'principal',
    scopes: ALL_SCOPES,
    epoch: 0,
    ...given,
  };
};
