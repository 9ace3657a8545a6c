// Takes a later version of the template into a fork: `npm run upgrade [-- VERSION] [--from URL]`. See docs/upgrade.md.
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { delimiter } from 'node:path';
import { isDeepStrictEqual, parseArgs } from 'node:util';

const USAGE = 'npm run upgrade [-- VERSION] [--from URL]';
const SCRIPT = '.ci/upgrade.js';
/** The template's branches and tags, as fetched. */
const REFS = 'refs/template';
/** What a fork has stays as it is, whatever upstream does with it. */
const YOURS = ['src/integration', 'test/integration', ':!src/integration/types.ts'];
const MANIFESTS = ['package.json', 'package-lock.json'];
/** Members of package.json in which upstream's value wins if both sides changed it. */
const UPSTREAMS = ['dependencies', 'devDependencies', 'overrides', 'allowScripts', 'engines'];
/** What `git status` says of a file that only a person can merge. */
const CONFLICTS = {
  UU: 'both sides changed the same lines',
  AA: 'both sides added it',
  UD: 'you changed it, upstream removed it',
  DU: 'you removed it, upstream changed it',
  ...Object.fromEntries(['AU', 'UA', 'DD'].map((code) => [code, 'both sides renamed it'])),
};

const say = (text) => process.stdout.write(`${text}\n`);

class Refusal extends Error {}

/** @returns what git prints, without the last line break. @throws Error with git's words */
function git(args, options = {}) {
  const stdio = ['pipe', 'pipe', 'pipe'];
  const output = execFileSync('git', ['-c', 'core.quotePath=false', ...args], {
    encoding: 'utf8',
    stdio,
    maxBuffer: 2 ** 30,
    ...options,
  });
  return output.replace(/\n$/, '');
}

/** As git(), but '' if git fails. */
function ask(...args) {
  try {
    return git(args);
  } catch {
    return '';
  }
}

const withoutLogin = (url) => url.replace(/^(https?:\/\/)[^/@]*@/, '$1');
const lines = (text) => text.split('\n').filter((line) => line !== '');
const show = (commit, path) => ask('show', `${commit}:${path}`);
const showJson = (commit, path) => JSON.parse(show(commit, path) || '{}');
/** Whether a commit is one of the template's. */
const isTemplates = (commit) => ask('for-each-ref', '--count=1', `--contains=${commit}`, REFS) !== '';
const commitOf = (name) => ask('rev-parse', '--verify', '--quiet', `${name}^{commit}`);

/** Runs npm with the Node of the machine, as `npm ci` replaces ours. @returns whether it succeeded */
function npm(...args) {
  say(`\n> npm ${args.join(' ')}`);
  const own = process.env.PATH.split(delimiter).filter((folder) => !folder.includes('node_modules'));
  const env = { ...process.env, PATH: own.join(delimiter) };
  const { status } = spawnSync('npm', args, { stdio: 'inherit', env, shell: process.platform === 'win32' });
  return status === 0;
}

function readArguments() {
  try {
    const options = { from: { type: 'string' }, help: { type: 'boolean' } };
    const { values, positionals } = parseArgs({ options, allowPositionals: true });
    if (positionals.length > 1) throw new Error('Name one version.');
    return { ...values, version: positionals[0] };
  } catch (error) {
    throw new Refusal(`${error.message} Usage: ${USAGE}`);
  }
}

function checkTree() {
  const top = ask('rev-parse', '--show-toplevel');
  if (top === '' || ask('rev-parse', '--show-prefix') !== '')
    throw new Refusal('The fork must be the top of a git repository.');
  if (ask('rev-parse', '--is-shallow-repository') === 'true')
    throw new Refusal('This clone is shallow: run git fetch --unshallow first.');
  if (git(['status', '--porcelain']) !== '')
    throw new Refusal(
      'Your working tree has changes: commit them first, so that you can go back.\nFrom an upgrade that waits, git reset --hard goes back.',
    );
}

