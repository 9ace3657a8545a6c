import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { ROUTES } from '../../../src/contract/api/api.ts';
import { GUARDS } from '../../../src/contract/guards.ts';

/** Where the generated page stands. */
export const PAGE = join(import.meta.dirname, '../../../docs/fidelity.md');

const TESTS = join(import.meta.dirname, '..');

const INTRO = `# Fidelity

What the sandbox holds of the service's specification, section by section, and the tests that hold it. "Our choice"
marks what the specification leaves open. \`npm run fidelity\` writes this page from the titles of the tests.

`;

/** The sections of the specification, in its order: the titles of the tests' outermost \`describe\`. */
export const SECTIONS = [
  'What the service does',
  'Resources',
  'States: message drafts',
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
  'Limits: pagination sizes',
  'Versioning',
];

/** Ends the title of a `describe` with what the specification leaves open. */
const OUR_CHOICE = ' (our choice)';

const TITLE =
  /\bdescribe\(\s*(['"`])((?:\\.|(?!\1)[^\\])*)\1|(?:\btest\(|\)\()\s*(['"`])((?:\\.|(?!\3)[^\\])*)\3,/g;

interface Rule {
  section: string;
  text: string;
  isChoice: boolean;
  file: string;
}

/** The rules in a file: its tests' titles, below a section of the specification. */
function rulesIn(path: string): Rule[] {
  let section = '';
  return [...readFileSync(path, 'utf8').matchAll(TITLE)].flatMap(([, , heading, , title = '']) => {
    if (heading !== undefined) section = heading;
    const isChoice = section.endsWith(OUR_CHOICE);
    const name = isChoice ? section.slice(0, -OUR_CHOICE.length) : section;
    if (heading !== undefined || !SECTIONS.includes(name)) return [];
    return { section: name, text: title.replace(/\\(.)/g, '$1'), isChoice, file: basename(path) };
  });
}

/** Every route of the contract: one table of tests asks each of them. */
const ROUTE_RULES: Rule[] = ROUTES.map(([, { method, path, summary, source }]) => ({
  section: 'Endpoints: routes',
  text: `\`${method} ${path}\`: ${summary}`,
  isChoice: source === 'choice',
  file: 'routes.test.ts',
}));

/** How the requests to each guarded route count: likewise. */
const GUARD_RULES: Rule[] = ROUTES.flatMap(([, { method, path, guard }]) => {
  if (guard === undefined) return [];
  const { tier, limit, windowMs } = GUARDS[guard.guard];
  const most = limit < 1 ? `${limit * 100}% of the rate limit` : limit;
  const parts = guard.by.map((part) => part.replace(':', '')).join(' and ');
  const bucket = `one bucket for ${parts === '' ? 'all' : `each ${parts}`}`;
  const shared = guard.pool === undefined ? '' : `, shared by ${guard.pool}`;
  const text = `\`${method} ${path}\`: tier \`${tier}\`, ${most} in ${windowMs / 1000} s, ${bucket}${shared}`;
  return [{ section: 'Limits: additional rate guards', text, isChoice: false, file: 'guards.test.ts' }];
});

function row({ text, isChoice, file }: Rule): string {
  const cell = text.replaceAll('|', '\\|').replaceAll('<', '&lt;');
  return `| ${cell} | ${isChoice ? 'our choice' : 'specified'} | [${file}](../test/sandbox/${file}) |\n`;
}

/** The page, from the tests as they are. */
export function fidelityPage(): string {
  const rules = [
    ...ROUTE_RULES,
    ...GUARD_RULES,
    ...globSync(join(TESTS, '*.test.ts')).toSorted().flatMap(rulesIn),
  ];
  const tables = SECTIONS.map((name) => {
    const rows = rules.filter(({ section }) => section === name).map(row);
    return `## ${name}\n\n| rule | source | held by |\n|---|---|---|\n${rows.join('')}`;
  });
  return INTRO + tables.join('\n');
}

if (import.meta.main) writeFileSync(PAGE, fidelityPage());
