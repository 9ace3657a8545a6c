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
  /** Of a table. */
  row: string;
}

function rule(title: string, text: string, path: string): Rule {
  const [section = '', choice] = title.split(OUR_CHOICE);
  // A table of cases fills in what stands after % or $.
  const cell = text
    .replaceAll(/%[sdij]|\$\w+/g, '…')
    .replaceAll('|', '\\|')
    .replaceAll('<', '&lt;');
  const source = choice === undefined ? 'specified' : 'our choice';
  const file = basename(path);
  return { section, row: `| ${cell} | ${source} | [${file}](../test/sandbox/${file}) |\n` };
}

/** The rules in a file: its tests' titles, below a section of the specification. */
function rulesIn(path: string): Rule[] {
  let section = '';
  return [...readFileSync(path, 'utf8').matchAll(TITLE)].flatMap(([, , heading, , title = '']) => {
    section = heading ?? section;
    return heading === undefined ? [rule(section, title.replace(/\\(.)/g, '$1'), path)] : [];
  });
}

/** Every route of the contract, and how the requests to it are guarded: tables of tests ask each of them. */
const RULES_OF_ROUTES = ROUTES.flatMap(([, { method, path, summary, source, guard }]) => {
  const section = `Endpoints: routes${source === 'choice' ? OUR_CHOICE : ''}`;
  const route = rule(section, `\`${method} ${path}\`: ${summary}`, 'routes.test.ts');
  if (guard === undefined) return [route];
  const { tier, limit, windowMs } = GUARDS[guard.guard];
  const most = limit < 1 ? `${limit * 100}% of the rate limit` : limit;
  const parts = guard.by.map((part) => part.replace(':', '')).join(' and ');
  const bucket = `one bucket for ${parts === '' ? 'all' : `each ${parts}`}`;
  const shared = guard.pool === undefined ? '' : `, shared by ${guard.pool}`;
  const text = `\`${method} ${path}\`: tier \`${tier}\`, ${most} in ${windowMs / 1000} s, ${bucket}${shared}`;
  return [route, rule('Limits: additional rate guards', text, 'guards.test.ts')];
});

/** The page, from the tests as they are. */
export function fidelityPage(): string {
  const rules = [...RULES_OF_ROUTES, ...globSync(join(TESTS, '*.test.ts')).toSorted().flatMap(rulesIn)];
  const tables = SECTIONS.map((name) => {
    const rows = rules.filter(({ section }) => section === name).map(({ row }) => row);
    return `## ${name}\n\n| rule | source | held by |\n|---|---|---|\n${rows.join('')}`;
  });
  return INTRO + tables.join('\n');
}

if (import.meta.main) writeFileSync(PAGE, fidelityPage());
