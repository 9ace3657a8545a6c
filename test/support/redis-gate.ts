import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { afterAll } from 'vitest';
import { createRedis } from '../../src/runtime/redis.ts';
import { testLogger } from './test-logger.ts';

/** What becomes of a command: it is held until somebody releases it, its answer gets lost, or nothing. */
type Fate = 'hold' | 'lose answer' | 'pass';

/** A connection to Redis, and what can happen to one command on its way. */
export interface RedisGate {
  redis: ReturnType<typeof createRedis>;
  /** Arms the gate for the next command with the text. @returns when that has come */
  arm(text: string, fate: Fate): Promise<void>;
  /** Lets what is held go on, in its order. */
  release(): void;
}

/** Connects as the app does, with a gate on the way; it ends when the test file is through. */
export async function connectThroughGate(redisUrl: string): Promise<RedisGate> {
  let armed: { text: string; fate: Fate; come(): void } | undefined;
  let release = () => {};
  const server = createServer((client: Socket) => {
    const target = connect(Number(new URL(redisUrl).port), '127.0.0.1');
    let held: Buffer[] | undefined;
    let losesAnswer = false;
    client.on('data', (chunk) => {
      if (held) return void held.push(chunk);
      if (!armed || !chunk.includes(armed.text)) return void target.write(chunk);
      const { fate, come } = armed;
      armed = undefined;
      if (fate === 'hold') {
        held = [chunk];
        release = () => {
          for (const part of held ?? []) target.write(part);
          held = undefined;
        };
      } else {
        losesAnswer = fate === 'lose answer';
        target.write(chunk);
      }
      come();
    });
    target.on('data', (chunk) => (losesAnswer ? client.destroy() : client.write(chunk)));
    for (const end of [client, target]) end.on('error', () => undefined);
    client.on('close', () => target.end());
    target.on('close', () => client.end());
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = new URL(redisUrl);
  url.port = String((server.address() as AddressInfo).port);
  const redis = createRedis(url.href, 'general', testLogger().logger);
  afterAll(() => {
    redis.disconnect();
    server.close();
  });
  return {
    redis,
    arm: (text, fate) => new Promise((come) => (armed = { text, fate, come })),
    release: () => release(),
  };
}
