import type { API } from '../contract/api/api.ts';
import type { ItemOf, ListOperation } from '../service/calls.ts';

/** A kind of record that is synced. */
export interface Resource {
  /** Names it in the database, in addresses and in the status. */
  name: string;
  /** As people read it. */
  title: string;
  /** The paginated list route below `{base_url}`. */
  route: string;
  /** Whole minutes from the end of one run to the start of the next; without it, as configured. */
  intervalMinutes?: number;
  /** What pages and CSV show of a record, the title first; `path` is dotted: "email", "assignee.name". */
  columns?: readonly Column[];
}

interface Column {
  title: string;
  path: string;
}

/** The longest interval of a list: 31 days. */
const MOST_MINUTES = 44_640;

const INTERVAL = `a whole number of minutes, from 1 to ${MOST_MINUTES.toLocaleString('en')} (31 days)`;

/** @throws RangeError that says what is possible */
export function checkInterval(minutes: number): void {
  if (!isInterval(minutes)) throw new RangeError(`An interval is ${INTERVAL}.`);
}

function isInterval(minutes: unknown): boolean {
  return Number.isInteger(minutes) && Number(minutes) >= 1 && Number(minutes) <= MOST_MINUTES;
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

/** It stands in addresses, in ids of jobs, in the database and in metrics. */
const NAME = /^[a-z][a-z0-9_-]{0,62}$/i;

/** What addresses below an instance's lead to already, in capitals, too. */
const TAKEN = ['changes', 'problems', 'runs', 'status'];

/** It stands behind `{base_url}`, and `?limit=` behind it. */
const ROUTE = /^\/[^\s?#]+$/;

/**
 * Looks at the list of what is synced before anything is done with it: one wrong entry would keep the others from
 * their jobs, or send a token elsewhere.
 *
 * @throws Error that lists every problem, ready to print
 */
export function checkResources(resources: readonly Resource[]): void {
  // What Node runs was not looked at by a compiler: a member may be missing.
  const entries = Array.from(resources, (entry: Partial<Resource> | undefined) => ({
    name: textOf(entry?.name),
    title: textOf(entry?.title),
    route: textOf(entry?.route),
    intervalMinutes: entry?.intervalMinutes,
    columns: Array.from(entry?.columns ?? [], (column: Partial<Column> | undefined) => [
      textOf(column?.title).trim(),
      textOf(column?.path).trim(),
    ]),
  }));
  const names = entries.map(({ name }) => name);
  const problems = entries.flatMap(({ name, title, route, intervalMinutes, columns }, at) => [
    ...(NAME.test(name)
      ? []
      : [`the name "${name}" has to begin with a letter, and to hold letters, digits, "-" and "_" alone`]),
    ...(TAKEN.includes(name.toLowerCase())
      ? [`the name "${name}" is taken by a page of the app: choose another`]
      : []),
    ...(names.indexOf(name) < at ? [`the name "${name}" stands there twice`] : []),
    ...(title.trim() === '' ? [`"${name}" needs a title`] : []),
    ...(ROUTE.test(route)
      ? []
      : [`the route "${route}" of "${name}" has to begin with "/", without blanks, "?" and "#"`]),
    ...(intervalMinutes === undefined || isInterval(intervalMinutes)
      ? []
      : [`the intervalMinutes of "${name}" have to be ${INTERVAL}`]),
    ...(columns.flat().includes('') ? [`a column of "${name}" needs a title and a path`] : []),
  ]);
  if (problems.length === 0) return;
  throw new Error(
    `What is to be synced cannot be used (src/integration/resources.ts):\n${problems.map((problem) => `  ${problem}`).join('\n')}`,
  );
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
