/**
 * Resolves with what `condition` answers as soon as that is truthy; fails with its last answer (or error) after `timeoutMs`. For
 * what happens in another process: within one, await the thing itself.
 */
export async function until<T>(
  condition: () => Promise<T> | T,
  { timeoutMs = 5_000, everyMs = 10, what }: { timeoutMs?: number; everyMs?: number; what?: string } = {},
): Promise<T> {
  const end = performance.now() + timeoutMs;
  for (;;) {
    const last = await attempt(condition);
    if ('value' in last && last.value) return last.value;
    if (performance.now() >= end) {
      const seen = 'value' in last ? JSON.stringify(last.value) : String(last.error);
      throw new Error(`${what ?? 'The condition'} did not come true within ${timeoutMs} ms; last seen: ${seen}`);
    }
    await new Promise((resolve) => setTimeout(resolve, everyMs));
  }
}

async function attempt<T>(condition: () => Promise<T> | T): Promise<{ value: T } | { error: unknown }> {
  try {
    return { value: await condition() };
  } catch (error) {
    return { error };
  }
}
