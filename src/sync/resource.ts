import { z } from 'zod';
import type { API } from '../contract/api/api.ts';
import type { ItemOf, ListOperation } from '../service/calls.ts';

export interface Resource {
  /** Its name in the database, in URLs and in the status. */
  name: string;
  /** Its name for people. */
  title: string;
  /** The paginated list route below `{base_url}`. */
  route: string;
  /** The route of one record: the sync asks there for records that a full run did not see. */
  record?: string;
  /** Whole minutes from the end of one full run to the start of the next; SYNC_INTERVAL_MINUTES by default. */
  intervalMinutes?: number;
  /** The columns of pages and CSV, the title first. A `path` is dotted: "email", "assignee.name". */
  columns?: readonly Column[];
}

interface Column {
  title: string;
  path: string;
}

/** The longest interval of a list: 31 days. */
const MOST_MINUTES = 44_640;

const INTERVAL = `a whole number of minutes from 1 to ${MOST_MINUTES.toLocaleString('en')} (31 days)`;

/** @throws RangeError that names the possible intervals */
export function checkInterval(minutes: number): void {
  if (!isInterval(minutes)) throw new RangeError(`An interval is ${INTERVAL}.`);
}

function isInterval(minutes: number): boolean {
  return Number.isInteger(minutes) && minutes >= 1 && minutes <= MOST_MINUTES;
}

/** The operation of the contract that lists a route. */
type OperationAt<Route extends string> = {
  [Op in ListOperation]: (typeof API)[Op] extends { path: Route } ? Op : never;
}[ListOperation];

/** A document of a route that the contract does not know. */
type AnyDocument = { id: string } & Record<string, unknown>;

/** A document of a route, as the contract describes it. */
export type DocumentAt<Route extends string> = [OperationAt<Route>] extends [never]
  ? AnyDocument
  : ItemOf<OperationAt<Route>>;

/** Pages of an instance that a resource's name would hide. */
const PAGES = ['changes', 'problems', 'runs', 'settings', 'status'];

const text = z.string('is missing').refine((value) => value.trim() !== '', 'is empty');

const resourceList = z.array(
  z.object(
    {
      name: z
        .string('is missing')
        .regex(
          /^[a-z][a-z0-9_-]{0,62}$/i,
          'must start with a letter and have only letters, digits, "-" and "_"',
        )
        .refine((name) => !PAGES.includes(name.toLowerCase()), 'is taken by a page of the app'),
      title: text,
      route: z
        .string('is missing')
        .regex(/^\/[^\s?#]+$/, 'must start with "/" and have no blanks, "?" or "#"'),
      record: z
        .string('must be a route')
        .regex(
          /^\/[^\s?#:]*\/:\w+[^\s?#:]*$/,
          'must be a route with one placeholder, such as "/contacts/:contact_id"',
        )
        .optional(),
      intervalMinutes: z.number(`must be ${INTERVAL}`).refine(isInterval, `must be ${INTERVAL}`).optional(),
      columns: z.array(z.object({ title: text, path: text })).optional(),
    },
    'is not a resource',
  ),
);

/**
 * Checks the list of resources at the start. One bad entry would stop the others, or send a token elsewhere.
 *
 * @throws Error that lists every problem, ready to print
 */
export function checkResources(resources: readonly Resource[]): void {
  // Node runs the file without a type check.
  const { error } = resourceList.safeParse(Array.from(resources));
  const problems = (error?.issues ?? []).map(({ path: [at, ...path], message }) => {
    const name = resources[Number(at)]?.name;
    return `resource ${Number(at) + 1} (${JSON.stringify(name)}): ${path.join('.')} ${message}`;
  });
  const names = resources.map((resource) => resource?.name);
  const repeated = names.filter((name, at) => names.indexOf(name) < at);
  problems.push(...repeated.map((name) => `two resources have the name ${JSON.stringify(name)}`));
  if (problems.length === 0) return;
  const lines = problems.map((problem) => `  ${problem}`).join('\n');
  throw new Error(`The app cannot sync the resources in src/integration/resources.ts:\n${lines}`);
}