function fetchTemplate(url) {
  say(`Fetching ${withoutLogin(url)}`);
  const refs = ['heads/*', 'tags/*'].map((part) => `+refs/${part}:${REFS}/${part}`);
  try {
    git(['fetch', '--quiet', '--no-tags', '--prune', url, ...refs, `+HEAD:${REFS}/head`]);
  } catch (error) {
    throw new Refusal(`The template could not be fetched:\n${error.stderr.trim()}`);
  }
}

/** The commit of a version: the newest release if none is named, else of a tag, a branch or a commit. */
function findTarget(version) {
  const tags = ask('for-each-ref', '--sort=-v:refname', '--format=%(refname)', `${REFS}/tags/v*`);
  const newest = lines(tags).find((tag) => /\/v\d+\.\d+\.\d+$/.test(tag)) ?? `${REFS}/head`;
  const names = [`${REFS}/tags/v${version}`, `${REFS}/tags/${version}`, `${REFS}/heads/${version}`];
  const commit = commitOf(version);
  if (commit !== '' && commit.startsWith(version) && isTemplates(commit)) names.push(commit);
  const found = (version === undefined ? [newest] : names).map(commitOf).find((one) => one !== '');
  if (found === undefined) throw new Refusal(`The template has no version ${version}.`);
  return found;
}

/** The commit of the template that the fork has: what both sides have changed since is compared with it. */
function findBase({ commit, version }, target) {
  // Also after an upgrade that was taken back: the note went back with it, the history did not.
  if (commit && isTemplates(commit)) return commit;
  const shared = ask('merge-base', 'HEAD', target);
  if (shared !== '') return shared;
  // A copy without the template's history: its first commit, or the one that `npm run init` found, has the same files.
  const trees = new Map(lines(ask('log', '--format=%T %H', target)).map((line) => line.split(' ')));
  const firsts = lines(ask('rev-list', '--max-parents=0', 'HEAD'));
  const same = [commit, ...firsts].map((one) => trees.get(ask('rev-parse', `${one}^{tree}`)));
  const base = same.find((one) => one !== undefined) ?? commitOf(`${REFS}/tags/v${version}`);
  if (base !== '') return base;
  throw new Refusal(
    'It is not known which commit of the template this fork comes from: set template.commit in package.json.',
  );
}

/** Upstream's version with the fork's own files as the template had them, so that a merge leaves them alone. */
function upstreamCommit(base, target) {
  const env = { ...process.env, GIT_INDEX_FILE: git(['rev-parse', '--git-path', 'template-index']) };
  const own = git(['diff', '--name-only', '--no-renames', base, target, '--', ...YOURS, ...MANIFESTS]);
  git(['read-tree', target], { env });
  if (own !== '') {
    const entries = ['HEAD', base].map((commit) => ask('ls-tree', '-r', commit, '--', ...lines(own)));
    git(['update-index', '--index-info'], { env, input: `${lines(entries.join('\n')).join('\n')}\n` });
  }
  const tree = git(['write-tree'], { env });
  rmSync(env.GIT_INDEX_FILE, { force: true });
  return git(['commit-tree', tree, '-p', base, '-m', 'The template without what is yours']);
}

/** Merges three objects key by key. Where both sides changed a value, `wins` says which one stays. */
function mergeKeys(base = {}, ours = {}, theirs = {}, wins = () => 'ours', isDeep = true) {
  const isObject = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);
  const merged = {};
  for (const key of new Set([...Object.keys(theirs), ...Object.keys(ours)])) {
    const sides = { base: base[key], ours: ours[key], theirs: theirs[key] };
    const { ours: own, theirs: their } = sides;
    if (isDeepStrictEqual(own, sides.base)) merged[key] = their;
    else if (isDeepStrictEqual(their, sides.base)) merged[key] = own;
    else if (isDeep && isObject(own) && isObject(their))
      merged[key] = mergeKeys(sides.base, own, their, () => wins(key));
    else merged[key] = sides[wins(key)];
  }
  return merged;
}

