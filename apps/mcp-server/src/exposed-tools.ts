import { Injectable } from '@nestjs/common';
import { Bus } from '@isthmus/messaging';
import { type Caller, engine, type Scope } from '@isthmus/protocol';
import { LRUCache } from 'lru-cache';
import { Catalog } from './catalog.js';

/** A tool call makes a run and reads what becomes of it: whoever may not do both sees no tools. */
const TO_INVOKE: readonly Scope[] = ['runs:create', 'runs:read'];

type Asker = { readonly caller: Caller; readonly passport: string; readonly mount: string };
/** The read that is under way for a mount, and the one that starts when it is done. */
type Reading = { readonly now: Promise<Catalog>; next?: Promise<Catalog> };

/**
 * The tools a caller may invoke. The version is asked of the engine for each request, so that a registration is seen by the
 * next one on any replica (traps.md 18); what belongs to a version is kept.
 */
@Injectable()
export class ExposedTools {
  private readonly catalogs = new LRUCache<string, Catalog>({ max: 1_000 });
  private readonly reading = new Map<string, Reading>();

  constructor(private readonly bus: Bus) {}

  /** @throws WopError `service_unavailable` when the engine is out of reach: that is not an empty list */
  async of(asker: Asker): Promise<Catalog> {
    if (!TO_INVOKE.every((scope) => asker.caller.scopes.includes(scope))) return Catalog.EMPTY;
    return this.read(JSON.stringify([asker.caller.tenant, asker.caller.workspace, asker.mount]), asker);
  }

  /**
   * Requests that arrive while a read is under way share the one after it, never that one itself: it may have looked before a
   * registration which the later request has to see.
   */
  private read(key: string, asker: Asker): Promise<Catalog> {
    const under = this.reading.get(key);
    if (!under) return this.start(key, asker);
    under.next ??= under.now.then(
      () => this.start(key, asker),
      () => this.start(key, asker),
    );
    return under.next;
  }

  private start(key: string, asker: Asker): Promise<Catalog> {
    const reading: Reading = { now: this.ask(key, asker) };
    this.reading.set(key, reading);
    const done = (): void => {
      if (!reading.next && this.reading.get(key) === reading) this.reading.delete(key);
    };
    reading.now.then(done, done);
    return reading.now;
  }

  private async ask(key: string, { passport, mount }: Asker): Promise<Catalog> {
    const known = this.catalogs.get(key);
    const { version, exposures } = await this.bus.call(
      engine.listExposures,
      { mount, ...(known && { knownVersion: known.version }) },
      { passport },
    );
    if (!exposures && known) return known;
    if (!exposures) throw new Error('the engine left out exposures that nobody said to know');
    const catalog = Catalog.of(version, exposures);
    this.catalogs.set(key, catalog);
    return catalog;
  }
}
