/** Parts of the specification, in its order; what it leaves open comes last. */
export const SECTIONS = [
  'What the service does',
  'Resources: tag',
  'Resources: account',
  'Resources: message',
  'Resources: other resources',
  'Resources: common response members',
  'States: message draft state',
  'States: token lifecycle',
  'Endpoints: OAuth routes',
  'Endpoints: routes',
  'Endpoints: creation of messages',
  'Endpoints: pagination',
  'Authentication',
  'Events',
  'Errors',
  'Limits: standard rate limit',
  'Limits: other rate limits',
  'Limits: burst allowance',
  'Limits: response headers',
  'Limits: additional rate guards',
  'Limits: per-resource guards',
  'Limits: guards, route by route',
  'Limits: pagination sizes',
  'Limits: token lifetimes',
  'Versioning',
  'Our choices',
] as const;

/** A part of the specification. */
export type Section = (typeof SECTIONS)[number];

/** One rule of the service, and the tests that hold it. */
export interface Rule {
  id: string;
  section: Section;
  /** In our own words. */
  rule: string;
  /** `specified`: it stands in the specification; `choice`: ours, where the specification is silent. */
  source: 'specified' | 'choice';
  /** Tests: the path below `test/` without its end, and the title: `sandbox/tags › a tag moves to another parent`. */
  cases: readonly string[];
}

/** A section's rules, the section named once. */
export function section(name: Section, rules: readonly Omit<Rule, 'section'>[]): readonly Rule[] {
  return rules.map((rule) => ({ section: name, ...rule }));
}

/** What stands between a case's file and its title. */
const BETWEEN = ' › ';

/** Where a case is found: the file's path from the root, and the title. */
export function locate(cited: string): { file: string; title: string } {
  const [path = '', ...title] = cited.split(BETWEEN);
  return { file: `test/${path}.test.ts`, title: title.join(BETWEEN) };
}

/** A case as the ledger cites it. @param file path from the root, like `test/sandbox/tags.test.ts` */
export function cite(file: string, title: string): string {
  return `${file.replace(/^test\//, '').replace(/\.test\.ts$/, '')}${BETWEEN}${title}`;
}
