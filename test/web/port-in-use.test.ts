import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import express from 'express';
import { afterAll, expect, test } from 'vitest';
import { listen } from '../../src/web/listen.ts';

const holder = createServer();
await new Promise<void>((resolve) => holder.listen(0, '127.0.0.1', resolve));
const { port } = holder.address() as AddressInfo;
afterAll(() => void holder.close());

test.each(['PORT', 'WORKER_PORT'] as const)(
  'a port that is in use is told with where it was set: %s',
  async (variable) => {
    const listening = listen({ host: '127.0.0.1', port, variable }, () => express());
    await expect(listening).rejects.toThrow(
      `Port ${port} is in use: end what listens there, or set ${variable} to another one.`,
    );
  },
);