const sorted = (object = {}) =>
  Object.fromEntries(Object.entries(object).sort(([one], [other]) => one.localeCompare(other, 'en')));

/** package.json and the lock file: the fork's name and additions with upstream's versions. */
function mergeManifests(base, target, template) {
  const [file, lockFile] = MANIFESTS;
  const sides = (path) => [base, 'HEAD', target].map((commit) => showJson(commit, path));
  const wins = (key) => (UPSTREAMS.includes(key) ? 'theirs' : 'ours');
  const merged = { ...mergeKeys(...sides(file), wins), template };
  for (const group of ['dependencies', 'devDependencies']) {
    if (merged[group] !== undefined) merged[group] = sorted(merged[group]);
  }
  const locks = sides(lockFile);
  const packages = mergeKeys(...locks.map((lock) => lock.packages), () => 'theirs', false);
  const root = { ...packages[''] };
  for (const key of Object.keys(root)) if (key in merged) root[key] = merged[key];
  const { name, version } = merged;
  const lock = { ...locks[2], name, version, packages: sorted({ ...packages, '': root }) };
  for (const [path, content] of [
    [file, merged],
    [lockFile, lock],
  ])
    writeFileSync(path, `${JSON.stringify(content, null, 2)}\n`);
  git(['add', ...MANIFESTS]);
}

/** Git would overwrite files that it ignores. */
function checkInTheWay(base, target) {
  const added = lines(git(['diff', '--name-only', '--no-renames', '--diff-filter=A', base, target]));
  const inTheWay = added.filter((path) => existsSync(path) && ask('ls-files', '--', path) === '');
  if (inTheWay.length > 0)
    throw new Refusal(`The version has files that lie here: move ${inTheWay.join(', ')} away.`);
}

/** What package.json has, where both sides changed it: a line each. */
function decisionsOf(base, target) {
  const [before, ours, theirs] = [base, 'HEAD', target].map((commit) => showJson(commit, MANIFESTS[0]));
  return ['scripts', ...UPSTREAMS].flatMap((group) => {
    const [old = {}, own = {}, next = {}] = [before, ours, theirs].map((one) => one[group]);
    const both = Object.keys(own).filter((key) => {
      const [first, second, third] = [old, own, next].map((one) => JSON.stringify(one[key]));
      return third !== undefined && second !== first && third !== first && second !== third;
    });
    return both.map((key) => `  ${group}, ${key}: yours is ${own[key]}, the template's ${next[key]}`);
  });
}

/** Merges into the working tree, as a merge that waits for its commit. @returns the files left to a person */
function merge(base, target, template) {
  const commit = upstreamCommit(base, target);
  const settings = ['merge.directoryRenames=false', 'rerere.enabled=false', 'core.quotePath=false'];
  const picking = [...settings.flatMap((one) => ['-c', one]), 'cherry-pick', '--no-commit', commit];
  const { status, stderr } = spawnSync('git', picking, { encoding: 'utf8' });
  const conflicts = lines(git(['status', '--porcelain'])).filter((line) => CONFLICTS[line.slice(0, 2)]);
  if (status !== 0 && conflicts.length === 0) throw new Refusal(`git could not merge:\n${stderr.trim()}`);
  writeFileSync(git(['rev-parse', '--git-path', 'MERGE_HEAD']), `${target}\n`);
  writeFileSync(
    git(['rev-parse', '--git-path', 'MERGE_MSG']),
    `Take version ${template.version} of the template\n`,
  );
  mergeManifests(base, target, template);
  return conflicts.map((line) => `  ${line.slice(3)}: ${CONFLICTS[line.slice(0, 2)]}`);
}

