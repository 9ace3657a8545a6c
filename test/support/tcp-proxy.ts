import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { afterAll } from 'vitest';

/** A proxy in front of a TCP server of 127.0.0.1. Except for `lead`, a change also affects open connections. */
export interface TcpProxy {
  port: number;
  /** Back to normal: hands on what it held back, and takes connections again. */
  pass(): Promise<void>;
  /** Like a network that is gone: no byte arrives and no connection ends. */
  silence(): void;
  /** Hands requests on, and holds the answers back. */
  holdAnswers(): void;
  /** Breaks connections off, and refuses new ones. */
  refuse(): Promise<void>;
  /** New connections lead to another port. */
  lead(targetPort: number): void;
}

/** Starts a proxy, which ends with the test file. */
export async function startTcpProxy(targetPort: number): Promise<TcpProxy> {
  const clients = new Set<Socket>();
  const targets = new Set<Socket>();
  let port = targetPort;
  let isHeld = { requests: false, answers: false };
  const apply = () => {
    for (const client of clients) isHeld.requests ? client.pause() : client.resume();
    for (const target of targets) isHeld.answers ? target.pause() : target.resume();
  };
  const hold = (requests: boolean, answers: boolean) => {
    isHeld = { requests, answers };
    apply();
  };
  const join = (from: Socket, to: Socket, all: Set<Socket>) => {
    all.add(from);
    from.on('data', (chunk) => to.write(chunk));
    from.on('error', () => undefined).once('end', () => to.end());
    from.once('close', () => {
      all.delete(from);
      to.destroySoon();
    });
  };
  const server = createServer({ allowHalfOpen: true }, (client) => {
    const target = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
    join(client, target, clients);
    join(target, client, targets);
    apply();
  });
  const listen = async (at: number) => void (await once(server.listen(at, '127.0.0.1'), 'listening'));
  const breakOff = () => {
    for (const socket of [...clients, ...targets]) socket.destroy();
  };

  await listen(0);
  const own = (server.address() as AddressInfo).port;
  afterAll(() => {
    breakOff();
    server.close();
  });
  return {
    port: own,
    async pass() {
      hold(false, false);
      if (!server.listening) await listen(own);
    },
    silence: () => hold(true, true),
    holdAnswers: () => hold(false, true),
    async refuse() {
      const closed = once(server, 'close');
      server.close();
      breakOff();
      await closed;
    },
    lead: (to) => {
      port = to;
    },
  };
}
