import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join, relative, sep } from 'node:path';
import { describe, expect, test } from 'vitest';

const ROOT = join(import.meta.dirname, '..');

/** What each folder may import from, besides itself. `sync` and `changes` are peers. */
const MAY_IMPORT: Record<string, readonly string[]> = {
  contract: [],
  service: ['contract'],
  store: ['contract'],
  auth: ['service', 'store', 'contract'],
  changes: ['sync', 'service', 'store', 'contract'],
  sync: ['auth', 'changes', 'service', 'store', 'contract'],
  jobs: ['auth', 'sync', 'changes', 'service', 'store', 'contract'],
  web: ['auth', 'sync', 'changes', 'service', 'store', 'contract'],
  integration: ['changes'],
  sandbox: ['contract'],
  config: ['contract', 'runtime'],
  runtime: ['contract'],
};

/** Folders whose types another folder may name besides. */
const MAY_IMPORT_TYPES: Record<string, readonly string[]> = {
  // The handler's documents, tables and settings are the fork's.
  changes: ['integration'],
  config: ['integration'],
  integration: ['sync', 'service', 'store', 'contract'],
};

/** Modules that any folder but the sandbox may name the types of: everybody may be handed a logger. */
const TYPES_FOR_ALL = ['src/runtime/logging.ts'];

/** Functions that any folder but the sandbox may call where it quotes a foreign text. */
const FOR_ALL = 'src/runtime/redaction.ts';

/** Puts the app together; it may import what it likes, but the sandbox only where it is named below. */
const WIRING =
  /^src\/(app|boot|core|fork|own-views|start|web|worker|deliver|check-handler|demo|sandbox-start|sandbox-install|cli)\.ts$|^src\/demo\//;

/** Hands the fork's parts over. The tests of the fork's handler need them, too. */
const ENTRY_POINT =
  /^src\/(start|web|worker|deliver|check-handler|demo|sandbox-start|cli)\.ts$|^test\/support\/handler-test\.ts$/;

/** Binds the fork's own types for the handler's signature. */
const OWN_TYPES = 'src/integration/types.ts';

const MAY_IMPORT_SANDBOX = /^src\/(start|demo|sandbox-start)\.ts$|^src\/demo\/|^src\/sandbox\/|^test\//;

const MAY_READ_ENVIRONMENT =
  /^src\/config\/.+$|^src\/(app|boot|start|web|worker|demo|cli)\.ts$|^src\/demo\/start-parts\.ts$|^src\/sandbox\/(main|environment)\.ts$/;

/** Where the packages of the database may be imported, and where only their types. */
const DATABASE_PACKAGES = /^(kysely|pg|better-sqlite3)(\/|$)/;
const MAY_IMPORT_DATABASE = /^src\/store\//;
const MAY_IMPORT_KYSELY_TYPES = /^src\/(changes|integration)\//;

/** What belongs to the machine, not to the configuration: where programs are found, and how npm started us. */
const MACHINE: Record<string, readonly string[]> = {
  'src/runtime/private-redis.ts': ['PATH'],
  'src/runtime/preload.js': ['npm_lifecycle_event', 'DEBUG'],
  'src/runtime/node-version.js': ['npm_lifecycle_event'],
};

interface Import {
  from: string;
  /** A path from the root, or the name of a package. */
  to: string;
  isTypeOnly: boolean;
}

function list(...patterns: string[]): string[] {
  return globSync(patterns, { cwd: ROOT })
    .map((path) => path.split(sep).join('/'))
    .toSorted();
}

