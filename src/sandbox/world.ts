import type { GuardRules } from '../contract/guards.ts';
import type { Clock } from './clock.ts';
import { Faults } from './faults/faults.ts';
import type { Answer } from './http/answer.ts';
import { Journal } from './journal.ts';
import { GuardLimiter } from './limits/guard-limiter.ts';
import { Limiter } from './limits/limiter.ts';
import { OutgoingCalls } from './outgoing.ts';
import { Applications } from './state/applications.ts';
import { Codes } from './state/codes.ts';
import { Companies } from './state/companies.ts';
import { Tokens } from './state/tokens.ts';

/** An answer of the service itself, before any ordered fault touches it. */
export interface Answered {
  method: string;
  /** As the client reached it. */
  url: string;
  answer: Answer;
}

/** What stays the same for the life of a sandbox. */
export interface Settings {
  windowMs: number;
  latencyMs: number;
  /** How long an application's server may take to answer, in real milliseconds. */
  callTimeoutMs: number;
  redirectUris: readonly string[];
  guards: GuardRules;
  /** Told of every answer of the API and the OAuth routes. */
  onAnswer?: ((answered: Answered) => void) | undefined;
}

/** All that the service knows at one time. A reset puts a new world in place of the old one. */
export interface World {
  settings: Settings;
  clock: Clock;
  companies: Companies;
  applications: Applications;
  codes: Codes;
  tokens: Tokens;
  limiter: Limiter;
  guards: GuardLimiter;
  faults: Faults;
  journal: Journal;
  calls: OutgoingCalls;
}

/** The world at start. */
export function createWorld(settings: Settings, clock: Clock): World {
  return {
    settings,
    clock,
    companies: new Companies(),
    applications: new Applications(settings.redirectUris),
    codes: new Codes(),
    tokens: new Tokens(),
    limiter: new Limiter(settings.windowMs),
    guards: new GuardLimiter(settings.guards),
    faults: new Faults(),
    journal: new Journal(),
    calls: new OutgoingCalls(settings.windowMs),
  };
}

/** The parts of the world that a snapshot holds; the lists of requests and calls go on. */
const KEPT = [
  'companies',
  'applications',
  'codes',
  'tokens',
  'limiter',
  'guards',
  'calls',
  'faults',
] as const;

type Kept = { [Part in (typeof KEPT)[number]]: World[Part]['state'] };

/** The world at one moment: plain data, shared with nothing. */
export interface Snapshot {
  parts: Kept;
  now: number;
  frozen: boolean;
}

/** Copies the world. One copy of all its parts together: tokens and codes share their grants. */
export function takeSnapshot(world: World): Snapshot {
  const parts = Object.fromEntries(KEPT.map((part) => [part, world[part].state])) as Kept;
  return { parts: structuredClone(parts), now: world.clock.now(), frozen: world.clock.frozen };
}

/** Puts the world back to where a snapshot was taken, as often as one likes. */
export function restoreSnapshot(world: World, { parts, now, frozen }: Snapshot): void {
  world.clock.freeze(frozen);
  world.clock.set(now);
  const copies = structuredClone(parts);
  for (const part of KEPT) Object.assign(world[part], { state: copies[part] });
}
