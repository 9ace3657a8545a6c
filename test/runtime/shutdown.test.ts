import { EventEmitter } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { installShutdown } from '../../src/runtime/shutdown.ts';
import { spawnEntry } from '../support/spawn-entry.ts';
import { tempDir } from '../support/temp-dir.ts';
import { testLogger } from '../support/test-logger.ts';

function setUp(limitMs = 10_000) {
  const { logger, lines } = testLogger();
  const source = new EventEmitter();
  const { promise: exited, resolve: exit } = Promise.withResolvers<number>();
  const clock = { now: 1_000 };
  const codes: number[] = [];
  const shutdown = installShutdown({
    logger,
    limitMs,
    source,
    now: () => clock.now,
    exit: (code) => {
      codes.push(code);
      exit(code);
    },
  });
  return { shutdown, source, exited, codes, lines, clock };
}

describe('in order', () => {
  it('closes what was opened last first, one after the other', async () => {
    const { shutdown, source, exited } = setUp();
    const order: string[] = [];
    for (const name of ['redis', 'queue', 'server']) {
      shutdown.add(name, async () => {
        order.push(`${name} closing`);
        await new Promise((resolve) => setImmediate(resolve));
        order.push(`${name} closed`);
      });
    }
    source.emit('SIGTERM');
    expect(await exited).toBe(0);
    expect(order).toEqual([
      'server closing',
      'server closed',
      'queue closing',
      'queue closed',
      'redis closing',
      'redis closed',
    ]);
  });

  it('goes on after a closer that throws, and tells by the exit code', async () => {
    const { shutdown, source, exited, lines } = setUp();
    let closed = false;
    shutdown.add('redis', () => {
      closed = true;
    });
    shutdown.add('server', () => {
      throw new Error('stuck');
    });
    source.emit('SIGINT');
    expect(await exited).toBe(1);
    expect(closed).toBe(true);
    expect(lines).toContainEqual(
      expect.objectContaining({
        level: 'error',
        closing: 'server',
        err: expect.objectContaining({ message: 'stuck' }),
      }),
    );
  });

  it('can be asked for, with an exit code, and happens once', async () => {
    const { shutdown, codes } = setUp();
    let times = 0;
    shutdown.add('once', () => {
      times += 1;
    });
    await Promise.all([shutdown.stop('demo is over', 3), shutdown.stop('again')]);
    expect(codes).toEqual([3]);
    expect(times).toBe(1);
  });
});

describe('in a hurry', () => {
  it('says what hangs when the limit is over', async () => {
    const { shutdown, source, exited, lines } = setUp(20);
    shutdown.add('redis', () => {});
    shutdown.add('worker', () => new Promise(() => {}));
    source.emit('SIGTERM');
    expect(await exited).toBe(1);
    expect(lines.at(-1)).toMatchObject({ level: 'fatal', hangs: 'worker', open: ['worker', 'redis'] });
  });

  it('ends at once on a second signal', async () => {
    const { shutdown, source, exited, clock } = setUp();
    shutdown.add('worker', () => new Promise(() => {}));
    source.emit('SIGINT');
    clock.now += 501;
    source.emit('SIGINT');
    expect(await exited).toBe(130);
  });

  it('takes the same Ctrl-C, passed on by npm, for one', async () => {
    const { shutdown, source, exited, clock, codes } = setUp();
    const { promise: drained, resolve: drain } = Promise.withResolvers<void>();
    shutdown.add('worker', () => drained);
    source.emit('SIGINT');
    clock.now += 100;
    source.emit('SIGINT');
    expect(codes).toEqual([]);
    drain();
    expect(await exited).toBe(0);
  });

  it('takes the end of its parent, which a closed terminal ends as well, for no second signal', async () => {
    const { shutdown, source, exited, clock, codes } = setUp();
    const { promise: drained, resolve: drain } = Promise.withResolvers<void>();
    shutdown.add('worker', () => drained);
    source.emit('SIGHUP');
    clock.now += 2_000;
    expect(source.emit('parentGone'), 'nobody else has to signal').toBe(true);
    expect(codes).toEqual([]);
    drain();
    expect(await exited).toBe(0);
  });
});

describe('fatal errors', () => {
  it.each(['uncaughtException', 'unhandledRejection'])(
    'end in order after %s, with code 1',
    async (event) => {
      const { shutdown, source, exited, lines } = setUp();
      let closed = false;
      shutdown.add('database', () => {
        closed = true;
      });
      source.emit(event, new Error('unforeseen'));
      expect(await exited).toBe(1);
      expect(closed).toBe(true);
      expect(lines[0]).toMatchObject({ level: 'fatal', err: { message: 'unforeseen' } });
    },
  );

  it('make an end that is on its way end with code 1', async () => {
    const { shutdown, source, exited } = setUp();
    shutdown.add('worker', () => {
      source.emit('unhandledRejection', new Error('late'));
    });
    source.emit('SIGTERM');
    expect(await exited).toBe(1);
  });
});

describe('a real process', () => {
  it.each(['SIGTERM', 'SIGINT', 'SIGHUP'] as const)(
    'ends in order on %s, though a timer would keep it',
    async (signal) => {
      const entry = spawnEntry('test/support/shutdown-process.ts');
      await entry.waitForOutput(/ready/);
      expect(await entry.stop(signal)).toEqual({ code: 0, signal: null });
      expect(entry.output()).toContain(`"reason":"${signal}"`);
      expect(entry.output()).toContain('closed in order');
    },
  );

  // A terminal that was closed refuses whatever is written to it, as does this device.
  it.skipIf(!existsSync('/dev/full'))('ends in order though nothing can be written to its log', async () => {
    const file = join(tempDir(), 'closed');
    const entry = spawnEntry(
      'test/support/shutdown-process.ts',
      {},
      { args: ['touch', file], through: ['sh', '-c', 'exec "$@" > /dev/full', 'sh'] },
    );
    await entry.waitForOutput(/runs/);
    expect(await entry.stop('SIGHUP'), entry.output()).toEqual({ code: 0, signal: null });
    expect(existsSync(file)).toBe(true);
  });

  it('logs what nobody caught, and ends in order with code 1', async () => {
    const entry = spawnEntry('test/support/shutdown-process.ts', {}, { args: ['throw'] });
    expect(await entry.exited).toEqual({ code: 1, signal: null });
    expect(entry.output()).toContain('nobody catches this');
    expect(entry.output()).toContain('closed in order');
  });
});
