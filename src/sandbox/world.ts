import { GUARDS, type GuardRules } from '../contract/guards.ts';
import { WINDOW_MS } from '../contract/limits.ts';
import type { Clock } from './clock.ts';
import { Journal } from './journal.ts';
import { GuardLimiter } from './limits/guard-limiter.ts';
import { Limiter } from './limits/limiter.ts';
import { OutgoingCalls } from './outgoing.ts';
import type { Snapshots } from './snapshots.ts';
import { Applications } from './state/applications.ts';
import { Codes } from './state/codes.ts';
import { Companies } from './state/companies.ts';
import { Faults } from './state/faults.ts';
import { Tokens } from './state/tokens.ts';
import type { Addresses, Readings, SandboxOptions } from './types.ts';

/** The default time for an answer of an application's server. */
const CALL_TIMEOUT_MS = 5_000;

/** The settings of a sandbox; they never change. */
export type Settings = ReturnType<typeof settingsOf>;

/** The options of a sandbox, with their defaults. */
export function settingsOf(options: SandboxOptions) {
  const windowMs = options.windowMs ?? WINDOW_MS;
  return {
    windowMs,
    latencyMs: options.latencyMs ?? 0,
    callTimeoutMs: options.callTimeoutMs ?? CALL_TIMEOUT_MS,
    redirectUris: options.redirectUris ?? [],
    guards: { ...GUARDS, search: { ...GUARDS.search, windowMs }, ...options.guards } as GuardRules,
    order: options.order ?? 'activity',
    strict: options.strict ?? false,
    applicationName: options.applicationName ?? 'Partner app',
    readings: { expiresAt: 'string', changes: 200, ...options.readings } as Readings,
    onAnswer: options.onAnswer,
  };
}

/** The state of the service. A reset replaces the world. */
export type World = ReturnType<typeof createWorld>;

/** The world at start. */
export function createWorld(settings: Settings, clock: Clock) {
  return {
    settings,
    clock,
    companies: new Companies(settings.order),
    applications: new Applications(settings.redirectUris, settings.applicationName),
    codes: new Codes(),
    tokens: new Tokens(),
    limiter: new Limiter(settings.windowMs),
    guards: new GuardLimiter(settings.guards),
    faults: new Faults(),
    journal: new Journal(),
    calls: new OutgoingCalls(settings.windowMs),
  };
}

/** A running sandbox and its present world. */
export interface Host {
  world: World;
  addresses: Addresses;
  snapshots: Snapshots;
  /** Whether it listens beyond this machine. */
  exposed: boolean;
  /** Public origin, if it differs from the own one. */
  publicUrl: string | undefined;
  /** Back to the state at start. */
  reset(): void;
}
