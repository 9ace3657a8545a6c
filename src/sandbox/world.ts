import type { Clock } from './clock.ts';
import { Faults } from './faults.ts';
import { Journal } from './journal.ts';
import { Limiter } from './limits/limiter.ts';
import { Applications } from './state/applications.ts';
import { Codes } from './state/codes.ts';
import { Companies } from './state/companies.ts';
import { Tokens } from './state/tokens.ts';

/** What stays the same for the life of a sandbox. */
export interface Settings {
  windowMs: number;
  latencyMs: number;
  redirectUris: readonly string[];
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
  faults: Faults;
  journal: Journal;
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
    faults: new Faults(),
    journal: new Journal(),
  };
}
