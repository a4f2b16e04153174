/** Is this the database saying that a unique key exists already? Speaks of Prisma's errors (P2002) and of `pg`'s (23505). */
export function isUniqueViolation(error: unknown): boolean {
  if (typeof error !== 'object' || error === null || !('code' in error)) return false;
  return error.code === 'P2002' || error.code === '23505';
}
