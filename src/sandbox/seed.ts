import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { SANDBOX_DEFAULTS } from '../contract/sandbox.ts';
import { perform } from './control/control.ts';
import { SCHEMA } from './control/schemas.ts';
import { issuesOf, Problem } from './http/answer.ts';
import type { Seed } from './types.ts';
import type { Host } from './world.ts';

/** The lists of a seed, in the order in which they are made. */
const LISTS = ['companies', 'applications', 'faults', 'guards'] as const;

const schema = z.strictObject({
  now: SCHEMA.clock.shape.set,
  frozen: z.boolean().optional(),
  order: SCHEMA.company.shape.order,
  strict: z.boolean().optional(),
  companies: z.array(SCHEMA.company).optional(),
  applications: z.array(SCHEMA.application).optional(),
  faults: z.array(SCHEMA.fault).optional(),
  guards: z.array(SCHEMA.guard).optional(),
});

/** Reports every problem of a seed, a line each. */
function refuse(problems: readonly string[]): never {
  throw new RangeError(problems.map((problem) => `seed: ${problem}`).join('\n'));
}

function readFile(file: string): unknown {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch (error) {
    return refuse([`${file} cannot be read: ${(error as Error).message}`]);
  }
}

/** Checks a seed; reads it first if it is a path. @throws RangeError that names every problem with its place */
export function readSeed(given: Seed | string = {}): Seed {
  const seed = typeof given === 'string' ? readFile(given) : given;
  const { success, error } = schema.safeParse(seed);
  if (success) return seed as Seed;
  refuse(issuesOf(error));
}

/** Makes the records of a seed in a new world. @throws RangeError if an id appears twice, or the like */
export function plantSeed(host: Host, seed: Seed): void {
  const { world } = host;
  if (seed.companies !== undefined) world.companies.state = [];
  const { clientId } = SANDBOX_DEFAULTS;
  const isReplaced = seed.applications?.some(({ client_id }) => client_id === clientId);
  if (isReplaced) world.applications.state.delete(clientId);
  const problems: string[] = [];
  for (const list of LISTS) {
    for (const [place, spec] of (seed[list] ?? []).entries()) {
      try {
        perform(host, 'POST', `/${list}`, spec);
      } catch (error) {
        if (!(error instanceof Problem)) throw error;
        problems.push(`${list}.${place}: ${error.message}`);
      }
    }
  }
  if (problems.length > 0) refuse(problems);
  const { now: set, frozen } = seed;
  if (set !== undefined || frozen !== undefined) perform(host, 'POST', '/clock', { set, frozen });
}
