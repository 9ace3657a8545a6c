import type { Snapshots } from './control/snapshots.ts';
import type { World } from './world.ts';

/** Where a sandbox is reached. */
export interface Addresses {
  origin: string;
  /** `{base_url}` */
  apiUrl: string;
  /** `{auth_url}` */
  authUrl: string;
}

/** The sandbox's own state: its world of the moment, and its addresses. */
export interface Host {
  world: World;
  addresses: Addresses;
  snapshots: Snapshots;
  /** Whether it listens beyond this machine. */
  exposed: boolean;
  /** How often it went back to the start. */
  resets: number;
  /** Back to the state at start. */
  reset(): void;
}
