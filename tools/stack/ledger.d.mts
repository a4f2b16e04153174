/** What a command has started, on disk, so that a later start can clear away what a killed one left. */
export declare class Ledger {
  constructor(kind: string);
  add(name: string, pid: number): void;
  remove(pid: number): void;
  addFolder(path: string): void;
  close(): void;
}
