// Makes a fork your own: `npm run init -- --name "Acme Sync"`. It may run again. See docs/upgrade.md.
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const USAGE =
  'npm run init -- --name "Acme Sync" [--description TEXT] [--support help@acme.example] [--holder "Acme Ltd"] [--from URL]';
const INFO = 'src/integration/app-info.ts';
/** Of the formatter. */
const LINE_WIDTH = 110;

process.chdir(fileURLToPath(new URL('..', import.meta.url)));

function refuse(why) {
  process.stderr.write(`${why}\nNothing was changed. Usage: ${USAGE}\n`);
  process.exit(2);
}

function readArguments() {
  try {
    const names = ['name', 'description', 'support', 'holder', 'from'];
    const options = Object.fromEntries(names.map((name) => [name, { type: 'string' }]));
    return parseArgs({ options: { ...options, help: { type: 'boolean' } } }).values;
  } catch (error) {
    return refuse(error.message);
  }
}

/** @returns what git prints, or undefined if it fails, as without a repository */
function ask(...args) {
  try {
    return execFileSync('git', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
  } catch {
    return undefined;
  }
}

const withoutLogin = (url) => url?.replace(/^(https?:\/\/)[^/@]*@/, '$1');

const changed = [];
function edit(path, change) {
  if (!existsSync(path)) return;
  const before = readFileSync(path, 'utf8');
  const after = change(before);
  if (after === before) return;
  writeFileSync(path, after);
  changed.push(path);
}

/** As the formatter writes it: with the quotes that need fewer escapes. */
function quoted(text) {
  const quote = text.split("'").length > text.split('"').length ? '"' : "'";
  return quote + text.replaceAll('\\', '\\\\').replaceAll(quote, `\\${quote}`) + quote;
}

const { name = '', description, support, holder = name, from, help } = readArguments();
if (help) {
  process.stdout.write(`${USAGE}\n`);
  process.exit();
}
const slug = name
  .toLowerCase()
  .replace(/[^a-z0-9]+/g, '-')
  .replace(/^-|-$/g, '');
const isText = (text = '') => text.length <= 200 && !/[\n\r<>]/.test(text);
if (slug === '' || name.length > 60 || !isText(name)) {
  refuse('--name must be the name of your app: at most 60 characters, with a letter or a digit of a to z.');
}
if (![description, holder].every(isText)) refuse('--description and --holder must be a line of text.');
if (support !== undefined && !/^\S+@\S+\.\S+$|^https?:\/\/\S+$/.test(support)) {
  refuse('--support must be a mail address or the address of a page.');
}
if (ask('status', '--porcelain')) {
  refuse('Your working tree has changes: commit them first, so that you can go back.');
}

for (const [key, value] of Object.entries({ name, description, support })) {
  if (value === undefined) continue;
  const line = `  ${key}: ${quoted(value)},`;
  const member = line.length > LINE_WIDTH ? line.replace(': ', ':\n    ') : line;
  edit(INFO, (text) => text.replace(new RegExp(`^  ${key}:\\s+['"].*['"],$`, 'm'), () => member));
}
let template;
for (const file of ['package.json', 'package-lock.json']) {
  edit(file, (text) => {
    const content = JSON.parse(text);
    content.name = slug;
    if (content.packages) content.packages[''].name = slug;
    else {
      if (description !== undefined) content.description = description;
      const remote = ask('remote', 'get-url', 'upstream') ?? ask('remote', 'get-url', 'origin');
      const { url = remote, ...made } = content.template ?? {
        version: content.version,
        commit: ask('rev-parse', 'HEAD'),
      };
      template = { url: withoutLogin(from ?? url), ...made };
      content.template = template;
    }
    return `${JSON.stringify(content, null, 2)}\n`;
  });
}
edit('LICENSE', (text) => {
  const [notice = '', ...yours] = text.match(/^Copyright .*\r?\n/gm) ?? [];
  const kept = yours.reduce((rest, line) => rest.replace(line, ''), text);
  return kept.replace(notice, () => `${notice}Copyright (c) ${new Date().getFullYear()} ${holder}\n`);
});

const { url, version } = template;
const origin =
  url === undefined
    ? 'Nobody knows where later versions come from: run init again with --from URL.'
    : `Later versions come from ${url}. If that is a repository of yours, run init again with --from URL.`;
process.stdout.write(`This is ${name} (package ${slug}), made from version ${version} of the template.
${origin}
Changed: ${[...new Set(changed)].join(', ') || 'nothing'}.

Next: set ${/@example\.com/.test(readFileSync(INFO, 'utf8')) ? 'support and colour' : 'the colour'} in ${INFO}. docs/upgrade.md says where a logo, pages and a README go.
Then run npm run check and npm run test:quick, and commit.
`);