/** The entries of CHANGELOG.md above the one of a version. */
function newsSince(version, target) {
  const entries = show(target, 'CHANGELOG.md')
    .split(/^(?=## )/m)
    .slice(1);
  const last = entries.findIndex((entry) => entry.startsWith(`## ${version},`));
  return entries
    .slice(0, last === -1 ? entries.length : last)
    .join('')
    .trim();
}

/** Installs and tests. @returns the command that failed, if one did */
function findFailure() {
  let isInstalled = npm('ci');
  if (!isInstalled) {
    say('\nPerhaps the lock file does not fit your packages: it is written anew.');
    isInstalled = npm('run', 'lock') && npm('ci');
    git(['add', ...MANIFESTS]);
  }
  if (!isInstalled) return 'npm ci';
  if (!npm('run', 'check')) return 'npm run check';
  return npm('run', 'test:quick', '--', '--reporter=dot') ? undefined : 'npm run test:quick';
}

function upgrade() {
  const { from, help, version } = readArguments();
  if (help) return say(USAGE);
  checkTree();
  const { template = {} } = showJson('HEAD', 'package.json');
  const url = from ?? template.url;
  if (!url) throw new Refusal(`Run npm run init first, or say where the template is: ${USAGE}`);
  fetchTemplate(url);
  const target = findTarget(version);
  const base = findBase(template, target);
  const [had, next] = [base, target].map((commit) => showJson(commit, 'package.json').version);
  const shared = ask('merge-base', base, target);
  if (shared === target) {
    say(`This fork has version ${had} of ${withoutLogin(url)}. There is nothing to do.`);
    return say('If that address is a repository of your own, name the template with --from URL.');
  }
  if (shared !== base) {
    throw new Refusal(
      `Version ${next} lacks what this fork has of the template (${base.slice(0, 9)}): name a later one, like -- main.`,
    );
  }
  // The newer script knows better how to take its version.
  const script = show(target, SCRIPT);
  if (script !== '' && `${script}\n` !== readFileSync(SCRIPT, 'utf8') && !process.env.UPGRADES_BY_NEWER) {
    const args = ['--input-type=module', '-', ...process.argv.slice(2)];
    const env = { ...process.env, UPGRADES_BY_NEWER: 'yes' };
    const stdio = ['pipe', 'inherit', 'inherit'];
    process.exitCode = spawnSync(process.execPath, args, { input: script, env, stdio }).status ?? 1;
    return;
  }

  say(`From version ${had} (${base.slice(0, 9)}) to ${next} (${target.slice(0, 9)})`);
  checkInTheWay(base, target);
  const decisions = decisionsOf(base, target);
  const noted = { url: withoutLogin(template.url ?? url), version: next, commit: target };
  const conflicts = merge(base, target, noted);
  const failed = conflicts.length === 0 ? findFailure() : undefined;
  say(`\n${newsSince(had, target)}\n`);
  if (decisions.length > 0) {
    say(
      `Both sides changed package.json: scripts stay yours, all else is the template's.\n${decisions.join('\n')}\n`,
    );
  }
  if (conflicts.length > 0) {
    say(`Version ${next} is merged, but for ${conflicts.length} of your changes:\n${conflicts.join('\n')}\n`);
    say('Edit these files and "git add" them. Then run npm ci, npm run check, npm test, and git commit.');
  } else if (failed !== undefined) {
    say(`Version ${next} is merged without a conflict, but "${failed}" fails: see above.`);
    say('Repair it, "git add" what you change, and run git commit.');
  } else {
    git(['commit', '--quiet', '--no-edit']);
    say(`This fork has version ${next} now, in a commit of its own. Run npm test before you deploy it.`);
    return;
  }
  say('To go back: git reset --hard && npm ci');
  process.exitCode = 1;
}

try {
  upgrade();
} catch (error) {
  const isRefusal = error instanceof Refusal;
  const end = isRefusal ? 'Nothing was changed.' : 'To go back: git reset --hard';
  process.stderr.write(`${isRefusal ? error.message : error.stderr || error.stack}\n${end}\n`);
  process.exitCode = isRefusal ? 2 : 1;
}
