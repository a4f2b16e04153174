import type { Caller } from '@isthmus/protocol';
import type { Answerer } from './core/decision.js';

/** What is known of whoever answers, now: scopes count as roles named `scope:<scope>`. */
export const answererOf = ({ principal, scopes }: Caller): Answerer => ({
  principal,
  roles: scopes.map((scope) => `scope:${scope}`),
  groups: [],
});
