import type { BenchCompany, BenchGrant } from '../support/bench-sandbox.ts';

/** A company that a contender copies, and for how long at least its window has been open when the work begins. */
export interface Track {
  company: BenchCompany;
  grant: BenchGrant;
  openForMs: number;
}

/** Whoever goes through the lists of a company at its limit. */
export interface Contender {
  name: string;
  label: string;
  isOurs: boolean;
  /** Each with a limit of its own. */
  tracks: readonly Track[];
  /** Starts its processes, which wait then. */
  prepare(): Promise<void>;
  /** What comes before the work, and opens a company's window by a request of its own; without it another app opens it. */
  open?(track: Track): Promise<void>;
  go(): Promise<void>;
  /** Kills every process by SIGKILL and starts others at once. Resolves when they are up. */
  killAndRestart(): Promise<void>;
  /** Time on a processor since it was told to go, all its processes together, without their starts. */
  cpuMs(): number;
  end(): Promise<void>;
}
