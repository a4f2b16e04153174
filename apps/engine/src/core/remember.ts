/** A cache for what is made of a text: small and first-in first-out, since texts of definitions are few and a miss costs microseconds. */
export function remember<T>(cache: Map<string, T>, key: string, make: () => T): T {
  const known = cache.get(key);
  if (known !== undefined) return known;
  const made = make();
  if (cache.size >= 1_000) cache.delete(cache.keys().next().value as string);
  cache.set(key, made);
  return made;
}
