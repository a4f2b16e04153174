/** Key of a handler's contract in its metadata. */
export const CONTRACT = Symbol('contract');

/** Subjects that have a handler in this process, filled by the decorator. */
export const handled = new Set<string>();
