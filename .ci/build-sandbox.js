// Makes dist/sandbox, the sandbox as a package for projects that do not use this app: `npm run build:sandbox`.
// npm runs it after each install, also without devDependencies, and with the Node of the machine.
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const OUT = join(ROOT, 'dist/sandbox');
const PAGES = join(ROOT, 'src/sandbox/pages');
const ENTRIES = {
  sandbox: 'sandbox',
  'sandbox/vitest': 'vitest',
  'sandbox/jest': 'jest',
  'sandbox/node-test': 'node-test',
};
/** Vitest itself is no CommonJS. */
const COMMON = Object.values(ENTRIES).filter((name) => name !== 'vitest');
const COMMAND = 'main';
/** Its name in every fork, as docs/sandbox.md has it. */
const NAME = 'partner-app';
const NODE_MAJOR = 22;
/** Stands before all code: older versions of Node lack what it calls. */
const CHECK = `if (Number.parseInt(process.versions.node) < ${NODE_MAJOR}) {
  throw new Error('Node ${NODE_MAJOR} or newer is needed, this is ' + process.versions.node + '.');
}`;
/** Loaded by the control panel in the browser. */
const MORPH = 'node_modules/idiomorph/dist/idiomorph.esm.js';

const read = (path) => readFileSync(join(ROOT, path), 'utf8');

function write(path, text) {
  mkdirSync(dirname(join(OUT, path)), { recursive: true });
  writeFileSync(join(OUT, path), text);
}

/** Writes the JavaScript with all that it imports. @returns the packages in it */
async function bundleCode(rolldown) {
  const bundleOf = (names) =>
    rolldown({
      input: Object.fromEntries(names.map((name) => [name, join(ROOT, `src/sandbox/${name}.ts`)])),
      platform: 'node',
      external: ['vitest'],
      // What it would look up by itself lies beside the package's files.
      checks: { emptyImportMeta: false },
    });
  const dir = join(OUT, 'lib');
  const bundle = await bundleOf([...Object.values(ENTRIES), COMMAND]);
  const { output } = await bundle.write({ dir, banner: CHECK, chunkFileNames: '[name]-shared.js' });
  const files = { entryFileNames: '[name].cjs', chunkFileNames: '[name]-shared.cjs' };
  await (await bundleOf(COMMON)).write({ dir, format: 'cjs', banner: CHECK, ...files });
  const modules = output.flatMap(({ moduleIds = [] }) => moduleIds);
  const packages = modules.map((id) => /node_modules[\\/]((?:@[^\\/]+[\\/])?[^\\/]+)/.exec(id)?.[1]);
  return [...new Set(packages.filter((name) => name !== undefined))].toSorted();
}

/** Writes the declarations that the entries lead to. */
function declareTypes() {
  const temporary = join(ROOT, 'dist/declarations');
  const config = {
    extends: '../tsconfig.json',
    compilerOptions: {
      ...{ noEmit: false, declaration: true, emitDeclarationOnly: true, noCheck: true },
      ...{ rootDir: '../src', outDir: 'declarations' },
    },
    files: Object.values(ENTRIES).map((name) => `../src/sandbox/${name}.ts`),
    include: [],
  };
  writeFileSync(join(ROOT, 'dist/tsconfig.json'), JSON.stringify(config));
  const tsc = join(ROOT, 'node_modules/typescript/bin/tsc');
  execFileSync(process.execPath, [tsc, '-p', join(ROOT, 'dist/tsconfig.json')], { stdio: 'inherit' });
  const waiting = Object.values(ENTRIES).map((name) => `sandbox/${name}.d.ts`);
  for (const path of waiting) {
    const text = readFileSync(join(temporary, path), 'utf8').replace(/(from '\.[^']*)\.ts'/g, "$1.js'");
    write(`types/${path}`, text);
    for (const [, target] of text.matchAll(/from '(\.[^']*)\.js'/g)) {
      const found = join(dirname(path), `${target}.d.ts`).replaceAll('\\', '/');
      if (!waiting.includes(found)) waiting.push(found);
    }
  }
  // The same declarations for `require`.
  cpSync(join(OUT, 'types'), join(OUT, 'common'), { recursive: true });
  write('common/package.json', '{ "type": "commonjs" }\n');
  rmSync(temporary, { recursive: true });
  rmSync(join(ROOT, 'dist/tsconfig.json'));
}

function describePackage() {
  const { version, license } = JSON.parse(read('package.json'));
  const paths = Object.entries(ENTRIES).map(([path, entry]) => [
    `./${path}`,
    {
      ...(COMMON.includes(entry) && {
        require: { types: `./common/sandbox/${entry}.d.ts`, default: `./lib/${entry}.cjs` },
      }),
      types: `./types/sandbox/${entry}.d.ts`,
      default: `./lib/${entry}.js`,
    },
  ]);
  const manifest = {
    ...{ name: NAME, version, license, type: 'module', engines: { node: `>=${NODE_MAJOR}` } },
    description: 'A customer-messaging service in one process, to test its clients with.',
    exports: Object.fromEntries(paths),
    bin: { 'partner-sandbox': 'lib/command.js' },
    peerDependencies: { vitest: '*' },
    peerDependenciesMeta: { vitest: { optional: true } },
  };
  write('package.json', `${JSON.stringify(manifest, null, 2)}\n`);
}

const COMMAND_CODE = `#!/usr/bin/env node
import('./${COMMAND}.js').catch((error) => {
  process.stderr.write('sandbox: ' + error.message + '\\n');
  process.exit(1);
});
`;

async function build({ rolldown }) {
  rmSync(join(ROOT, 'dist'), { recursive: true, force: true });
  const packages = await bundleCode(rolldown);
  declareTypes();
  cpSync(PAGES, join(OUT, 'lib'), { recursive: true, filter: (path) => !path.endsWith('.ts') });
  cpSync(join(ROOT, MORPH), join(OUT, 'lib', basename(MORPH)));
  describePackage();
  write('lib/command.js', COMMAND_CODE);
  write('README.md', read('docs/sandbox.md'));
  const licences = [...packages, 'idiomorph'].map(
    (name) => `${name}\n\n${read(`node_modules/${name}/LICENSE`)}`,
  );
  write('LICENSE', [read('LICENSE'), ...licences].join('\n---\n\n'));
}

const bundler = await import('rolldown').catch((error) => {
  if (error.code !== 'ERR_MODULE_NOT_FOUND') throw error;
});
if (bundler !== undefined) await build(bundler);
else process.stdout.write('The sandbox is not packed: its build needs the devDependencies.\n');
