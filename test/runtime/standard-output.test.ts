import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, constants, openSync, readFileSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { StandardOutput } from '../../src/runtime/logging/standard-output.ts';
import { findFreePort } from '../support/free-port.ts';
import { tempDir } from '../support/temp-dir.ts';
import { startTestApp } from '../support/test-app.ts';
import { waitFor } from '../support/wait-for.ts';

/** More than what a pipe takes while nobody reads it. */
const FULL = 512 * 1024;
const MOST_KEPT = 4 * 1024 * 1024;
const ROOT = join(import.meta.dirname, '../..');

/** A pipe of which somebody reads when the test says so. */
function openPipe() {
  const path = join(tempDir(), 'pipe');
  execFileSync('mkfifo', [path]);
  const reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  const writer = openSync(path, constants.O_WRONLY | constants.O_NONBLOCK);
  onTestFinished(() => {
    for (const fd of [reader, writer]) closeSync(fd);
  });
  const buffer = Buffer.alloc(FULL);
  const seen: string[] = [];
  /** What there is to read just now. */
  const read = () => {
    try {
      seen.push(buffer.toString('utf8', 0, readSync(reader, buffer)));
    } catch {
      // Nothing just now.
    }
    return seen.join('');
  };
  return { writer, read };
}

/** Lines that tell their number; together so many bytes at the least. */
function linesOf(bytes: number): string[] {
  const length = 1_000;
  return Array.from(
    { length: Math.ceil(bytes / length) },
    (_, n) => `${String(n).padEnd(length - 1, '.')}\n`,
  );
}

test('a reader that stands still keeps nobody waiting, and has every line in its order when it goes on', async () => {
  const { writer, read } = openPipe();
  const output = new StandardOutput(writer);
  const lines = linesOf(FULL);
  // It would not come back from here if it waited.
  for (const line of lines) output.write(line);
  const all = lines.join('');
  await waitFor(() => read().length === all.length);
  expect(read()).toBe(all);
  output.write('at once\n');
  expect(read()).toBe(`${all}at once\n`);
});

test('what is beyond its backlog is lost, and told when the reader goes on', async () => {
  const { writer, read } = openPipe();
  const output = new StandardOutput(writer);
  const lines = linesOf(MOST_KEPT + FULL);
  for (const line of lines) output.write(line);
  await waitFor(() => read().includes('are lost'));
  const seen = read().trimEnd().split('\n');
  const told = JSON.parse(seen.pop() ?? '');
  expect(told).toMatchObject({ level: 'warn', msg: 'lines of the log are lost' });
  expect(told.lines).toBeGreaterThan(0);
  expect(seen.length + told.lines).toBe(lines.length);
  expect(seen.join('\n')).toBe(lines.slice(0, seen.length).join('').trimEnd());
});

test('the last lines of a process that ends at once come to a reader that is only slow', async () => {
  const script = `
    const { StandardOutput } = await import(${JSON.stringify(join(ROOT, 'src/runtime/logging/standard-output.ts'))});
    const output = new StandardOutput();
    for (let n = 0; n < ${FULL / 1024}; n++) output.write(String(n).padEnd(1023, '.') + '\\n');
    process.exit(0);`;
  const file = join(tempDir(), 'log');
  const command = `'${process.execPath}' --input-type=module -e "$SCRIPT" | cat > '${file}'`;
  execFileSync('sh', ['-c', command], { env: { ...process.env, SCRIPT: script } });
  expect(readFileSync(file, 'utf8').trimEnd().split('\n').length).toBe(FULL / 1024);
});

const testApp = await startTestApp({ workers: false });

test.each(['pipe', 'socket'] as const)(
  'a process whose log goes into a %s that nobody reads answers, and ends in order on a signal',
  async (kind) => {
    const pipe = openPipe();
    const port = await findFreePort();
    const { PATH = '', HOME = '' } = process.env;
    const web = spawn(
      process.execPath,
      ['--import', join(ROOT, 'src/runtime/preload.js'), join(ROOT, 'src/web.ts')],
      {
        cwd: tempDir(),
        env: { PATH, HOME, ...testApp.env, PORT: String(port), LOG_LEVEL: 'trace' },
        // Node makes a socket of its own.
        stdio: ['ignore', kind === 'pipe' ? pipe.writer : 'pipe', 'inherit'],
      },
    );
    onTestFinished(() => void web.kill('SIGKILL'));
    const ended = once(web, 'exit');
    const ask = (path: string) => fetch(`http://127.0.0.1:${port}${path}`);
    await waitFor(() =>
      ask('/healthz').then(
        ({ ok }) => ok,
        () => false,
      ),
    );
    // Each leaves a line, and together they are more than is taken.
    const path = `/${'x'.repeat(400)}`;
    for (let asked = 0; asked < FULL; asked += 10 * path.length)
      await Promise.all(Array.from({ length: 10 }, () => ask(path)));
    expect((await ask('/healthz')).status).toBe(200);
    web.kill('SIGTERM');
    expect(await ended).toEqual([0, null]);
  },
  60_000,
);
