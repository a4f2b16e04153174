// One stack under one load: what a section of the bench measures with.
import { setTimeout as sleep } from 'node:timers/promises';
import os from 'node:os';
import { calls, cpu, memory } from './proc.mjs';
import { OURS, SERVICES } from './processes.mjs';
import { difference, sum } from './stats.mjs';
import { ECHO, LISTED, listedWorkflow, NOOPS } from './subjects.mjs';

export class Bench {
  #signal;
  #others = [];

  constructor({ host, load, peers, bare, counters, inspectors, plan, signal }) {
    Object.assign(this, { host, load, peers, bare, counters, inspectors, plan });
    this.#signal = signal;
  }

  /** Everything that is run against, once. Two tenants, so that the mount of each lists exactly what it should. */
  async register() {
    const { primary, tenantB } = this.host.keys;
    const wanted = [[primary, NOOPS], [primary, ECHO], ...LISTED.map((tool) => [tenantB, listedWorkflow(tool)])];
    for (const [key, workflow] of wanted) {
      const response = await fetch(`${this.host.baseUrl}/v1/host/isthmus/workflows/${workflow.id}`, {
        method: 'PUT',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        body: JSON.stringify(workflow),
        signal: this.#signal,
      });
      if (!response.ok) throw new Error(`workflow ${workflow.id} was not registered: ${response.status} ${await response.text()}`);
    }
  }

  /** One load, with the CPU (ms) and the system calls of each process meanwhile. */
  async measure(load, { concurrency, ms }) {
    const before = this.#kernel();
    const began = performance.now();
    const measured = await this.load.ask('measure', { ...load, concurrency, ms }, this.#signal);
    const after = this.#kernel();
    const { machine, everything, ...used } = difference(before.cpu, after.cpu);
    this.#others.push({ ms: (performance.now() - began) * os.cpus().length, used: machine - everything });
    return { ...measured, cpu: used, calls: difference(before.calls, after.calls) };
  }

  /** The share of the machine that processes which are not ours took while we measured: the reason to doubt absolute figures. */
  get othersShare() {
    return sum(this.#others.map(({ used }) => used)) / sum(this.#others.map(({ ms }) => ms));
  }

  memory() {
    return memory(Object.fromEntries(SERVICES.map((service) => [service, this.host.pids[service]])));
  }

  pause(ms) {
    return sleep(ms, undefined, { signal: this.#signal });
  }

  #kernel() {
    const { pids } = this.host;
    // We started them all: our own figure, with our children's, is everything that is ours.
    const ours = Object.fromEntries(OURS.map((name) => [name, pids[name] ?? []]));
    const groups = { ...ours, bare: [this.peers.pid], client: [this.load.pid], everything: [process.pid] };
    return { cpu: cpu(groups), calls: calls(groups) };
  }
}
