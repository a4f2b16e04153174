import { Ids } from '@isthmus/chassis';

/** Ids that can be told before they are made: counted, in the shape of real ones. */
export class FakeIds extends Ids {
  #runs = 0;
  #opaque = 0;

  override run(): string {
    this.#runs += 1;
    return `00000000-0000-7000-8000-${this.#runs.toString(16).padStart(12, '0')}`;
  }

  override opaque(bytes = 24): string {
    this.#opaque += 1;
    return `opaque-${this.#opaque}-`.padEnd(Math.ceil((bytes * 4) / 3), '0');
  }
}