/** What a module imports, statically or not. */
function importsOf(file: string): Import[] {
  const source = readFileSync(join(ROOT, file), 'utf8');
  const statements = source.matchAll(/^\s*(?:import|export)\b([^'"`;]*?)\bfrom\s+'([^']+)'/gm);
  const bare = source.matchAll(
    /^\s*import\s+'([^']+)'|\bimport\(\s*['"]([^'"]+)['"]|\bnew URL\(\s*'([^']+\.[tj]s)'/gm,
  );
  const found = [
    ...[...statements].map(([, clause = '', target = '']) => ({
      target,
      isTypeOnly: /^\s*type\b/.test(clause),
    })),
    ...[...bare].map(([, side, dynamic, url]) => ({
      target: side ?? dynamic ?? url ?? '',
      isTypeOnly: false,
    })),
  ];
  return found.map(({ target, isTypeOnly }) => ({
    from: file,
    to: target.startsWith('.')
      ? relative(ROOT, join(ROOT, dirname(file), target))
          .split(sep)
          .join('/')
      : target,
    isTypeOnly,
  }));
}

/** `src/store/runs.ts` → `store`; `jobs/queues.ts` → `jobs`; `src/config/rules.ts` → `config`. */
function folderOf(file: string): string {
  const [first = '', second = ''] = file.split('/');
  return first === 'src' ? second.replace(/\.ts$/, '') : first;
}

const CODE = list('src/**/*.{ts,js}', 'jobs/**/*.{ts,js}');
const ALL_IMPORTS = [...CODE, ...list('test/**/*.ts')].flatMap(importsOf);
const IMPORTS = ALL_IMPORTS.filter(({ to }) => /^(src|jobs|test)\//.test(to));
const IMPORTS_OF_PACKAGES = ALL_IMPORTS.filter((found) => !IMPORTS.includes(found));

describe('imports', () => {
  test('are found, and lead to files that exist', () => {
    expect(CODE.length).toBeGreaterThan(100);
    expect(IMPORTS.length).toBeGreaterThan(CODE.length);
    expect(IMPORTS.filter(({ to }) => !existsSync(join(ROOT, to)))).toEqual([]);
  });

  test('every folder has its rule', () => {
    const folders = new Set(CODE.filter((file) => !WIRING.test(file)).map(folderOf));
    expect([...folders].toSorted()).toEqual(Object.keys(MAY_IMPORT).toSorted());
  });

  test('point one way: web, jobs → auth, sync, changes → service, store → contract', () => {
    const wrong = IMPORTS.filter(({ from, to, isTypeOnly }) => {
      const [folder, target] = [folderOf(from), folderOf(to)];
      if (WIRING.test(from) || from.startsWith('test/') || folder === target) return false;
      if (isTypeOnly && folder !== 'sandbox' && TYPES_FOR_ALL.includes(to)) return false;
      if (to === FOR_ALL && folder !== 'sandbox') return false;
      if (isTypeOnly && MAY_IMPORT_TYPES[folder]?.includes(target)) return false;
      return WIRING.test(to) || !MAY_IMPORT[folder]?.includes(target);
    });
    expect(wrong.map(({ from, to }) => `${from} → ${to}`)).toEqual([]);
  });

  test('of the fork’s own files are only in entry points, its own files and its own tests', () => {
    const wrong = IMPORTS.filter(({ from, to, isTypeOnly }) => {
      if (!to.startsWith('src/integration/') || ENTRY_POINT.test(from)) return false;
      return !/^(src|test)\/integration\//.test(from) && !(isTypeOnly && to === OWN_TYPES);
    });
    expect(wrong.map(({ from, to }) => `${from} → ${to}`)).toEqual([]);
    expect(IMPORTS.some(({ to }) => to === OWN_TYPES)).toBe(true);
  });

  test('of the sandbox are only where it is started, and in tests', () => {
    const wrong = IMPORTS.filter(
      ({ from, to }) => to.startsWith('src/sandbox/') && !MAY_IMPORT_SANDBOX.test(from),
    );
    expect(wrong.map(({ from, to }) => `${from} → ${to}`)).toEqual([]);
    expect(IMPORTS.some(({ from, to }) => from === 'src/start.ts' && to.startsWith('src/sandbox/'))).toBe(
      true,
    );
  });

  test('of the database’s packages are only in the store', () => {
    const wrong = IMPORTS_OF_PACKAGES.filter(({ from, to, isTypeOnly }) => {
      if (!DATABASE_PACKAGES.test(to) || from.startsWith('test/') || MAY_IMPORT_DATABASE.test(from))
        return false;
      return !(isTypeOnly && to === 'kysely' && MAY_IMPORT_KYSELY_TYPES.test(from));
    });
    expect(wrong.map(({ from, to }) => `${from} → ${to}`)).toEqual([]);
    expect(IMPORTS_OF_PACKAGES.some(({ from, to }) => from.startsWith('src/store/') && to === 'pg')).toBe(
      true,
    );
  });

  test('of tests are only in tests', () => {
    expect(IMPORTS.filter(({ from, to }) => to.startsWith('test/') && !from.startsWith('test/'))).toEqual([]);
  });

  test('go in no circle', () => {
    const targets = new Map<string, string[]>();
    for (const { from, to, isTypeOnly } of IMPORTS) {
      if (!isTypeOnly) targets.set(from, [...(targets.get(from) ?? []), to]);
    }
    const done = new Set<string>();
    const findCircle = (file: string, path: string[]): string[] | undefined => {
      if (path.includes(file)) return [...path.slice(path.indexOf(file)), file];
      if (done.has(file)) return undefined;
      for (const target of targets.get(file) ?? []) {
        const circle = findCircle(target, [...path, file]);
        if (circle !== undefined) return circle;
      }
      done.add(file);
      return undefined;
    };
    expect(CODE.map((file) => findCircle(file, [])).find((circle) => circle !== undefined)).toBeUndefined();
  });
});

test('the environment is read in one place, and where a process begins', () => {
  const readers = CODE.filter((file) => {
    const source = readFileSync(join(ROOT, file), 'utf8');
    const reads = source.matchAll(/\bprocess\.env\b(?:\.(\w+))?|\bfrom 'node:process'/g);
    return [...reads].some(([, name = '']) => !MACHINE[file]?.includes(name));
  });
  expect(readers.filter((file) => !MAY_READ_ENVIRONMENT.test(file))).toEqual([]);
  expect(readers).toContain('src/config/config.ts');
});
