import { WopError } from '@isthmus/protocol';

/** Where a list goes on: the id of its last entry, wrapped, so that it is handed back and not made up. */
export const cursorAfter = (id: string): string => Buffer.from(id).toString('base64url');

/** @throws WopError `validation_error` for a text that no list gave out: it would reach the database as an id */
export function afterOf(cursor: string, isId: (text: string) => boolean): string {
  const id = Buffer.from(cursor, 'base64url').toString();
  if (!isId(id) || cursorAfter(id) !== cursor)
    throw new WopError('validation_error', 'The cursor is not one that this list gave out.', { path: 'cursor' });
  return id;
}
