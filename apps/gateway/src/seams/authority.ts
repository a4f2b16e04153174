/** What an answer from outside could have moved if it were believed: the asker's scopes, and the approvals that wait. */
export type Authority = { readonly scopes: readonly string[]; readonly waiting: readonly string[] };

export const comparedAuthority = (before: Authority, after: Authority) => ({
  scopesWidened: after.scopes.some((scope) => !before.scopes.includes(scope)),
  approvalAdvanced: before.waiting.some((runId) => !after.waiting.includes(runId)),
});
