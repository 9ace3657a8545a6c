import { LEDGER } from './ledger.ts';
import { locate, type Rule } from './rule.ts';

function cell(text: string): string {
  return text.replaceAll('|', '\\|').replaceAll('<', '&lt;');
}

function caseText(cited: string): string {
  const { file, title } = locate(cited);
  return `[${cell(title)}](../${file})`;
}

function row({ rule, source, cases }: Rule): string {
  return `| ${cell(rule)} | ${source === 'specified' ? 'specified' : 'our choice'} | ${cases.map(caseText).join('<br>')} |`;
}

/** The ledger as the page of the documentation: a table for each section. */
export function ledgerMarkdown(): string {
  const sections = Map.groupBy(LEDGER, ({ section }) => section);
  const tables = [...sections].map(
    ([name, rules]) =>
      `## ${name}\n\n| rule | source | held by |\n| --- | --- | --- |\n${rules.map(row).join('\n')}\n`,
  );
  const specified = LEDGER.filter(({ source }) => source === 'specified').length;
  return `# Fidelity

What the sandbox holds of the service's specification, rule by rule, and the tests that prove it: ${specified} rules that
are specified, and ${LEDGER.length - specified} of our own where the specification is silent. \`npm run ledger\` writes this page; a test fails
when a rule has no test, when a test that is named here is gone, or when this page is out of date.

${tables.join('\n')}`;
}
