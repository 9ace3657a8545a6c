// Makes a fresh fork your own: `npm run init -- --name "Acme Sync" [--support MAIL] [--without bench]`.
import { execFileSync } from 'node:child_process';
import { existsSync, globSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const USAGE = 'npm run init -- --name "Acme Sync" [--support help@acme.example] [--without bench]';
const INFO = 'src/integration/app-info.ts';
/** What only the project that you forked needs. */
const NOT_YOURS = ['CHANGELOG.md', 'test/sizes.test.ts', 'test/init.test.ts', '.ci/init.js'];

process.chdir(fileURLToPath(new URL('..', import.meta.url)));

function refuse(why) {
  process.stderr.write(`${why}\nNothing was changed. Usage: ${USAGE}\n`);
  process.exit(2);
}

function readArguments() {
  try {
    const text = { type: 'string' };
    const { values } = parseArgs({
      options: { name: text, support: text, without: text, help: { type: 'boolean' } },
    });
    return values;
  } catch (error) {
    return refuse(error.message);
  }
}

function edit(path, change) {
  const before = readFileSync(path, 'utf8');
  const after = change(before);
  if (after !== before) writeFileSync(path, after);
}

/** As the formatter writes it: with double quotes only where that saves an escape. */
const quoted = (text) => (text.includes("'") ? JSON.stringify(text) : `'${text.replaceAll('\\', '\\\\')}'`);
const withoutLines = (text, pattern) =>
  text
    .split('\n')
    .filter((line) => !pattern.test(line))
    .join('\n')
    .replace(/\n{3,}/g, '\n\n');

const { name = '', support, without, help } = readArguments();
if (help) {
  process.stdout.write(`${USAGE}\n`);
  process.exit();
}
const slug = name
  .toLowerCase()
  .replace(/[^a-z0-9]+/g, '-')
  .replace(/^-|-$/g, '');
if (slug === '' || name.length > 60 || /[\n\r<>]/.test(name)) {
  refuse('--name must be the name of your app: at most 60 characters, with a letter or a digit of a to z.');
}
if (support !== undefined && !/^\S+@\S+\.\S+$|^https?:\/\/\S+$/.test(support)) {
  refuse('--support must be a mail address or the address of a page.');
}
if (without !== undefined && without !== 'bench') refuse('--without knows one thing to leave out: bench.');
if (existsSync('.git') && execFileSync('git', ['status', '--porcelain'], { encoding: 'utf8' }) !== '') {
  refuse('Your working tree has changes: commit them first, so that you can go back.');
}

edit(INFO, (text) => {
  const named = text.replace(/name: '.*'/, () => `name: ${quoted(name)}`);
  return support === undefined ? named : named.replace(/support: '.*'/, () => `support: ${quoted(support)}`);
});
for (const file of ['package.json', 'package-lock.json']) {
  edit(file, (text) => {
    const content = JSON.parse(text);
    content.name = slug;
    if (content.packages) content.packages[''].name = slug;
    const gone = without === 'bench' ? /^(init|bench)/ : /^init/;
    for (const script of Object.keys(content.scripts ?? {}))
      if (gone.test(script)) delete content.scripts[script];
    return `${JSON.stringify(content, null, 2)}\n`;
  });
}
const removed = without === 'bench' ? [...NOT_YOURS, 'test/bench', 'docs/performance.md'] : NOT_YOURS;
for (const path of removed) rmSync(path, { recursive: true, force: true });
const gone =
  without === 'bench' ? /npm run (init|bench)|performance\.md|sizes\.test/ : /npm run init|sizes\.test/;
for (const page of globSync(['*.md', 'docs/*.md', 'compose.yaml'])) {
  edit(page, (text) =>
    withoutLines(text, gone)
      .replace(/(?<![-\w])partner-app\b/g, slug)
      .replace(/^# Partner app$/m, () => `# ${name}`),
  );
}
edit('test/sandbox/package.test.ts', (text) => text.replaceAll('partner-app', slug));

process.stdout.write(`This is ${name} now (package ${slug}).
Removed: ${removed.join(', ')}.

Next: ${support === undefined ? `set support and colour in ${INFO}` : `set the colour in ${INFO}`}, put your logo into views/assets/icon.svg,
and rewrite the first lines of README.md. Then run npm run check and npm run test:quick, and commit.
`);
