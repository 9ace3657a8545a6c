/** One rule of the service, and the tests that hold it. */
export interface Rule {
  id: string;
  /** Of the specification. */
  section: string;
  /** In our own words. */
  rule: string;
  /** `specified`: it stands in the specification; `choice`: ours, where the specification is silent. */
  source: 'specified' | 'choice';
  /** Tests: the path below `test/` without its end, and the title: `sandbox/tags › a tag moves to another parent`. */
  cases: readonly string[];
}

/** A section's rules, the section named once. */
export function section(name: string, rules: readonly Omit<Rule, 'section'>[]): readonly Rule[] {
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
