export type Readiness = { readonly ready: boolean; readonly checks: Readonly<Record<string, boolean>> };

const CHECK_TIMEOUT_MS = 1_000;

/** Whether this process may be given work. Checks have names, answers are booleans: nothing else leaves here. */
export class Health {
  readonly #checks = new Map<string, () => Promise<void> | void>();
  readonly #steps: (() => Promise<void> | void)[] = [];
  #isDraining = false;

  /** `check` throws while the thing it looks at is not well. */
  add(name: string, check: () => Promise<void> | void): void {
    this.#checks.set(name, check);
  }

  /**
   * `step` runs when the process is about to end, while every connection is still open: stop taking work, finish what was begun.
   * (Nest's own hooks run in the order of modules, so that a connection may be gone before its users.)
   */
  onDrain(step: () => Promise<void> | void): void {
    this.#steps.push(step);
  }

  /** From now on no new work; there is no way back. Resolves when what was begun has ended. */
  async drain(): Promise<void> {
    this.#isDraining = true;
    await Promise.all(this.#steps.map(async (step) => step()));
  }

  async ready(): Promise<Readiness> {
    const results = await Promise.all([...this.#checks].map(async ([name, check]) => [name, await passes(check)] as const));
    const checks = Object.fromEntries([...results, ['accepting', !this.#isDraining] as const]);
    return { ready: Object.values(checks).every(Boolean), checks };
  }
}

async function passes(check: () => Promise<void> | void): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const tooLate = new Promise<false>((resolve) => {
    timer = setTimeout(resolve, CHECK_TIMEOUT_MS, false);
  });
  const passed = (async () => {
    try {
      await check();
      return true;
    } catch {
      return false;
    }
  })();
  try {
    return await Promise.race([passed, tooLate]);
  } finally {
    clearTimeout(timer);
  }
}
