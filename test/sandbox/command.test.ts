import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { spawnEntry } from '../support/spawn-entry.ts';
import { tempDir } from '../support/temp-dir.ts';

interface Line {
  pid: number;
  api_url: string;
  application: { client_id: string };
  companies: { name: string; administrator: string; api_tokens: { token: string }[] }[];
}

const start = (...args: string[]) =>
  spawnEntry('src/sandbox/main.ts', { SANDBOX_WINDOW_MS: '60000' }, { args });

describe('The command of the sandbox', () => {
  test('prints one line of JSON with addresses, credentials and companies', async () => {
    const seed = join(tempDir(), 'world.json');
    writeFileSync(seed, JSON.stringify({ companies: [{ name: 'Acme', plan: 'starter', contacts: 1 }] }));
    const command = start('--port', '0', '--json', '--seed', seed);
    await command.waitForOutput(/\n/);
    const [line = '', ...more] = command.output().split('\n');
    expect(more).toEqual(['']);
    const { pid, api_url, application, companies } = JSON.parse(line) as Line;
    expect([pid, application.client_id]).toEqual([command.pid, 'sandbox-partner-app']);
    expect(companies.map(({ name }) => name)).toEqual(['Acme']);
    const headers = { authorization: `Bearer ${companies[0]?.api_tokens[0]?.token}` };
    const contacts = await (await fetch(`${api_url}/contacts`, { headers })).json();
    expect(contacts).toMatchObject({ _results: [{ id: expect.any(String) }] });
    const me = await fetch(`${api_url}/teammates/${companies[0]?.administrator}`, { headers });
    expect(await me.json()).toMatchObject({ is_admin: true });
    await command.stop();
  });

  test('its flags win over variables', async () => {
    const command = start('--port', '0', '--window-ms=2000', '--json');
    const [line = ''] = await command.waitForOutput(/.+\n/);
    const { headers } = await fetch(`${(JSON.parse(line) as Line).api_url}/me`);
    const ahead = Number(headers.get('x-ratelimit-reset')) - Date.now() / 1000;
    expect(ahead).toBeLessThan(3);
    await command.stop();
  });

  test('names every wrong argument at once', async () => {
    const command = start(
      'serve',
      '--prot',
      '1',
      '--json=x',
      '--changes',
      '202',
      '--port',
      '99999',
      '--seed',
    );
    expect((await command.exited).code).toBe(1);
    expect(command.output().split('\n')).toEqual([
      'sandbox: serve is not understood: see --help',
      'sandbox: --prot is not understood: see --help',
      'sandbox: 1 is not understood: see --help',
      'sandbox: --json is not understood: see --help',
      'sandbox: --seed needs a value',
      'sandbox: --port must be a whole number from 0 to 65535',
      'sandbox: --changes must be 200 or 204',
      '',
    ]);
  });

  test.each([
    [['--seed', 'none.json'], /^sandbox: seed: none\.json cannot be read: ENOENT.*\n$/],
    [['--public-url', 'https://a.example/b'], /^sandbox: --public-url must be an origin.*\n$/],
    [['--host', '0.0.0.0'], /^sandbox: .* on this machine alone.*\n$/],
  ])('%j ends it with one clear line', async (args, words) => {
    const command = start('--port', '0', ...args);
    expect((await command.exited).code).toBe(1);
    expect(command.output()).toMatch(words);
  });

  test('--help lists every flag, and ends it well', async () => {
    const command = start('--help');
    expect((await command.exited).code).toBe(0);
    for (const flag of [
      'port',
      'host',
      'json',
      'seed',
      'public-url',
      'expires-at',
      'changes',
      'latency-ms',
    ]) {
      expect(command.output()).toContain(`  --${flag} `);
    }
  });

  test('reads no .env of the folder that it runs in', async () => {
    const cwd = tempDir();
    writeFileSync(join(cwd, '.env'), 'SANDBOX_WINDOW_MS=none\n');
    const command = spawnEntry('src/sandbox/main.ts', {}, { cwd, args: ['--port', '0'] });
    await command.waitForOutput(/Front page/);
    await command.stop();
  });
});
